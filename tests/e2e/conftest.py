"""The real crossplane CLI, found once for all tests."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from example import caller, compare
from tests.e2e.real_cli import Cli

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cli() -> Iterator[Cli]:
    """The CLI. What is unpacked for it, some 200 MB, is gone at the end."""
    with TemporaryDirectory(prefix="crossplane-") as folder:
        yield Cli.find(Path(folder))


@pytest.fixture(scope="module")
def functions(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The functions file of the examples, with the address of a server that runs."""
    with compare.serving() as address:
        path = tmp_path_factory.mktemp("functions") / "functions.yaml"
        text = (caller.HERE / "functions.yaml").read_text()
        assert text.count("127.0.0.1:9443") == 2
        path.write_text(text.replace("127.0.0.1:9443", address))
        yield path

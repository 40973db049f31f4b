"""The real crossplane CLI, found once for all tests."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.e2e.real_cli import Cli

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cli() -> Iterator[Cli]:
    """The CLI. What is unpacked for it, some 200 MB, is gone at the end."""
    with TemporaryDirectory(prefix="crossplane-") as folder:
        yield Cli.find(Path(folder))

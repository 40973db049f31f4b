"""The kept corpus: one file for each target, one input on each line (base64), shortest first."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TARGETS = ("selectors", "objects", "requests")


def path(target: str) -> Path:
    """Return the file of a target."""
    return Path(__file__).with_name("kept") / f"{target}.txt"


def read(target: str) -> list[bytes]:
    """Return the kept inputs of a target, none when nothing was kept yet."""
    file = path(target)
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    return [base64.b64decode(line) for line in lines]


def write(target: str, inputs: Iterable[bytes]) -> None:
    """Keep these inputs and no others."""
    ordered = sorted(set(inputs), key=lambda item: (len(item), item))
    path(target).parent.mkdir(exist_ok=True)
    lines = "".join(base64.b64encode(item).decode() + "\n" for item in ordered)
    path(target).write_text(lines, encoding="ascii")

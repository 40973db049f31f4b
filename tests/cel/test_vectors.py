"""Cases recorded from the Go implementation, where somebody has them: CEL_VECTORS is the path of the file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from function.cel import CompileError, bind_device, compile_device

FILE = os.environ.get("CEL_VECTORS", "")
KINDS = {"match": "match", "nomatch": "nomatch", "error": "runtime_error", "cost": "runtime_error"}


def answer(case: dict[str, Any]) -> str:
    try:
        selector = compile_device(case["expression"])
    except CompileError:
        return "compile_error"
    device = case["device"]
    subject = bind_device(
        driver=device.get("driver", ""),
        attributes=device.get("attributes") or {},
        capacity=device.get("capacity") or {},
        allow_multiple=bool(device.get("allowMultipleAllocations")),
    )
    return KINDS[selector.evaluate(subject).kind]


@pytest.mark.skipif(not FILE, reason="CEL_VECTORS does not name the file of recorded cases")
def test_recorded_cases() -> None:
    cases = [case for case in json.loads(Path(FILE).read_text(encoding="utf-8")) if "env" not in case]
    wrong = [case for case in cases if answer(case) != case["expect"]]
    assert [case["expression"] for case in wrong if case["required"]] == []
    optional = [case for case in cases if not case["required"]]
    assert len(wrong) <= 0.02 * len(optional)
    assert [case["expression"] for case in wrong if answer(case) == "match"] == []

"""What the API server expects a selector to cost: the rules one by one, then the recorded estimates."""

import json
import os
from pathlib import Path

import pytest

from function.cel import CompileError, compile_cluster, compile_device
from function.cel.cost import LIMIT

FILE = os.environ.get("CEL_VECTORS", "")
D = 'device.attributes["d"]'
ESTIMATES = [
    ("a literal is free", "true", 0),
    ("a path costs its steps", f"{D}.yes", 4),
    ("presence the way there", f"has({D}.s)", 3),
    ("a value has 64 characters, a literal fewer", f'{D}.s == "fish"', 5),
    ("two values are compared as a whole", f"{D}.s == {D}.t", 15),
    ("both sides of and", f"{D}.yes && {D}.yes", 8),
    ("the dearer branch", f"true ? 1 == 1 : {D}.yes", 4),
    ("split reads twice, in walks the parts", f'"a" in {D}.s.split(";")', 81),
    ("includes is fixed", '"a".includes("a")', 48),
    ("sets meet pairwise", "sets.contains([1, 2], [1])", 23),
    ("sorting meets everything twice", "[3, 1, 2].sort() == [1, 2, 3]", 50),
    ("slices know their literals", "[1, 2, 3].slice(0, 2) == [1, 2]", 34),
    ("quantities compare for one", 'quantity("1") == quantity("1")', 3),
    ("blocks", "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8'))", 9),
]
LOOP = "[1,2,3,4,5,6,7,8,9,10].all({}, "
REFUSED = [
    ("loops in loops", "".join(LOOP.format(name) for name in "abcdef") + "true" + ")" * 6, True),
    ("a few of them", "".join(LOOP.format(name) for name in "abc") + "true" + ")" * 3, False),
    ("quantities that differ have no size", 'device.capacity["d"].q != quantity("1")', True),
    ("versions as well", 'semver("1.0.0") != semver("1.0.0")', True),
    ("a long range", "lists.range(10000000).size() > 0", True),
    (
        "a real selector",
        f'{D}.s.startsWith("f") && device.capacity["d"].q.compareTo(quantity("1")) >= 0',
        False,
    ),
]


@pytest.mark.parametrize(("reason", "expression", "units"), ESTIMATES, ids=[case[0] for case in ESTIMATES])
def test_what_is_expected(reason: str, expression: str, units: int) -> None:
    assert compile_device(expression).estimate() == units, reason


@pytest.mark.parametrize(("reason", "expression", "above"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_may_be_refused(reason: str, expression: str, *, above: bool) -> None:
    estimate = compile_device(expression).estimate()
    assert estimate is not None
    assert (estimate > LIMIT) is above, reason


def test_no_api_server_sees_a_cluster_selector() -> None:
    assert compile_cluster('cluster.name == "a"').estimate() is None


@pytest.mark.skipif(not FILE, reason="CEL_VECTORS does not name the file of recorded cases")
def test_recorded_estimates() -> None:
    alike = decided = count = 0
    for case in json.loads(Path(FILE).read_text(encoding="utf-8")):
        if "env" in case or "maxCost" not in case:
            continue
        try:
            estimate = compile_device(case["expression"]).estimate()
        except CompileError:
            continue
        assert estimate is not None
        count += 1
        alike += estimate == case["maxCost"]
        decided += (estimate > LIMIT) == (case["maxCost"] > LIMIT)
    assert (decided, alike >= 0.996 * count) == (count, True), f"{alike} of {count} exactly as recorded"

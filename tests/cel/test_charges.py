"""The price of a call, from its arguments alone: what Kubernetes charges, and what we add where it works for
nothing: from the 65th element on, whatever is compared, copied or joined.
"""

from collections.abc import Callable
from typing import Any

import pytest

from function.cel import compile_device
from function.cel.library import charges as cost, formats, lists
from function.cel.library.charges import LIMIT, SHORT
from function.cel.values import NONE, WORK, CostExceeded, Map, Optional
from tests.cel.devices import MIXED, bound

FEW, MANY = list(range(SHORT)), list(range(100))
SINGLES = [[one] for one in MANY]
"""A hundred lists of one element, which count as three hundred: each list, its opening, and its element."""
BOXES: list[Any] = [Optional(one) for one in MANY]
WORDS = ["a" * 20] * 100
TABLE = Map.of({str(one): [one] for one in MANY})
CASES = [
    ("walking: a tenth of the text", cost.walk, ["a" * 20], 2),
    ("rounded up", cost.walk, ["a" * 21], 3),
    ("nothing for no text", cost.walk, [""], 0),
    ("what has no length is one long", cost.walk, [True], 1),
    ("a map is as long as its entries", cost.walk, [TABLE], 10),
    ("bytes are walked as text", cost.walk, [b"a" * 30], 3),
    ("an optional is as long as its value", cost.walk, [Optional("a" * 20)], 2),
    ("an empty one is one long", cost.walk, [NONE], 1),
    ("two texts are copied together", cost.walk_both, ["a" * 5, "b" * 6], 2),
    ("comparing texts: the shorter", cost.compare, ["a" * 11, "a" * 40], 2),
    ("whichever it is", cost.compare, ["a" * 40, "a" * 11], 2),
    ("comparing few elements: the same", cost.compare, [FEW, FEW], 7),
    ("comparing many: four for each beyond", cost.compare, [MANY, MANY], 10 + 4 * (100 - SHORT)),
    ("with those that nest", cost.compare, [SINGLES, SINGLES], 10 + 4 * (300 - SHORT)),
    ("and those in optionals", cost.compare, [[Optional(MANY)], [Optional(MANY)]], 1 + 4 * (102 - SHORT)),
    ("and in maps", cost.compare, [TABLE, TABLE], 10 + 4 * (300 - SHORT)),
    ("a list is not gone through for another type", cost.compare, [MANY, "a" * 200], 10),
    ("nor for an empty list", cost.compare, [MANY, []], 0),
    ("in a list: its elements", cost.search, [1, FEW], 64),
    ("numbers in many: four for each beyond", cost.search, [1, MANY], 100 + 4 * (100 - SHORT)),
    ("texts are found quickly", cost.search, ["a", WORDS], 100),
    ("lists in many: all that nests", cost.search, [[1], SINGLES], 100 + 4 * (300 - SHORT)),
    ("in a map one", cost.search, ["a", TABLE], 1),
    ("includes: one", cost.held, [MANY, 1], 1),
    ("includes of a list: all that nests", cost.held, [SINGLES, [1]], 1 + 4 * (300 - SHORT)),
    ("contains: the product of tenths", cost.product, ["a" * 21, "a" * 11], 6),
    ("matching: the text by a quarter of the pattern", cost.regex, ["a" * 20, "a" * 5], 6),
    ("the text counts one more", cost.regex, ["a" * 9, "a" * 4], 1),
    ("all matches of a short text: as one", cost.matches, ["a" * 64, "a" * 5], 14),
    ("of a long one: forty for each character beyond", cost.matches, ["a" * 66, "a" * 5], 14 + 80),
    ("joining few lists one", cost.join_lists, [FEW[:32], FEW[:32]], 1),
    ("many: an eighth of those beyond", cost.join_lists, [MANY, MANY], 1 + (200 - SHORT) // 8),
    ("what is no list one", cost.join_lists, [MANY, 1], 1),
    ("whichever it is", cost.join_lists, [1, MANY], 1),
    ("making a list: eleven and its elements", lambda _result, made: cost.allocate(made), [MANY], 111),
    ("sorting: each with each, twice", cost.pairwise, [[1, 2, 3]], 11 + 18),
    ("elements of numbers: each one", cost.elements, [[1, 2, 3]], 3),
    ("of texts: a tenth, rounded down", cost.elements, [["a" * 29, b"a" * 39]], 5),
    ("of a text: a tenth, rounded down", cost.elements, ["a" * 29], 2),
    ("of bytes as well", cost.elements, [b"a" * 29], 2),
    ("of lists: what is in them", cost.elements, [[[1, 2], [3]]], 3),
    ("many: twice", cost.elements, [MANY], 100 + 36),
    ("a long text: an eighth of what is beyond", cost.elements, ["a" * 104, "b"], 10 + 5),
    (
        "looking for a list: four for all that nests",
        cost.elements,
        [SINGLES, [1]],
        100 + (4 * 300 - SHORT),
    ),
    ("looking for a number: twice beyond", cost.elements, [MANY, 1], 100 + 36),
    ("writing another text: twice its length", cost.copy, ["a" * 11, "b" * 99], 3),
    ("joining texts: the result, twice", cost.joined, [["a" * 10, "b" * 10]], 4),
    ("with what stands between", cost.joined, [["a" * 10, "b" * 10], "-" * 5], 5),
    ("which is one less than the texts", cost.joined, [["a" * 10], "-" * 50], 2),
    ("and nothing for none", cost.joined, [[], "-" * 50], 0),
    ("many texts: each beyond", cost.joined, [[""] * 66], 2),
    ("what is no text is not joined", cost.joined, [[1, "a" * 10]], 2),
    ("unwrapping one", cost.unwrapped, [BOXES[:SHORT]], 1),
    ("many: each beyond", cost.unwrapped, [BOXES], 37),
    ("an operator on what shows late: one", cost.dispatched, ["a" * 32, "a" * 32], 1),
    ("on much: an eighth of what is beyond", cost.dispatched, ["a" * 72, 1], 1 + 9 // 8),
    ("of both together", cost.dispatched, [MANY, MANY], 1 + 136 // 8),
    ("looking late: one", cost.looked, [1, FEW], 1),
    ("until it is much", cost.looked, [1, MANY], 1 + 100 + 4 * 36 - SHORT),
    ("sets of plain values: each with each", lists.crossed, [MANY, [1, 2]], 201),
    ("of what nests: four for each beyond", lists.crossed, [SINGLES, [[1], [2]]], 201 + 4 * (600 - SHORT)),
    ("both ways: twice, and one call", lists.crossed_twice, [[1, 2], [2, 1]], 9),
    ("a template: a tenth", formats.template_cost, ["%" * 11, [1]], 2),
    ("short texts cost nothing more", formats.template_cost, ["%" * 10, ["a" * 64]], 1),
    ("long ones an eighth beyond", formats.template_cost, ["%" * 10, ["a" * 72, b"a" * 8]], 1 + 2),
    ("many values: four for each beyond", formats.template_cost, ["%" * 10, MANY], 1 + 4 * 36),
    ("with those that nest", formats.template_cost, ["%" * 10, [MANY]], 1 + 4 * 38),
]


@pytest.mark.parametrize(
    ("reason", "charge", "given", "units"), CASES, ids=[f"{n} {c[0]}" for n, c in enumerate(CASES)]
)
def test_the_price_of_a_call(reason: str, charge: Callable[..., int], given: list[Any], units: int) -> None:
    assert charge(None, *given) == units, reason


def deep(levels: int) -> list[Any]:
    """Lists in lists that say much in few words: each level is twice the one below."""
    made: list[Any] = [1]
    for _ in range(levels):
        made = [made, made]
    return made


def test_counting_what_nests_stops_before_it_takes_long() -> None:
    assert cost.weight(deep(15)) == 5 * 2**15 - 4
    with pytest.raises(CostExceeded):
        cost.weight(deep(16))
    assert cost.traverse(deep(17)) == 2**17
    with pytest.raises(CostExceeded):
        cost.traverse(deep(19))


def test_the_price_of_what_is_counted_is_the_limit_at_most() -> None:
    most = LIMIT // cost.MET - 1
    assert cost.weight([0] * most) == most
    with pytest.raises(CostExceeded):
        cost.weight([0] * (most + 1))


COUNTED = [
    ("a loop over elements, where its steps are free", "[1, 2, 3].filter(x, false) == []", 3),
    ("a loop with two names", "[1, 2, 3].transformList(i, v, false, v) == []", 3),
    ("an error that && absorbs", "1 / dyn(0) == 1 && false", 10),
    ("an error that || absorbs", "1 / dyn(0) == 1 || true", 10),
    ("errors that a loop absorbs", "[0, 0].all(x, 1 / x == 1) || true", 2 * (1 + 10) + 10),
    ("no error, no loop", "1 / dyn(1) == 1 || true", 0),
]


@pytest.mark.parametrize(("reason", "expression", "steps"), COUNTED, ids=[case[0] for case in COUNTED])
def test_steps_are_counted_also_where_kubernetes_charges_nothing(
    reason: str, expression: str, steps: int
) -> None:
    selector = compile_device(expression)
    frame = selector._frame(bound(MIXED))
    before = frame[WORK]
    selector._run(frame)
    assert before - frame[WORK] == steps, reason


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("[1, 2, 3].filter(x, false) == []", 3),
        ("[1, 2, 3].transformList(i, v, false, v) == []", 3),
        ("1 / dyn(0) == 1 || true", 10),
        ("[0].exists(x, 1 / x == 1) || true", 21),
    ],
)
def test_the_steps_end_with_the_last_that_is_allowed(expression: str, steps: int) -> None:
    selector = compile_device(expression)
    frame = selector._frame(bound(MIXED))
    frame[WORK] = steps
    selector._run(frame)
    frame = selector._frame(bound(MIXED))
    frame[WORK] = steps - 1
    with pytest.raises(CostExceeded):
        selector._run(frame)

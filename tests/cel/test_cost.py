"""Work: what is charged, where it stops, and that nothing absorbs it."""
# ruff: noqa: E501 - a case is one line

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from function.cel import Selector, compile_device
from function.cel.library.charges import LIMIT
from function.cel.values import BUDGET, WORK, CostExceeded
from tests.cel.devices import MIXED, bound, outcome, says

D = 'device.attributes["d"]'
COSTS = [
    ("a literal is free", "true", 0),
    ("a path costs its steps", f"{D}.yes", 4),
    ("by index as well", 'device.attributes["d"]["yes"]', 4),
    ("a branch by index, less the variable", 'true ? device.attributes["d"]["yes"] : false', 3),
    ("comparison of short texts one", f'{D}.s == "fish"', 5),
    ("with what turns out to be no text one", f'{D}.i == "fish"', 5),
    ("of long ones a tenth of the shorter", f'{D}.u + "123456" == "0123456789012"', 8),
    ("with a text as short as none nothing", f'{D}.empty == ""', 4),
    ("presence costs the way there", f"has({D}.s)", 3),
    ("in a map one", f'"s" in {D}', 4),
    ("in literals nothing", f'{D}.s in ["a", "b"]', 4),
    (
        "a literal quantity costs as much as a computed one",
        'device.capacity["d"].q.compareTo(quantity("80Gi")) == 0',
        7,
    ),
    ("a long one more", 'quantity("100000000000") == quantity("1")', 4),
    ("and after true", f"{D}.yes && {D}.yes", 8),
    ("stops after false", f"{D}.no && {D}.yes", 4),
    ("or after false", f"{D}.no || {D}.yes", 8),
    ("stops after true", f"{D}.yes || {D}.no", 4),
    ("an error costs what ran before it", f"{D}.gone == 1 || true", 4),
    ("the ternary costs its branch, less the variable", f"{D}.yes ? {D}.no : {D}.yes", 7),
    ("the other branch as well", f"{D}.no ? {D}.no : {D}.yes", 7),
    ("a list of literals is free", "[1, 2, 3].size() == 3", 2),
    ("a list of computed ones is not", f"[{D}.i].size() == 1", 16),
    ("a map neither", f"{{1: {D}.i}}.size() == 1", 36),
    ("map literals are free", "{1: 2}.size() == 1", 2),
    ("into what is computed one more", f'{D}.s.split("i")[0] == "f"', 8),
    ("all: five for each of these steps", "[1, 2, 3].all(x, x > 0)", 16),
    ("exists: stops where it is settled", "[1, 2, 3].exists(x, x > 0)", 7),
    ("exists_one looks at each", "[1, 2].exists_one(x, x > 1)", 8),
    ("map makes a list at each step", "[1, 2].map(x, x) == [1, 2]", 28),
    ("filter where it keeps", "[1, 2].filter(x, x > 1).size() == 1", 20),
    ("map with a predicate", "[1, 2].map(x, x > 1, x).size() == 1", 20),
    ("transformMap", "[1, 2].transformMap(i, v, v).size() == 2", 11),
    ("transformMapEntry", "[1, 2].transformMapEntry(i, v, {i: v}).size() == 2", 71),
    ("range", "lists.range(10).size() == 10", 23),
    ("bind costs its value once, when it is read", f"cel.bind(x, {D}.yes, x && x)", 6),
    ("and nothing when it is not", f"cel.bind(x, {D}.yes, true)", 0),
    ("an optional that is there", f"{D}.?yes.orValue(false)", 4),
    ("one that is not, and its alternative", f"{D}.?gone.orValue({D}.yes)", 7),
    ("optMap costs its body", f"{D}.?i.optMap(x, x > 1).value()", 7),
    ("contains: the product", "'01234567890'.contains('01234567890')", 4),
    ("matches: the text by a quarter of the pattern", "'0123456789'.matches('01234')", 4),
    ("startsWith: the text", "'01234567890'.startsWith('0')", 2),
    ("lowerAscii: the text", "'01234567890'.lowerAscii() == ''", 2),
    ("replace: the text twice", "'01234567890'.replace('x', '') == ''", 3),
    ("join: the result twice", "['01234', '56789'].join() == ''", 2),
    ("strings add up", "'01234567890' + '' == ''", 2),
    ("sort: everything with everything, twice", "[3, 1, 2].sort() == [1, 2, 3]", 30),
    ("sortBy in addition to its keys", "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]", 75),
    ("sets: each with each", "sets.contains([1, 2], [1])", 3),
    ("both ways", "sets.equivalent([1, 2], [2, 1])", 9),
    ("sum: its elements", "[1, 2, 3].sum() == 6", 4),
    ("reverse: its elements and a list", "[1, 2].reverse() == [2, 1]", 14),
    ("slice: its elements and a list", "[1, 2, 3].slice(0, 2) == [1, 2]", 14),
    ("formats: their pattern", "format.dns1123Label().validate('abc').hasValue()", 10),
    ("a text of nine is a tenth", "format.dns1123Label().validate('abcdefghi').hasValue()", 10),
    ("of ten two", "format.dns1123Label().validate('abcdefghij').hasValue()", 18),
    ("blocks", "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/8')", 5),
    ("addresses in blocks", "cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3),
    ("canonical: the text twice", "ip.isCanonical('10.0.0.1')", 2),
    ("wrappers", "google.protobuf.Int32Value{value: 1} == 1", 41),
    ("negation", f"!{D}.yes", 5),
    ("in a list attribute", f'"a" in {D}.strs', 5),
    ("a computed pattern is compiled each time", f"{D}.s.matches({D}.s)", 1009),
    ("a literal one once", f"{D}.s.matches('fish')", 5),
    ("what errs costs what ran before", f"{D}.gone == 1", 4),
    ("index by a variable", f"['yes'].exists(k, {D}[k])", 9),
]


@pytest.mark.parametrize(("reason", "expression", "units"), COSTS, ids=[case[0] for case in COSTS])
def test_what_is_charged(reason: str, expression: str, units: int) -> None:
    assert compile_device(expression).cost(bound(MIXED)) == units, reason


RECORDED = [
    ("[].join('-') == ''", 0),
    ("['x', 'y'].join('-') == 'x-y'", 2),
    ('"aXa".replace("a", "b", 1) == "bXa"', 2),
    ('"hello hello".replace("", "_") == "_h_e_l_l_o_ _h_e_l_l_o_"', 6),
    ('strings.quote("verbatim") == "\\"verbatim\\""', 2),
    ('ip.isCanonical("2001:db8::68")', 3),
    ("[1, 2].reverse() == [2, 1]", 14),
    ("dyn([1, 2, 3, 4]).flatten() == [1, 2, 3, 4]", 16),
    ("sets.equivalent([1], [1, 1])", 5),
    ("sets.intersects([2, 1], [1])", 3),
    ("!sets.intersects([1], [])", 2),
    ('cidr("192.168.0.0/24").containsIP("192.168.0.1")', 5),
    ('cidr("192.168.0.0/24").containsCIDR("192.168.0.0/25")', 7),
    ("cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8'))", 5),
    ('!format.dns1123Label().validate("ABC_").hasValue()', 11),
    ('type(format.byte().validate("aGVsbG8")) != type(null)', 24),
    ('type(format.date().validate("2021-01-01")) != type(null)', 39),
    ("[1, 2, 3, 4].slice(1, 1) == []", 11),
    ("[].sortBy(e, e) == []", 14),
    ("lists.range(3).sortBy(e, -e) == [2, 1, 0]", 89),
    ('["b", "a"].isSorted()', 0),
    ("[1, 2, 3].max() == 3", 4),
    ("'tacocat'.indexOf('ac') == 1", 1),
    ("(40 + 2) == 42", 2),
    ('cel.bind(z, "3", z == "fish")', 2),
    ("cel.bind(x, {'y': 0}, x.y == 0)", 3),
    ('cel.bind(z, quantity("40Gi"), true)', 0),
    ("{1: 2}.transformMap(k, v, v + 1) == {1: 3}", 7),
    ("{1: 2}.transformMapEntry(k, v, {v: k}) == {2: 1}", 36),
    ("has({}.a)", 1),
    ('{"a": 1}.a == 1', 3),
    ("google.protobuf.BytesValue{} == b''", 40),
    ("google.protobuf.Value{bool_value: true}", 40),
    ("(string(b'abc')) == \"abc\"", 1),
    ('b"abc" == bytes("abc")', 1),
    ("'TacoC\u00c6t'.lowerAscii() == 'tacoc\u00e6t'", 2),
    ('"abcabc".findAll("b.", 1) == ["bc"]', 2),
    ("[8].exists_one(a, a == 7)", 4),
    ("[1, 2, 3].exists_one(x, (x % 2) == 0)", 13),
    ("([1].filter(n, n > 3)) == []", 3),
    ("([0, 1, 2, 3, 4].filter(x, x % 2 == 1)) == [1, 3]", 43),
    ("(['signer'].filter(signer, ['artifact'].all(artifact, true))) == [\"signer\"]", 19),
    ("'spider' in {'ant': 6, 'fly': 6, 'centipede': 100}", 1),
    ("(['foo'][?0].value()) == \"foo\"", 4),
    ("([?{}.?c, ?optional.of(42), ?optional.none()]) == [42]", 14),
    ("optional.of(1).orValue(2) == 1", 2),
    ("(false ? 'foo' : 'bar') == \"bar\"", 1),
    ("true || (2 / 0 > 3 ? false : true)", 0),
    ("'hello'.contains('he')", 1),
    ('"tacocat".substring(4) == "cat"', 2),
    ("5u + (15u + 20u) == (5u + 15u) + 20u", 5),
    ("type(64u) == uint", 1),
    ("'A' > ''", 0),
    ("0u > 999u", 1),
    ('url("https://example.com:80/p?q=1").getHost() == "example.com:80"', 6),
    ('duration("1h") == duration("60m")', 1),
]


@pytest.mark.parametrize(("expression", "units"), RECORDED)
def test_what_kubernetes_was_seen_to_charge(expression: str, units: int) -> None:
    assert compile_device(expression).cost(bound(MIXED)) == units


OURS = [
    ("is sorted: its elements", "[1, 2, 3].isSorted()", 3),
    ("min: its elements", "[1u, 2u, 3u].min() == 1u", 4),
    ("sum of durations", "[duration('1s')].sum() == duration('1s')", 2),
    ("where it is in a list: its elements", "[1, 2, 3].indexOf(1) == 0", 4),
    ("from the end as well", "[1, 2, 3].lastIndexOf(1) == 0", 4),
    ("in a text: a tenth, rounded down", "'01234567890'.lastIndexOf('0') == 0", 2),
    ("with a start", "'01234567890'.lastIndexOf('0', 3) == 0", 2),
    ("endsWith: the text", "'01234567890'.endsWith('0')", 2),
    ("upperAscii: the text", "'01234567890'.upperAscii() == ''", 2),
    ("trim: the text", "'01234567890'.trim() == ''", 2),
    ("split: the text twice", "'01234567890'.split('x', 1).size() == 1", 5),
    ("replace of so many", "'01234567890'.replace('x', '', 1) == ''", 3),
    ("substring up to", "'01234567890'.substring(0, 0) == ''", 2),
    ("a computed quantity: its text", f"isQuantity({D}.s + '1234567')", 8),
    ("a computed version", f"isSemver({D}.s + '1234567', true)", 8),
    ("a computed address", f"isIP({D}.s + '1234567')", 8),
    ("a computed block", f"isCIDR({D}.s + '1234567')", 8),
    ("a computed URL", f"isURL({D}.s + '1234567')", 8),
    ("a template by its length", "'%s12345678901'.format([1]) == ''", 2),
    ("find: as matches", "'0123456789'.find('01234') == ''", 4),
    ("includes one", "[1, 2, 3].includes(1)", 1),
    ("unwrapping one", "[optional.of(1)].unwrapOpt() == [1]", 13),
    ("an order of texts: the shorter", "'01234567890' < '012345678901'", 2),
    ("an order of bytes as well", "b'01234567890' >= b'012345678901'", 2),
    ("texts that differ: the shorter", "'01234567890' != '012345678901'", 2),
    ("bytes add up", "b'01234567890' + b'' == b''", 2),
    ("lists add up for one", "[1] + [2] == [1, 2]", 2),
    ("in a computed list: its elements", "1 in [1, 2].map(x, x)", 29),
]


@pytest.mark.parametrize(("reason", "expression", "units"), OURS, ids=[case[0] for case in OURS])
def test_what_each_function_is_charged(reason: str, expression: str, units: int) -> None:
    assert compile_device(expression).cost(bound(MIXED)) == units, reason


TEN = "[1,2,3,4,5,6,7,8,9,10]"


def nested(levels: int, body: str) -> str:
    names = "abcdefgh"[:levels]
    return "".join(f"{TEN}.all({name}, " for name in names) + body + ")" * levels


def test_the_limit_is_that_of_kubernetes() -> None:
    assert LIMIT == 1_000_000
    assert says(nested(5, "a + b + c + d + e > 0")) == "cost"
    assert says(nested(4, "a + b + c + d > 0")) == "match"


def test_the_message_says_so() -> None:
    assert outcome(nested(6, "true")).message == "the evaluation costs more than 1000000 units"


UNBOUNDED = [
    ("a range", "lists.range(10000000).size() > 0"),
    ("loops in loops", nested(8, "true")),
    ("absorbed by neither side", f"true || lists.range(10000000).size() > 0 && {nested(8, 'true')}"),
    ("texts that grow", "'a'" + ".replace('a', 'aaaaaaaaaa')" * 12 + ".size() > 0"),
    (
        "texts that explode",
        f"'{'a' * 3000}'" + f".replace('a', '{'b' * 3000}')" + f".replace('b', '{'c' * 3000}') == ''",
    ),
    (
        "texts that are joined",
        "['aaaaaaaaaaaaaaaa'].map(x, lists.range(1000).map(y, x).join(x))"
        + ".map(x, [x, x, x, x].join(x))" * 12
        + " == []",
    ),
    (
        "lists that double",
        "cel.bind(a, lists.range(1000), " + "cel.bind(a, a + a, " * 40 + "a.size() > 0" + ")" * 41,
    ),
    (
        "dyn lists that double",
        "cel.bind(a, dyn(lists.range(1000)), " + "cel.bind(a, a + a, " * 40 + "a.size() > 0" + ")" * 41,
    ),
    ("a list looked through again and again", "cel.bind(a, lists.range(90000), a.all(x, a.max() > x))"),
    ("looked up again and again", "cel.bind(a, dyn(lists.range(90000)), a.all(x, !(-1 in a)))"),
    ("deep equality", "cel.bind(a, [lists.range(90000)], lists.range(1000).all(x, a == a))"),
    ("sorting", "lists.range(2000).sort().size() > 0"),
    ("distinct", "lists.range(2000).distinct().size() > 0"),
    ("sets", "cel.bind(a, lists.range(2000), sets.contains(a, a))"),
    (
        "errors in a loop",
        "lists.range(90000).exists(x, x / 0 == 1 && x / 0 == 1 && x / 0 == 1 && x / 0 == 1 && x / 0 == 1 && x / 0 == 1)",
    ),
    (
        "a bound error in a loop",
        "cel.bind(e, 1 / 0, lists.range(90000).exists(x, e == x && e == x && e == x && e == x))",
    ),
]


UNITS = 20_000
"""A fiftieth of what an evaluation may do: counting lines is slow, and the work grows with the units."""
OVERHEAD = 1_200_000
"""Lines that looking at a value may take before it shows to be too much, whatever is left to spend."""
LINES = 12
"""Lines of Python that one unit may stand for."""
LONG = "cel.bind(t, 'a'" + ".replace('a', 'aaaaaaaaaa')" * 3 + ", "
HOSTILE = [
    ("sets of what is slow to compare", "cel.bind(a, lists.range(900).map(x, [x]), sets.contains(a, a))"),
    ("loops that cost nothing", "cel.bind(r, lists.range(9000), r.all(x, r.filter(y, false).size() == 0))"),
    (
        "maps compared",
        "cel.bind(m, lists.range(900).transformMap(i, v, i), lists.range(9000).all(x, m == m))",
    ),
    (
        "maps iterated",
        "cel.bind(m, lists.range(900).transformMap(i, v, i), lists.range(9000).all(x, m.exists(k, true)))",
    ),
    (
        "lists that double by nesting",
        "cel.bind(a0, [1], "
        + "".join(f"cel.bind(a{at + 1}, [a{at}, a{at}], " for at in range(40))
        + "a40 == a40"
        + ")" * 41,
    ),
    ("lists flattened", "cel.bind(a, lists.range(900), a.map(x, a).flatten().size() > 0)"),
    ("nothing joined", "cel.bind(l, lists.range(900).map(x, ''), lists.range(9000).all(x, l.join() == ''))"),
    ("lists formatted", "cel.bind(l, lists.range(900), lists.range(9000).all(x, '%s'.format([l]) != ''))"),
    (
        "optionals unwrapped",
        "cel.bind(l, lists.range(900).map(x, optional.of(x)), lists.range(9000).all(x, l.unwrapOpt() != []))",
    ),
    ("matches found", LONG + "lists.range(9000).all(x, t.findAll('a').size() > 0))"),
    ("patterns computed", "lists.range(9000).all(x, !'a'.matches('b{900}' + string(x)))"),
    ("sorted by a key", "lists.range(900).sortBy(x, -x).size() > 0"),
    ("sums as dyn", "cel.bind(a, dyn(lists.range(900)), lists.range(9000).all(x, a.sum() > 0))"),
]


def lines(selector: Selector, units: int) -> tuple[str, int]:
    """Return how an evaluation within so many units ends, and how many lines of Python it runs."""
    frame = selector._frame(bound(MIXED))
    frame[BUDGET] = frame[WORK] = units
    count = 0

    def step(_frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        selector._run(frame)
        end = "value" if frame[BUDGET] >= 0 else "cost"
    except CostExceeded:
        end = "cost"
    finally:
        sys.settrace(before)
    return end, count


@pytest.mark.parametrize(
    ("reason", "expression"), UNBOUNDED + HOSTILE, ids=[case[0] for case in UNBOUNDED + HOSTILE]
)
def test_what_would_run_for_long_stops_within_a_bounded_number_of_steps(reason: str, expression: str) -> None:
    if reason == "absorbed by neither side":
        expression = expression.replace("true ||", "false ||")
    selector = compile_device(expression)
    selector.evaluate(bound(MIXED))  # so that nothing is imported or compiled while lines are counted
    end, count = lines(selector, UNITS)
    assert end == "cost", reason
    assert count <= LINES * UNITS + OVERHEAD, reason


BEFORE = [
    ("sets", "sets.contains(lists.range(20000), lists.range(20000))", "contains_all"),
    ("sorting", "lists.range(20000).sort().size() > 0", "sort"),
    ("telling doubles", "lists.range(20000).distinct().size() > 0", "distinct"),
    ("comparing", "cel.bind(a, lists.range(90000).map(x, [x]), a == a)", "equal"),
]


@pytest.mark.parametrize(("reason", "expression", "work"), BEFORE, ids=[case[0] for case in BEFORE])
def test_work_is_charged_before_it_is_done(reason: str, expression: str, work: str) -> None:
    called: set[str] = set()
    sys.setprofile(lambda frame, _event, _arg: called.add(frame.f_code.co_name))
    try:
        assert compile_device(expression).evaluate(bound(MIXED)).kind == "cost", reason
    finally:
        sys.setprofile(None)
    assert work not in called, reason


def test_real_selectors_cost_next_to_nothing() -> None:
    expression = f'{D}.s == "fish" && device.capacity["d"].q.compareTo(quantity("40Gi")) >= 0 && {D}.v != semver("1.0.0")'
    assert compile_device(expression).cost(bound(MIXED)) == 18

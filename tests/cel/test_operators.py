"""Numbers, equality, errors that are absorbed and errors that are not."""
# ruff: noqa: E501 - a case is one line

import pytest

from tests.cel.devices import outcome, says

I = 'device.attributes["d"].i'  # 42  # noqa: E741
S = 'device.attributes["d"].s'  # fish
GONE = 'device.attributes["d"].gone'
D = 'device.attributes["d"]'

CASES = [
    ("dyn equality is numeric", f"{I} == 42.0 && {I} == 42u && 42 == {I} && {I} != 42.5", "match"),
    ("and false across types", f'{I} == "42"', "nomatch"),
    (
        "never an error",
        f"{S} == true || {S} == null || {S} == b'fish' || {S} == [1] || {S} == {{}}",
        "nomatch",
    ),
    ("a list is no map", f"{D}.ints == {{}}", "nomatch"),
    (
        "lists are equal by element",
        f"{D}.ints == [3, 1, 2] && {D}.ints != [3, 1] && {D}.ints != [3, 2, 1]",
        "match",
    ),
    ("numerically", f"{D}.ints == dyn([3.0, 1.0, 2.0])", "match"),
    (
        "maps are equal by entry",
        "{1: 'a', 2: 'b'} == {2: 'b', 1: 'a'} && {1: 'a'} != {1: 'b'} && {1: 1} != {2: 1}",
        "match",
    ),
    ("maps of different size differ", "{1: 1} != {1: 1, 2: 2}", "match"),
    (
        "keys meet across number types",
        "dyn({1: 'a'}) == dyn({1.0: 'a'}) && {1: 'a'}[dyn(1u)] == 'a'",
        "match",
    ),
    ("true is no 1 as a key", "dyn(true) in dyn({1: 'a'})", "nomatch"),
    ("NaN is not equal to itself", "0.0 / 0.0 == 0.0 / 0.0", "nomatch"),
    ("and has no order", "0.0 / 0.0 < 1.0", "error"),
    ("arithmetic across types is an error", f"{I} + 1.0 == 43.0", "error"),
    (
        "within a type it is not",
        f"{I} + 1 == 43 && {I} - 1 == 41 && {I} * 2 == 84 && {I} / 5 == 8 && {I} % 5 == 2",
        "match",
    ),
    ("order across numbers", f"{I} > 41.5 && {I} < 43u && {I} >= 42 && {I} <= 42.0", "match"),
    ("order of a string and a number is an error", f"{S} < 1", "error"),
    ("strings have an order", f"{S} < 'fisi' && {S} > 'fis' && {S} >= {S} && 'a' <= 'b'", "match"),
    ("bools have", "false < true && !(true < true)", "match"),
    ("bytes have", "b'a' < b'b'", "match"),
    (
        "durations and timestamps have",
        "duration('1m') < duration('1h') && timestamp(1) > timestamp(0)",
        "match",
    ),
    ("lists have none", f"{D}.ints < {D}.ints", "error"),
    ("addition overflows", f"{D}.max + 1 > 0", "error"),
    ("subtraction overflows", f"{D}.min - 1 < 0", "error"),
    ("multiplication overflows", f"{D}.max * 2 > 0", "error"),
    ("negation overflows", f"-{D}.min > 0", "error"),
    ("division overflows", f"{D}.min / -1 > 0", "error"),
    ("the remainder of it too", f"{D}.min % -1 == 0", "error"),
    ("to the edge it does not", f"{D}.max - 1 + 1 == {D}.max && {D}.min + 1 - 1 == {D}.min", "match"),
    ("uints do not go below zero", "0u - 1u == 0u", "error"),
    ("nor above 64 bits", "18446744073709551615u + 1u > 0u", "error"),
    ("uint arithmetic", "7u / 2u == 3u && 7u % 2u == 1u && 3u * 2u == 6u && 3u - 2u == 1u", "match"),
    ("uints have no minus", "-(1u) == 1u", "compile"),
    ("division truncates", "-7 / 2 == -3 && 7 / -2 == -3 && -7 / -2 == 3 && 7 / 2 == 3", "match"),
    ("the remainder has the sign of the dividend", "-7 % 2 == -1 && 7 % -2 == 1", "match"),
    ("division by zero", f"{I} / {D}.zero == 1", "error"),
    ("remainder by zero", f"{I} % {D}.zero == 1", "error"),
    ("uint division by zero", "1u / 0u == 1u", "error"),
    ("uint remainder by zero", "1u % 0u == 1u", "error"),
    (
        "double division follows IEEE",
        "1.0 / 0.0 == double('inf') && -1.0 / 0.0 == double('-inf') && 3.0 / 2.0 == 1.5",
        "match",
    ),
    ("doubles have no remainder", "1.5 % 1.0 == 0.5", "compile"),
    (
        "double arithmetic",
        "1.5 + 1.5 == 3.0 && 2.0 - 0.5 == 1.5 && 2.0 * 1.5 == 3.0 && -(1.5) == -1.5",
        "match",
    ),
    (
        "texts, bytes and lists add up",
        "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
        "match",
    ),
    ("bools do not", f"{D}.yes + {D}.yes == 1", "error"),
    (
        "times and durations",
        "timestamp(10) + duration('5s') == timestamp(15) && duration('5s') + timestamp(10) == timestamp(15)",
        "match",
    ),
    (
        "their differences",
        "timestamp(15) - timestamp(10) == duration('5s') && timestamp(15) - duration('5s') == timestamp(10)",
        "match",
    ),
    (
        "durations alone",
        "duration('1m') + duration('1s') > duration('1m') && duration('3s') - duration('2s') == duration('1s')",
        "match",
    ),
    ("beyond the calendar", "timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "error"),
    ("a minus for a text is an error", f"-{S} == 1", "error"),
    ("&& absorbs an error on the left", f"({GONE} == 1) && false", "nomatch"),
    ("and on the right", f"false && {GONE} == 1", "nomatch"),
    ("|| absorbs an error on the left", f"{GONE} == 1 || true", "match"),
    ("and on the right", f"true || {GONE} == 1", "match"),
    ("among many terms", f"{GONE} == 1 || false || true", "match"),
    ("not without a decisive term", f"{GONE} == 1 && true", "error"),
    ("neither for ||", f"false || {GONE} == 1", "error"),
    ("what is no bool is an error, too", f"{S} || false", "error"),
    ("and absorbed as well", f"{S} || true", "match"),
    ("&& the same", f"{I} && false", "nomatch"),
    ("the ternary does not absorb", f"{GONE} ? true : true", "error"),
    ("it runs one branch", f"true ? true : {GONE}", "match"),
    ("the other one", f"false ? {GONE} : true", "match"),
    ("its condition is a bool", f"{S} ? true : true", "error"),
    ("! of what is no bool", f"!{I}", "error"),
    ("in a list", f"{I} in [41, 42] && !({I} in [41]) && 42u in [dyn(41), dyn(42)]", "match"),
    ("in a list across numbers", f"{I} in [41.0, 42.0]", "match"),
    ("in a list of another type", f'{I} in ["42"]', "nomatch"),
    ("in an empty list, without a look at the value", f"{GONE} in []", "nomatch"),
    ("in a map", f"{S} in {{'fish': 1}}", "match"),
    ("no key can be a list", "dyn([1]) in dyn({1: 1})", "nomatch"),
    ("in a text is an error", f"1 in {S}", "error"),
    ("a version in literals is an error", f"{D}.v in ['1.2.3']", "error"),
    ("bytes in literals are", "dyn(b'a') in ['a']", "error"),
    ("a quantity in literals is in none", "dyn(device.capacity['d'].q) in ['a']", "nomatch"),
    (
        "list index",
        f"{D}.ints[0] == 3 && {D}.ints[2] == 2 && [1, 2][dyn(1.0)] == 2 && [1, 2][dyn(1u)] == 2",
        "match",
    ),
    ("out of range", f"{D}.ints[3] == 1", "error"),
    ("below", f"{D}.ints[-1] == 1", "error"),
    ("between", "[1, 2][dyn(0.5)] == 1", "error"),
    ("by a text", f"{D}.ints['a'] == 1", "error"),
    ("map index", "{'a': 1}['a'] == 1 && {'a': 1}.a == 1 && {true: 1}[true] == 1", "match"),
    ("a key that is not there", "{'a': 1}['b'] == 1", "error"),
    ("a key twice", "{'a': 1, 'a': 2}.size() == 2", "error"),
    ("index of a number", f"{I}[0] == 1", "error"),
    ("a field of a number", f"{I}.x == 1", "error"),
    ("has() in a list is an error", f"has({D}.ints.x)", "error"),
    ("!= turns any error of equality into true", f"{D}.v != '1.2.3' && {D}.v != 1", "match"),
    ("== does not", f"{D}.v == '1.2.3'", "error"),
    ("from the left a text is just another type", f"'1.2.3' == {D}.v", "nomatch"),
    ("null equals null only", "dyn(null) == null && dyn(1) != null", "match"),
    ("an error in a list does not make it unequal", f"[dyn({D}.v)] == [dyn('1.2.3')]", "match"),
    ("nor in a map", f"{{1: dyn({D}.v)}} == {{1: dyn('1.2.3')}}", "match"),
    ("types are equal by name", "type(1) == type(2) && type(1) != type('a')", "match"),
    ("bind is lazy", f"cel.bind(x, {GONE}, true)", "match"),
    ("its error comes when it is read", f"cel.bind(x, {GONE}, x == 1)", "error"),
    ("and again", f"cel.bind(x, {GONE}, (x == 1 || true) && x == 1)", "error"),
    ("bind in bind", "cel.bind(x, 1, cel.bind(y, x + 1, y == 2 && x == 1))", "match"),
    ("bind of a bind", "cel.bind(x, cel.bind(x, 1, x + 1), x == 2)", "match"),
]


@pytest.mark.parametrize(
    ("reason", "expression", "expected"), CASES, ids=[f"{n}: {c[0]}" for n, c in enumerate(CASES)]
)
def test_operators(reason: str, expression: str, expected: str) -> None:
    assert outcome(expression).kind == expected, (reason, outcome(expression).message)


MESSAGES = [
    ("1 / device.attributes['d'].zero == 1", "division by zero"),
    ("1 % device.attributes['d'].zero == 1", "modulus by zero"),
    ("device.attributes['d'].max + 1 == 1", "integer overflow"),
    ("0u - 1u == 1u", "unsigned integer overflow"),
    ("device.attributes['d'].s + 1 == 1", "no such overload: string + int"),
    ("device.attributes['d'].s - 1 == 1", "no such overload: string - int"),
    ("device.attributes['d'].s * 1 == 1", "no such overload: string * int"),
    ("device.attributes['d'].s / 1 == 1", "no such overload: string / int"),
    ("device.attributes['d'].s % 1 == 1", "no such overload: string % int"),
    ("device.attributes['d'].i.startsWith('a')", "no such overload: startsWith(int, string)"),
    ("device.attributes['d'].s", "the result is a string, not a bool"),
    ("device.attributes['d'].i.all(x, true)", "a int is nothing to iterate over"),
    ("{'a': 1, 'a': 2} == {}", "Failed with repeated key: a"),
    ("[1, 2][5] == 1", "index out of bounds: 5"),
    ("device.attributes['d'].v == 1", "no such overload"),
]


@pytest.mark.parametrize(("expression", "message"), MESSAGES)
def test_runtime_errors_say_what_went_wrong(expression: str, message: str) -> None:
    found = outcome(expression)
    assert (found.kind, found.message) == ("error", message)


def test_the_first_error_is_the_one_reported() -> None:
    assert "gone" in outcome(f"{GONE} == 1 && 1 / 0 == 1").message


def test_absorption_reaches_the_last_of_many_terms() -> None:
    assert says(f"{GONE} == 1 || " * 20 + "true") == "match"

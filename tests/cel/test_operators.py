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
        "dyn({1: 'a'}) == dyn({1u: 'a'}) && {1: 'a'}[dyn(1u)] == 'a' && {1: 'a'}[dyn(1.0)] == 'a'",
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
    ("durations are subtracted", "duration('3s') - duration('1s') == duration('2s')", "match"),
    ("lists have none", f"{D}.ints < {D}.ints", "error"),
    ("a list and a number do not add up", "[1] + dyn(1) == [1]", "error"),
    ("nor the other way", "dyn(1) + [1] == [1]", "error"),
    ("addition overflows", f"{D}.max + 1 > 0", "error"),
    ("subtraction overflows", f"{D}.min - 1 < 0", "error"),
    ("multiplication overflows", f"{D}.max * 2 > 0", "error"),
    ("negation overflows", f"-{D}.min > 0", "error"),
    ("division overflows", f"{D}.min / -1 > 0", "error"),
    ("the remainder of it too", f"{D}.min % -1 == 0", "error"),
    (
        "a minus before the lowest integer is its sign, after another minus too",
        "-1 - -9223372036854775808 == 9223372036854775807",
        "match",
    ),
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
    (
        "a plain value beside a quantity in a list",
        f"dyn({I}) in [dyn(quantity('1Gi')), dyn(42)] && dyn({S}) in [dyn(device.capacity['d'].q), dyn('fish')]",
        "match",
    ),
    ("and where it is not", f"dyn({I}) in [dyn(quantity('1Gi')), dyn(41)]", "nomatch"),
    (
        "sets of both",
        "sets.contains([dyn(quantity('1Gi')), dyn(1)], [dyn(1)]) && !sets.intersects([dyn(1)], [dyn(quantity('1'))])",
        "match",
    ),
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
    ("a key twice", "{'a': 1, 'a': 2}.a == 2", "match"),
    ("a double is found by a double only", "dyn({1: 'a'}) == dyn({1.0: 'a'})", "nomatch"),
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
    ("[1, 2][5] == 1", "index out of bounds: 5"),
    ("device.attributes['d'].v == 1", "no such overload"),
    ("double(device.attributes['d'].s) == 1.0", "type conversion error from 'string' to 'double': 'fish'"),
    ("int(device.attributes['d'].s) == 1", "type conversion error from 'string' to 'int': 'fish'"),
    ("uint(device.attributes['d'].s) == 1u", "type conversion error from 'string' to 'uint': 'fish'"),
    ("bool(device.attributes['d'].s)", "type conversion error from 'string' to 'bool': 'fish'"),
    ("int(device.attributes['d'].max + dyn(1)) == 1", "integer overflow"),
    ("device.attributes['d'].i * 1.0 == 1.0", "no such overload: int * double"),
    ("uint(device.attributes['d'].neg) == 1u", "unsigned integer overflow"),
    ("uint(double(device.attributes['d'].neg)) == 1u", "unsigned integer overflow"),
    ("int(double(device.attributes['d'].max)) == 1", "integer overflow"),
    (
        f"url('{'a' * 81}').getHost() == ''",
        f'URL parse error during conversion from string: parse "{"a" * 80}": invalid URI for request',
    ),
    (
        f"int(device.attributes['d'].s + '{'a' * 37}') == 1",
        f"type conversion error from 'string' to 'int': 'fish{'a' * 36}'",
    ),
    ("device.attributes['d'].min % -1 == 0", "integer overflow"),
    ("dyn([1]).unwrapOpt() == []", "no such overload: unwrapOpt(list)"),
    ("{b'a': 1} == {}", "a bytes cannot be looked up"),
    ("dyn([1, 2]).join() == ''", "no such overload: join(list)"),
    ("dyn([dyn('a'), dyn(2)]).join() == ''", "no such overload: join: an element is not a string"),
    ("[1].slice(-1, 0) == []", "cannot slice(-1, 0), negative indexes not supported"),
    (
        "[1, 2].slice(2, 1) == []",
        "cannot slice(2, 1), start index must be less than or equal to end index",
    ),
    ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
    ("dyn([[1]]).flatten(-1) == [1]", "level must be non-negative"),
    ("dyn([1]).flatten(dyn('x')) == [1]", "no such overload: list.flatten(string)"),
    ("[].max() == 1", "max called on empty list"),
    ("[].min() == 1", "min called on empty list"),
    ("dyn([dyn(1), dyn('a')]).sort() == []", "list elements must have the same type"),
    ("dyn([[1], [2]]).sort() == []", "list elements must be comparable"),
    ("device.attributes['d'].vers.sortBy(x, x) == []", "list elements must be comparable"),
    (
        "lists.range(60).includes(48)",
        "'includes' function cannot be applied to lists longer than 48 values",
    ),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("'abc'.charAt(4) == ''", "index out of range: 4"),
    ("'abc'.indexOf('a', -1) == 0", "index out of range: -1"),
    ("'abc'.lastIndexOf('a', -1) == 0", "index out of range: -1"),
    ("'abc'.substring(4) == ''", "index out of range: 4"),
    ("'abc'.substring(0, 4) == ''", "index out of range: 4"),
    ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
    ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
    ("[1, 2][dyn(0.5)] == 1", "unsupported index type 'double' in list"),
    ("[1, 2][dyn('a')] == 1", "unsupported index type 'string' in list"),
    ("{'a': 1}['b'] == 1", "no such key: b"),
    ("{'a': 1}.b == 1", "no such key: b"),
    ("has(device.attributes['d'].ints.x)", "unsupported index type 'string' in list"),
    ("device.attributes['d'].i.x == 1", "no such overload: int[string]"),
    ("device.attributes['d'].i[0] == 1", "no such overload: int[int]"),
    ("dyn([1])[?device.attributes['d'].v].hasValue()", "invalid qualifier type: kubernetes.Semver"),
    ("!device.attributes['d'].i", "no such overload: !int"),
    ("-device.attributes['d'].s == 1", "no such overload: -string"),
    ("1 in device.attributes['d'].s", "no such overload: in string"),
    ("device.attributes['d'].s < 1", "no such overload: string and int have no order"),
    ("device.attributes['d'].s ? true : true", "no such overload: string is not a bool"),
    ("device.attributes['d'].s && true", "no such overload: string is not a bool"),
    ("device.attributes['d'].ints.all(x, dyn(x))", "no such overload: int is not a bool"),
    ("device.attributes['d'].ints.filter(x, dyn(x)) == []", "no such overload: int is not a bool"),
    ("device.attributes['d'].i.all(k, v, true)", "a int is nothing to iterate over"),
    ("[1, 2].transformMapEntry(i, v, {'a': v}) == {}", "insert failed: key a already exists"),
    ("[1].transformMapEntry(i, v, dyn(v)) == {}", "no such overload: int is not a map of one entry"),
    ("optional.none().or(dyn(1)).hasValue()", "no such overload: hasValue(int)"),
    ("dyn(1).optMap(x, x).hasValue()", "no such overload: int.optMap"),
    ("optional.of(1).optFlatMap(x, dyn(x)).hasValue()", "no such overload: hasValue(int)"),
    ("[?dyn(1).or(optional.of(1))] == [1]", "no such overload: an optional element needs an optional"),
    (
        "device.attributes['d'].v in ['1.2.3']",
        "a kubernetes.Semver cannot be looked up in a list of literals",
    ),
    (
        "(true ? optional.of(quantity('1')) : optional.none()).value().isInteger()",
        "unsupported conversion of an optional kubernetes.Quantity",
    ),
    (
        "ip(device.attributes['d'].s).family() == 4",
        'IP Address "fish" parse error during conversion from string',
    ),
    (
        "ip('fe80::1%en0').family() == 6",
        'IP address "fe80::1%en0" with a zone or mapped from IPv4 is not allowed',
    ),
    (
        "cidr('10.0.0.0').prefixLength() == 8",
        'network address parse error during conversion from string: "10.0.0.0"',
    ),
    (
        "cidr('10.0.0.0/33').prefixLength() == 8",
        'network address parse error during conversion from string: "10.0.0.0/33"',
    ),
    (
        "url('h.io').getHost() == ''",
        'URL parse error during conversion from string: parse "h.io": invalid URI for request',
    ),
    (
        "device.attributes['d'].s.matches(device.attributes['d'].s + '[')",
        "error parsing regexp: missing ]: [",
    ),
    (
        "timestamp(0).getHours('Europe/Berlin') == 1",
        "unknown time zone 'Europe/Berlin': write an offset such as +02:00",
    ),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "timestamp overflow"),
    ("duration('2562047h') + duration('2562047h') > duration('1s')", "integer overflow"),
    ("quantity('x') == quantity('1')", "not a quantity: 'x'"),
    ("quantity('1KK') == quantity('1')", "unable to parse the suffix of the quantity '1KK'"),
    ("quantity('Ei') == quantity('1')", "unable to parse the number of the quantity 'Ei'"),
    ("quantity('1e5001') == quantity('1')", "the exponent of the quantity '1e5001' is beyond 5000"),
    ("quantity('0.5').asInteger() == 1", "cannot convert value to integer"),
    ("semver('1.2') == semver('1.2.0')", "not a semantic version (major.minor.patch): '1.2'"),
    ("semver('1.2.3-01') == semver('1.2.3')", "a number of the prerelease of '1.2.3-01' has a leading zero"),
    (
        "semver('18446744073709551616.0.0').major() == 1",
        "a number of the version '18446744073709551616.0.0' does not fit in 64 bits",
    ),
    (
        "semver('1.2-rc', true).major() == 1",
        "the short version '1.2-rc' cannot have a prerelease or build metadata",
    ),
    (
        "'%s'.format([dyn(device.capacity['d'].q)]) == ''",
        "error during formatting: %s does not take a kubernetes.Quantity",
    ),
    (
        "'%s'.format([[dyn(device.capacity['d'].q)]]) == ''",
        "no formatting function for kubernetes.Quantity",
    ),
    ("'%d'.format([dyn('a')]) == ''", "error during formatting: %d does not take a string"),
    ("('%' + 'd').format([]) == ''", "index 0 out of range"),
    ("('a' + '%').format([]) == ''", "unexpected end of string"),
    (
        "('%' + 'y').format([1]) == ''",
        'could not parse formatting clause: unrecognized formatting clause "y"',
    ),
    ("'%s'.format(dyn(1)) == ''", "no such overload: format(string, int)"),
]


@pytest.mark.parametrize(("expression", "message"), MESSAGES)
def test_runtime_errors_say_what_went_wrong(expression: str, message: str) -> None:
    result = outcome(expression)
    assert (result.kind, result.message) == ("error", message)


def test_the_first_error_is_the_one_reported() -> None:
    assert "gone" in outcome(f"{GONE} == 1 && 1 / 0 == 1").message


def test_absorption_reaches_the_last_of_many_terms() -> None:
    assert says(f"{GONE} == 1 || " * 20 + "true") == "match"

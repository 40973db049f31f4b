"""What the API server would refuse is refused here, with the place and what was expected."""

import pytest

from function.cel import CompileError, compile_device
from tests.cel.devices import says

MISTAKES = [
    ("an unknown name", "foo == 1", 1, "undeclared reference to 'foo'"),
    ("an unknown function, at its parenthesis", "true || foo(1)", 12, "undeclared reference to 'foo'"),
    ("an unknown method", 'device.capacity["d"].q.nosuch()', 30, "undeclared reference to 'nosuch'"),
    ("an unknown field, at its dot", "device.nosuch", 7, "undefined field 'nosuch'"),
    ("a field of a string", "device.driver.x == 1", 14, "does not support field selection"),
    ("a field of a version", 'semver("1.0.0").major == 1', 16, "does not support field selection"),
    ("equality of two types, at the operator", "device.driver == 1", 15, "'_==_' applied to '(string, int)'"),
    ("int and double are two types for ==", "1 == 1.0", 3, "'_==_' applied to '(int, double)'"),
    ("quantity and text", 'device.capacity["d"].q == "80Gi"', 24, "(kubernetes.Quantity, string)"),
    ("quantities have no order operators", 'device.capacity["d"].q > quantity("1")', 24, "'_>_'"),
    ("quantity and semver", 'quantity("1") == semver("1.0.0")', 15, "kubernetes.Semver"),
    ("a string and null", "device.driver != null", 15, "(string, null)"),
    (
        "a receiver that must be an argument",
        'device.capacity["d"].q.sign() == 1',
        28,
        "kubernetes.Quantity.()",
    ),
    (
        "an argument that must be the receiver",
        'compareTo(quantity("1"), quantity("2")) == 0',
        10,
        "'compareTo'",
    ),
    ("a wrong number of arguments", 'device.driver.contains("a", "b")', 23, "string.(string, string)"),
    ("a wrong argument", "device.driver.contains(1)", 23, "string.(int)"),
    ("&& wants bools", "true && 1", 9, "expected type 'bool' but found 'int'"),
    ("! wants a bool", '!"a"', 1, "'!_' applied to '(string)'"),
    ("branches of two types", "true ? 1 : 'a'", 6, "'_?_:_'"),
    ("a list of two types", '[1, "a"].size() == 2', 5, "expected type 'int' but found 'string'"),
    (
        "dyn is a type of its own in a list",
        "[dyn(1), 2].size() == 2",
        10,
        "expected type 'dyn' but found 'int'",
    ),
    (
        "map values of two types",
        '{"a": 1, "b": "c"}.size() == 2',
        15,
        "expected type 'int' but found 'string'",
    ),
    ("map keys of two types", "{1: 1, 'a': 1}.size() == 2", 8, "expected type 'int' but found 'string'"),
    ("a result that is no bool", "device.driver", 1, "must evaluate to bool or the unknown type, not string"),
    ("a result that is null", "null", 1, "not null"),
    ("a range that is none", "'abc'.all(x, true)", 1, "cannot be range of a comprehension"),
    ("a loop variable that is no name", "[1].all(a.b, true)", 10, "argument must be a simple name"),
    ("the same variable twice", "[1].all(x, x, true)", 12, "duplicate variable name: x"),
    ("the accumulator's name", "[1].all(__result__, true)", 9, "overwrites accumulator"),
    ("a bind to no name", "cel.bind(a.b, 1, true)", 11, "simple identifiers"),
    ("bind without a body", "cel.bind(1, 1)", 1, "undeclared reference to 'cel'"),
    ("a predicate that is no bool", "[1].all(x, x)", 12, "expected type 'bool' but found 'int'"),
    ("has() of an index", 'has(device["driver"])', 11, "invalid argument to has() macro"),
    ("a reserved word", "let == 1", 1, "reserved identifier: let"),
    ("a reserved function", "while(1)", 1, "reserved identifier: while"),
    ("an escape that is none", r'"a\d" == "a"', 1, "bad escape"),
    ("a string that does not end", 'device.driver == "a', 18, "does not end"),
    ("a number with a bare point", "5. == 5.0", 4, "unexpected"),
    ("a leading plus", "+1 == 1", 1, "unexpected '+'"),
    ("a stray character", "true; false", 5, "unexpected ';'"),
    ("a backtick", "device.`a`", 8, "unsupported syntax: '`'"),
    ("a parenthesis too many", "true)", 5, "unexpected ')'"),
    ("a parenthesis too few", "(true", 6, "ends too early"),
    ("nothing", "", 1, "ends too early"),
    ("a comment of blocks", "true /* x */", 7, "unexpected"),
    ("a field called in", "device.in", 8, "unexpected 'in'"),
    ("an int beyond 64 bits", "9223372036854775808 == 1", 1, "invalid int literal"),
    ("a uint beyond 64 bits", "18446744073709551616u == 1u", 1, "invalid uint literal"),
    ("a negative uint", "-1u == 1u", 1, "no matching overload for '-_' applied to '(uint)'"),
    ("a double out of range", "1e999 == 1.0", 1, "invalid double literal"),
    ("an escape for half of a surrogate pair", r'"\ud800" == ""', 1, "invalid unicode code point"),
    ("half of a surrogate pair", '"\ud800" == ""', 2, "half of a surrogate pair"),
    ("half of a surrogate pair in bytes", 'b"\ud800" == b""', 3, "half of a surrogate pair"),
    ("a code point beyond the last", r'"\U00110000" == ""', 1, "invalid unicode code point"),
    ("unicode in bytes", r'b"\u0041" == b"A"', 1, "invalid bytes literal"),
    ("a literal regex that is none", 'device.driver.matches("[")', 23, "invalid matches argument"),
    ("a look-behind, which RE2 has not", r'matches("a", "(?<=a)b")', 14, "invalid matches argument"),
    ("a literal regex for find", '"a".find("(") == ""', 10, "invalid find argument"),
    ("a literal duration that is none", 'duration("1d") == duration("1h")', 10, "invalid duration argument"),
    ("a literal timestamp that is none", 'timestamp("x") == timestamp(0)', 11, "invalid timestamp argument"),
    ("a literal conversion that fails", 'int("0x1F") == 31', 5, "invalid int argument"),
    ("one that overflows", "int(1e19) == 1", 5, "integer overflow"),
    ("one to uint", "uint(-1) == 1u", 6, "unsigned integer overflow"),
    ("one to bool", 'bool("maybe")', 6, "invalid bool argument"),
    ("an index that is no index", "[1][b''] == 1", 4, "'_[_]'"),
    ("a constant index of bytes", "[1][dyn(b'')] == 1", 8, "invalid qualifier type: bytes"),
    ("a message that does not exist", "Msg{a: 1} == 1", 4, "undeclared reference to 'Msg'"),
    ("a field that a wrapper has not", "google.protobuf.Int32Value{v: 1} == 1", 31, "undefined field 'v'"),
    (
        "a field of another type",
        "google.protobuf.Int32Value{value: 'a'} == 1",
        35,
        "expected type of field 'value'",
    ),
    ("a message of no name", "(1){a: 1} == 1", 4, "needs a type name"),
    ("sortBy of a map", "{1: 2}.sortBy(x, x) == []", 1, "sortBy cannot sort a map"),
    ("sortBy a list", "[1].sortBy(x, [x]) == []", 15, "sortBy cannot sort a list(int) by a list(int)"),
    ("an optional element that is none", "[?1].size() == 1", 3, "expected type 'optional_type(int)'"),
    ("an optional entry that is none", "{?1: 1}.size() == 1", 6, "expected type 'optional_type(int)'"),
    ("optMap of no optional", "dyn(1) == [1].optMap(x, x)", 21, "'hasValue'"),
    (
        "optFlatMap to no optional",
        "optional.of(1).optFlatMap(x, x).hasValue()",
        30,
        "optFlatMap needs an optional",
    ),
    ("transformMapEntry to no map", "{1: 2}.transformMapEntry(k, v, k) == {}", 32, "map of one entry"),
    ("format: an unknown verb", '"%y".format([1]) == ""', 13, 'unrecognized formatting clause "y"'),
    ("format: too few values", '"%s %s".format([1]) == ""', 16, "index 1 out of range"),
    ("format: too many values", '"%s".format([1, 2]) == ""', 13, "too many arguments"),
    ("format: a value of another type", '"%d".format(["a"]) == ""', 13, "%d does not take a string"),
    ("math is in no version", "math.greatest(1, 2) == 2", 1, "undeclared reference to 'math'"),
    ("base64 is in no version", 'base64.encode(b"a") == ""', 1, "undeclared reference to 'base64'"),
    ("has() of a type's name", "has(net.IP)", 5, "undeclared reference to 'net'"),
    (
        "a list of two types beside a format",
        '"%d".format([1]) == "1" && [1, "a"].size() == 2',
        32,
        "expected type 'int' but found 'string'",
    ),
    ("a filter that is no bool", "[1].filter(x, x) == []", 15, "expected type 'bool' but found 'int'"),
    ("a map's filter that is none", "[1].map(x, x, 2) == []", 12, "expected type 'bool' but found 'int'"),
    ("a list that no type converts", "int(dyn([1])) == 1", 4, "no such overload: int(list)"),
    (
        "bytes that are no text",
        r"string(b'\xff') == ''",
        8,
        "invalid string argument: invalid UTF-8 in bytes, cannot convert to string",
    ),
    ("a hexadecimal double out of range", "double('0x1p99999') == 1.0", 8, "'double': '0x1p99999'"),
    ("a double out of range as a text", "double('1e999') == 1.0", 8, "'double': '1e999'"),
    ("a text that is no double", "double('1..0') == 1.0", 8, "'double': '1..0'"),
    ("the least int as a double", "int(-9223372036854775808.0) == 1", 5, "integer overflow"),
    ("null and an int", "null == 1", 6, "applied to '(null, int)'"),
    ("an int and null", "1 == null", 3, "applied to '(int, null)'"),
    ("an optional and an int", "optional.of(1) + 1 == 1", 16, "applied to '(optional_type(int), int)'"),
    (
        "a day that does not exist",
        "timestamp('2023-02-29T00:00:00Z') == timestamp(0)",
        11,
        "'2023-02-29T00:00:00Z' is not a day that exists",
    ),
    (
        "a second that does not",
        "timestamp('2023-01-01T23:59:60Z') == timestamp(0)",
        11,
        "'2023-01-01T23:59:60Z' is not a time that exists",
    ),
    ("no timestamp at all", "timestamp('x') == timestamp(0)", 11, "'x' is not an RFC 3339 timestamp"),
    ("no duration at all", "duration('x') == duration('1s')", 10, "'x' is not a duration"),
    ("strings have no reverse", '"ab".reverse() == "ba"', 13, "string.()"),
]


@pytest.mark.parametrize(("reason", "expression", "column", "part"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_has_a_place_and_says_what_was_expected(
    reason: str, expression: str, column: int, part: str
) -> None:
    with pytest.raises(CompileError) as caught:
        compile_device(expression)
    assert part in caught.value.message, reason
    assert (caught.value.line, caught.value.column) == (1, column), reason
    assert str(caught.value) == f"1:{column}: {caught.value.message}"


FINE = [
    ("different types have an order, if numbers", "1 < 1.5 && 2u > 1 && 1.5 >= 1u", "match"),
    (
        "a dyn in either branch makes dyn of both",
        "(true ? dyn('a') : 1) == 'a' && (false ? 1 : dyn('a')) == 'a'",
        "match",
    ),
    (
        "a dyn in a list in either branch",
        "(false ? [1] : [dyn('a')])[0] == 'a' && (true ? [dyn('a')] : [1])[0] == 'a'",
        "match",
    ),
    (
        "a dyn before a wrapper",
        "(true ? dyn('a') : google.protobuf.Int32Value{value: 1}) == 'a'",
        "match",
    ),
    ("null before a time makes null of both", "(true ? null : timestamp(0)) == duration('1s')", "nomatch"),
    ("after it the time stays", "(true ? timestamp(0) : null) == duration('1s')", "compile"),
    ("an empty list fits any", "(true ? [] : [1]) == [] && [[], [1]].size() == 2", "match"),
    ("trailing commas in lists and maps", "[1,] == [1] && {1: 2,} == {1: 2}", "match"),
    ("and in messages", "google.protobuf.Int32Value{value: 1,} == 1", "match"),
    ("comments to the end of the line", "true // || false\n&& false", "nomatch"),
    ("white space anywhere", "device . driver\t==\n'd'", "match"),
    ("format takes a list of any types", '"%d-%s".format([1, "x"]) == "1-x"', "match"),
    ("also below it", '"%s".format([[1, "x"]]) == "[1, \\"x\\"]"', "match"),
    ("quantity of a bad text is a runtime error", 'quantity("bad") == quantity("1")', "error"),
    ("semver of a bad text is a runtime error", 'semver("x") == semver("1.0.0")', "error"),
    ("a variable may hide the device", "cel.bind(device, 1, device == 1)", "match"),
    (
        "or the first name of a type",
        "[{'protobuf': {'Timestamp': 1}}].all(google, google.protobuf.Timestamp == 1)",
        "match",
    ),
    ("a bound name is no name of a type, read or not", "optional.of(int).optMap(x, 1).hasValue()", "compile"),
    ("a type is a value", "type(1) == int && type([1]) == list && type(1u) == uint", "match"),
    ("also one with a dotted name", "type(timestamp(0)) == google.protobuf.Timestamp", "match"),
    ("and of an address", 'type(ip("10.0.0.1")) == net.IP', "match"),
    ("a leading dot", "[1].all(x, .x == 1)", "match"),
    (
        "all escapes",
        r'"\a\b\f\n\r\t\v\\\?\"\'\`\x41\101\u0041\U00000041" == "\a\b\f\n\r\t\v\\?\"' + "'`" + 'AAAA"',
        "match",
    ),
    ("raw strings", r'r"\d" == "\\d" && R' + r"'\n'.size() == 2", "match"),
    ("triple quotes", '"""a"b\n""" == "a\\"b\\n"' + " && '''x''' == \"x\"", "match"),
    ("returns in triple quotes become newlines", "'''a\r\nb\rc''' == 'a\\nb\\nc'", "match"),
    (
        "bytes",
        r'b"\x41\101A\n" == bytes("AAA\n") && b"é".size() == 2 && br' + r"'\n'.size() == 2",
        "match",
    ),
    ("bytes among escapes", r"b'a\x41b\\' == b'aAb\\'" + r" && b'\303\277' == bytes('\xff')", "match"),
    ("hexadecimal", "0x1F == 31 && -0x1f == -31 && 0xFu == 15u", "match"),
    ("leading zeros", "007 == 7", "match"),
    ("doubles", ".5 == 0.5 && 1e3 == 1000.0 && 1.5e-1 == 0.15 && -.5 < 0.0", "match"),
    ("the least int", "-9223372036854775808 < 0", "match"),
    ("double negation cancels out", "!!true && --1 == 1 && !!!false", "match"),
    ("a minus for a name", "[1].all(x, -x == -1)", "match"),
    ("in binds as a relation", "!(1 in [2]) && 1 in [1] == true", "match"),
    ("relations are left to right", "1 < 2 == true", "match"),
    ("precedence of && over ||", "true || false && false", "match"),
    (
        "precedence of * over +",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 - 2 - 1 == 4 && 8 / 4 / 2 == 1",
        "match",
    ),
    ("the ternary nests to the right", "false ? false : true ? true : false", "match"),
    ("empty literals", "[] == [] && {} == {} && [,] == []", "match"),
    (
        "wrappers are their values",
        "google.protobuf.Int32Value{value: 1} == 1 && google.protobuf.BoolValue{} != null",
        "match",
    ),
    (
        "an empty wrapper is zero",
        "google.protobuf.StringValue{} == '' && google.protobuf.DoubleValue{} == 0.0",
        "match",
    ),
    ("a wrapper is no bool", "google.protobuf.BoolValue{value: true}", "compile"),
    ("a Value may be one", "google.protobuf.Value{bool_value: true}", "match"),
    (
        "lists and objects as messages",
        "google.protobuf.ListValue{values: [1]} == [1] && google.protobuf.Struct{} == {}",
        "match",
    ),
]


@pytest.mark.parametrize(("reason", "expression", "expected"), FINE, ids=[case[0] for case in FINE])
def test_what_compiles(reason: str, expression: str, expected: str) -> None:
    assert says(expression) == expected, reason


def test_the_place_on_a_later_line() -> None:
    with pytest.raises(CompileError) as caught:
        compile_device("true &&\n  device.drivr == 'a' ||\nfalse")
    assert (caught.value.line, caught.value.column) == (2, 9)
    assert caught.value.caret() == "  device.drivr == 'a' ||\n        ^"
    assert str(caught.value).startswith("2:9: undefined field 'drivr': device has driver, attributes, ")


def test_the_caret_stands_under_the_place_after_tabs() -> None:
    with pytest.raises(CompileError) as caught:
        compile_device("true &&\r\n\t\tfoo\r\n")
    assert caught.value.caret() == "\t\tfoo\n\t\t^"


def test_a_line_that_just_fits_is_shown_whole() -> None:
    line = "true && " * 14 + "foo      "
    assert len(line) == 121
    for shown, text in ((line[:-1], line[:-1]), (line[52:], line)):
        with pytest.raises(CompileError) as caught:
            compile_device(text)
        assert caught.value.caret().split("\n")[0] == shown


def test_a_long_line_is_cut_around_the_caret() -> None:
    with pytest.raises(CompileError) as caught:
        compile_device("true && " * 100 + "foo" + " && true" * 100)
    shown, caret = caught.value.caret().split("\n")
    assert len(shown) == 120
    assert caret == " " * 60 + "^"
    assert shown[60:63] == "foo"

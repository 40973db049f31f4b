"""Quantities: the grammar as it is, the two forms, saturation and rounding; and their laws as properties."""
# ruff: noqa: E501 - a case is one line

import re
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from function.cel.library.quantity import Quantity, quantity
from function.cel.values import EvaluationError
from tests.cel.devices import MIXED, bound, compile_device, says

ZERO = ["0", "-0", "00", "+", "-", ".", "Mi", "k", "E", "e3", ".Gi", "-.", "0.0", "000.000Ki", "-e3", "0e99"]
REFUSED = [
    "",
    "K",
    "1K",
    "1KI",
    "Ei1",
    "1 Gi",
    " 1",
    "1 ",
    "1EE",
    "e",
    "1e",
    "1e1.5",
    "1e3Ki",
    "1m1",
    "1M-1",
    "0x10",
]
REFUSED += [
    "Ei",
    "Pi",
    "1,000",
    "1\n",
    "NaN",
    "inf",
    "1gi",
    "1GI",
    "--1",
    "+-1",
    "1.2.3",
    "1e+",
    "\u0661",
    "1e9999",
    "1e5001",
]
EQUAL = [
    ("a milli of a thousand", "1000m", "1"),
    ("a mebi", "1Mi", "1048576"),
    ("half of one", "0.5Mi", "524288"),
    ("a sign", "+1", "1"),
    ("leading zeros", "0001.50", "1500m"),
    ("decimal suffixes", "1E", "1000P"),
    ("down", "1k", "1000000000000n"),
    ("micro", "1u", "1000n"),
    ("exponents", "12e6", "12M"),
    ("capital exponents", "12E6", "12M"),
    ("negative exponents", "15e-1", "1500m"),
    ("exponents with a sign", "1e+3", "1k"),
    ("binary suffixes", "1Ti", "1024Gi"),
    ("and the largest that fits", "7Ei", "8070450532247928832"),
    ("binary suffixes saturate", "8Ei", "9Ei"),
    ("at the greatest int", "8Ei", "9223372036854775807"),
    ("below zero, too", "-9Ei", "-9223372036854775807"),
    ("decimal suffixes do not saturate", "1000E", "1e21"),
    ("below nano rounds away from zero", "0.0000000001", "1n"),
    ("below zero, too", "-0.0000000001", "-1n"),
    ("at the edge", "1.0000000001n", "2n"),
    ("any depth", "1e-99", "1n"),
    ("exactly nano stays", "0.000000001", "1n"),
    ("a fraction of a binary suffix", "1.5Gi", "1536Mi"),
    ("far below a binary unit", "0.0000000000000001Ki", "1n"),
    ("an exponent that wraps as int32", "1e4294967297", "10"),
]
INTEGERS = [
    ("1", 1),
    ("1k", 1000),
    ("80Gi", 85899345920),
    ("1e3", 1000),
    ("1E", 10**18),
    ("-5", -5),
    ("0", 0),
    ("9E", 9 * 10**18),
    ("9" * 18, 10**18 - 1),
    ("0" * 9 + "9" * 18, 10**18 - 1),
    ("9" * 11 + "Ki", (10**11 - 1) * 2**10),
    ("9" * 8 + "Mi", (10**8 - 1) * 2**20),
    ("9" * 5 + "Gi", (10**5 - 1) * 2**30),
    ("99Ti", 99 * 2**40),
]
NOT_INTEGERS = [
    "1000000000000000000",
    "100000000000Ki",
    "100000000Mi",
    "100000Gi",
    "100Ti",
    "1Pi",
    "1000m",
    "0.5Mi",
    "1.5Gi",
    "1.0",
    "7Ei",
    "0.5",
    "1n",
    "99999999Gi",
    "100E",
    "10E",
    "9223372036854775808",
    "0.0",
]


@pytest.mark.parametrize("text", ZERO)
def test_the_grammar_is_looser_than_its_documentation(text: str) -> None:
    assert quantity(text).sign() == 0


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_parse(text: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(repr(text))):
        quantity(text)
    assert says(f"isQuantity({text!r})" if text.isprintable() and text.isascii() else "false") == "nomatch"


@pytest.mark.parametrize(("reason", "one", "two"), EQUAL, ids=[f"{n}: {c[0]}" for n, c in enumerate(EQUAL)])
def test_equal_quantities(reason: str, one: str, two: str) -> None:
    assert quantity(one).order(quantity(two)) == 0, reason
    assert says(f'quantity("{one}") == quantity("{two}")') == "match", reason


@pytest.mark.parametrize(("text", "number"), INTEGERS)
def test_integers_of_the_int64_form(text: str, number: int) -> None:
    assert quantity(text).integer() == number
    assert says(f'quantity("{text}").isInteger() && quantity("{text}").asInteger() == {number}') == "match"


@pytest.mark.parametrize("text", NOT_INTEGERS)
def test_other_forms_are_no_integers(text: str) -> None:
    assert quantity(text).integer() is None
    assert says(f'quantity("{text}").isInteger()') == "nomatch"
    assert says(f'quantity("{text}").asInteger() == 0') == "error"


def test_the_greatest_exponent_and_the_longest_text() -> None:
    assert quantity("1e5000").sign() == 1
    assert quantity("1" * 4000).sign() == 1
    with pytest.raises(EvaluationError, match="not a quantity"):
        quantity("1" * 4001)


Q = 'device.capacity["d"].q'  # 80Gi
CASES = [
    ("comparison", f'{Q}.compareTo(quantity("80Gi")) == 0 && {Q}.compareTo(quantity("81Gi")) == -1', "match"),
    ("the other way", f'{Q}.compareTo(quantity("79Gi")) == 1', "match"),
    ("more", f'{Q}.isGreaterThan(quantity("79Gi")) && !{Q}.isGreaterThan({Q})', "match"),
    ("less", f'{Q}.isLessThan(quantity("81Gi")) && !{Q}.isLessThan({Q})', "match"),
    (
        "sign is a function",
        f'sign({Q}) == 1 && sign(quantity("-1")) == -1 && sign(quantity("0")) == 0',
        "match",
    ),
    ("add a quantity", f'{Q}.add(quantity("1Gi")) == quantity("81Gi")', "match"),
    ("add an int", f"{Q}.add(1).isGreaterThan({Q})", "match"),
    ("subtract", f'{Q}.sub(quantity("1Gi")) == quantity("79Gi") && {Q}.sub(1).isLessThan({Q})', "match"),
    ("to a fraction", 'quantity("1").add(quantity("0.5")) == quantity("1500m")', "match"),
    ("add to zero", 'quantity("0").add(quantity("5")).asInteger() == 5', "match"),
    ("add zero", 'quantity("5").add(quantity("0")).asInteger() == 5', "match"),
    (
        "different powers",
        'quantity("1k").add(quantity("1")).asInteger() == 1001 && quantity("1").sub(quantity("1k")).asInteger() == -999',
        "match",
    ),
    ("beyond int64 the sum is decimal", 'quantity("9E").add(quantity("9E")).isInteger()', "nomatch"),
    ("and right", 'quantity("9E").add(quantity("9E")) == quantity("18E")', "match"),
    (
        "beyond by little as well",
        'quantity("9E").add(quantity("900000000000000000")).isInteger() || quantity("-9E").sub(quantity("900000000000000000")).isInteger()',
        "nomatch",
    ),
    (
        "and right",
        'quantity("9E").add(quantity("900000000000000000")) == quantity("9900P") && quantity("-9E").sub(quantity("900000000000000000")) == quantity("-9900P")',
        "match",
    ),
    (
        "up to the edge it is an int",
        'quantity("9E").sub(quantity("900000000000000000")).asInteger() == 8100000000000000000',
        "match",
    ),
    ("a decimal sum is no integer", 'quantity("1.5").add(quantity("1.5")).isInteger()', "nomatch"),
    ("a sum on the right has no equality", f'quantity("81Gi") == {Q}.add(quantity("1Gi"))', "error"),
    ("nor has a decimal one", 'quantity("524289") == quantity("0.5Mi").add(1)', "error"),
    ("!= makes that true", f'quantity("81Gi") != {Q}.add(quantity("1Gi"))', "match"),
    (
        "int64 compared with decimal turns decimal",
        f'{Q}.isGreaterThan(quantity("0.5Mi")) && {Q}.isInteger()',
        "nomatch",
    ),
    ("compared with int64 it does not", f'{Q}.isGreaterThan(quantity("1Mi")) && {Q}.isInteger()', "match"),
    ("the operand does not turn", f'quantity("0.5Mi").isLessThan({Q}) && {Q}.isInteger()', "match"),
    ("a decimal is no int even if whole", 'quantity("1.0").isInteger()', "nomatch"),
    ("equality does not turn it", f'({Q} == quantity("0.5Mi") || true) && {Q}.isInteger()', "match"),
    (
        "a literal is new at each evaluation",
        '[1, 2].all(x, quantity("1").isLessThan(quantity("0.5Mi")) && quantity("1").isInteger())',
        "match",
    ),
    (
        "a bound one is the same",
        'cel.bind(q, quantity("1"), q.isLessThan(quantity("0.5Mi")) && q.isInteger())',
        "nomatch",
    ),
    (
        "int64 receivers do not change by add",
        f'{Q}.add(1).isGreaterThan({Q}) && {Q} == quantity("80Gi")',
        "match",
    ),
    (
        "decimal ones do within an evaluation, up to Kubernetes 1.36",
        'cel.bind(q, quantity("0.5Mi"), q.add(1) == q)',
        "match",
    ),
    (
        "a sum turns decimal as well",
        'cel.bind(s, quantity("1").add(1), s.isLessThan(quantity("0.5Mi")) && s.isInteger())',
        "nomatch",
    ),
    (
        "and if not compared stays",
        'cel.bind(s, quantity("1").add(1), s.isInteger() && s.isInteger())',
        "match",
    ),
    (
        "a decimal sum changes by add as well",
        'cel.bind(q, quantity("0.5Mi").add(1), q.add(1).compareTo(q) == 0)',
        "match",
    ),
    (
        "what a loop compares is what the device has",
        f'(device.capacity["d"].exists(k, v, v.isLessThan(quantity("0.5Mi")) && false) || true) && {Q}.isInteger()',
        "nomatch",
    ),
    (
        "approximately",
        f'{Q}.asApproximateFloat() == 85899345920.0 && quantity("0.5").asApproximateFloat() == 0.5',
        "match",
    ),
    (
        "of a power",
        'quantity("1E").asApproximateFloat() == 1e18 && quantity("1n").asApproximateFloat() == 1e-9',
        "match",
    ),
    ("of the endless", 'quantity("1e400").asApproximateFloat() == double("inf")', "match"),
    ("below zero", 'quantity("-1e400").asApproximateFloat() == double("-inf")', "match"),
    ("written out", f'quantity("-{"9" * 400}").asApproximateFloat() == double("-inf")', "match"),
    ("a text does not compare", f'{Q}.isGreaterThan("1Gi")', "compile"),
    ("nor a version", f'{Q}.compareTo(semver("1.0.0")) == 0', "compile"),
    ("a dyn that is none", f'{Q}.compareTo(device.attributes["d"].i) == 0', "error"),
    ("quantity of a quantity", f"quantity({Q}) == {Q}", "compile"),
    ("quantity of an attribute", 'quantity(device.attributes["d"].num).asInteger() == 17', "match"),
    ("no text of it", f'string({Q}) == "80Gi"', "compile"),
    (
        "in a list of computed ones",
        f'{Q} in [quantity("80Gi")] && [quantity("1")].exists(x, x == quantity("1000m"))',
        "match",
    ),
]


@pytest.mark.parametrize(("reason", "expression", "expected"), CASES, ids=[case[0] for case in CASES])
def test_quantities(reason: str, expression: str, expected: str) -> None:
    assert says(expression) == expected, reason


def test_an_evaluation_never_changes_the_device() -> None:
    subject = bound(MIXED | {"capacity": MIXED["capacity"] | {"part": {"value": "0.5Mi"}}})
    turns = compile_device(f'{Q}.isGreaterThan(quantity("0.5Mi")) && !{Q}.isInteger()')
    sums = compile_device(
        'device.capacity["d"].half.add(1) == quantity("1.5") && device.capacity["d"].part.add(1) == device.capacity["d"].part'
    )
    fresh = compile_device(f'{Q}.isInteger() && device.capacity["d"].part == quantity("0.5Mi")')
    for _ in range(3):
        assert turns.evaluate(subject).matched
        assert sums.evaluate(subject).matched
        assert fresh.evaluate(subject).matched


DECIMALS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}
BINARIES = {"Ki": 10, "Mi": 20, "Gi": 30}


def value(made: Quantity) -> Fraction:
    number, power = made.cell
    return Fraction(number) * Fraction(10) ** power


numbers = st.integers(-(10**15), 10**15)


@given(numbers, st.sampled_from(sorted(DECIMALS)))
def test_decimal_suffixes_are_exact(number: int, suffix: str) -> None:
    assert value(quantity(f"{number}{suffix}")) == Fraction(number) * Fraction(10) ** DECIMALS[suffix]


@given(st.integers(-(10**6), 10**6), st.sampled_from(sorted(BINARIES)))
def test_binary_suffixes_are_exact(number: int, suffix: str) -> None:
    assert value(quantity(f"{number}{suffix}")) == number * 2 ** BINARIES[suffix]


@given(numbers, st.integers(-18, 18))
def test_exponents_are_exact_down_to_nano_and_round_away_from_zero(number: int, power: int) -> None:
    exact = Fraction(number) * Fraction(10) ** power
    nanos = exact * 10**9
    up = -((-abs(nanos.numerator)) // nanos.denominator)
    assert value(quantity(f"{number}e{power}")) == Fraction(up if number >= 0 else -up, 10**9)


suffixes = st.sampled_from(sorted(DECIMALS | BINARIES))
fractions = st.sampled_from(["", ".5", ".25"])
quantities = st.builds(lambda n, f, s: f"{n}{f}{s}", numbers, fractions, suffixes)


@given(quantities, quantities, quantities)
def test_the_order_is_total(one: str, two: str, three: str) -> None:
    a, b, c = map(quantity, (one, two, three))
    assert a.order(b) == -b.order(a)
    assert a.order(b) == (value(a) > value(b)) - (value(a) < value(b))
    if a.order(b) <= 0 and b.order(c) <= 0:
        assert a.order(c) <= 0


@given(quantities, quantities)
def test_sums_are_exact_and_undo_each_other(one: str, two: str) -> None:
    a, b = quantity(one), quantity(two)
    assert value(a.plus(b, 1, shares=False)) == value(a) + value(b)
    assert value(a.plus(b, -1, shares=False)) == value(a) - value(b)
    assert value(a.plus(b, 1, shares=False).plus(b, -1, shares=False)) == value(a)
    assert value(a) == value(quantity(one)), "a quantity that is shared never changes"


@given(numbers, st.integers(0, 3))
def test_the_int64_form_knows_its_integer(number: int, power: int) -> None:
    assert quantity(f"{number}e{power}").integer() == number * 10**power
    assert quantity(f"{number}{['', 'k'][power % 2]}").integer() == number * 1000 ** (power % 2)

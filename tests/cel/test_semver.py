"""Versions: strict semver 2.0 and the tolerant reading; the order as a property."""
# ruff: noqa: E501 - a case is one line

import re

import pytest
from hypothesis import given, strategies as st

from function.cel.library.quantity import semver
from function.cel.values import EvaluationError
from tests.cel.devices import says

STRICT = [
    "0.0.0",
    "1.2.3",
    "10.20.30",
    "1.0.0-0",
    "1.0.0-alpha.1",
    "1.0.0--",
    "1.0.0-0a",
    "1.0.0+01",
    "1.0.0-a+b.c",
    "18446744073709551615.0.0",
]
REFUSED = [
    "",
    "1",
    "1.2",
    "v1.2.3",
    "1.2.3.4",
    "01.2.3",
    "1.02.3",
    "1.2.03",
    "1.0.0-",
    "1.0.0+",
    "1.0.0-01",
    "1.0.0-a..b",
    "1.0.0-a_b",
]
REFUSED += [
    "1.0.0-é",
    " 1.0.0",
    "1.0.0 ",
    "1.0.0\n",
    "-1.0.0",
    "1.0.0-18446744073709551616",
    "18446744073709551616.0.0",
    "1.0.0+a+b",
    "\u0661.0.0",
    "a.b.c",
    f"{'9' * 5_000}.0.0",
    f"1.0.0-{'9' * 5_000}",
]
ASCENDING = [
    "0.0.1",
    "0.1.0",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "2.0.0",
    "10.0.0",
]
NORMALIZED = [
    ("v1.2.3", "1.2.3"),
    ("1.2", "1.2.0"),
    ("1", "1.0.0"),
    ("v1", "1.0.0"),
    ("01.002.0003", "1.2.3"),
    ("00", "0.0.0"),
    ("1.2.00", "1.2.0"),
    ("v01.0", "1.0.0"),
    ("1.2.03-rc.1", "1.2.3-rc.1"),
]
NOT_NORMALIZED = [
    "V1.0.0",
    "vv1.0.0",
    "1.2.3-01",
    "1.2.3.4",
    "",
    ".1.2",
    "1.2-rc",
    "1+b",
    "1.2+b",
    "v",
    " v1",
]


@pytest.mark.parametrize("text", STRICT)
def test_what_is_a_version(text: str) -> None:
    assert says(f'isSemver("{text}") && semver("{text}") == semver("{text}")') == "match"


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_none(text: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(repr(text))):
        semver(text)


@pytest.mark.parametrize("text", [f"1.0.0-{'a' * 10_235}", f"1.0.0-{'a.' * 10_000_000}a", "9" * 10_000_000])
def test_what_is_too_long_to_be_one_is_not_even_quoted(text: str) -> None:
    for normalize in (False, True):
        with pytest.raises(EvaluationError, match=r"^not a semantic version, longer than 10240 characters$"):
            semver(text, normalize)


@pytest.mark.parametrize(("text", "meant"), NORMALIZED)
def test_normalization(text: str, meant: str) -> None:
    assert says(f'semver("{text}", true) == semver("{meant}") && isSemver("{text}", true)') == "match"
    assert says(f'isSemver("{text}", false)') == ("match" if text == meant else "nomatch")


@pytest.mark.parametrize("text", NOT_NORMALIZED)
def test_what_normalization_does_not_mend(text: str) -> None:
    assert says(f'isSemver("{text}", true)') == "nomatch"
    assert says(f'semver("{text}", true).major() == 1') == "error"


def test_the_order_of_the_specification() -> None:
    versions = [semver(text) for text in ASCENDING]
    for at, one in enumerate(versions):
        for other_at, other in enumerate(versions):
            assert one.compare(other) == (at > other_at) - (at < other_at)


V = 'device.attributes["d"].v'  # 1.2.3
CASES = [
    ("parts", f"{V}.major() == 1 && {V}.minor() == 2 && {V}.patch() == 3", "match"),
    ("more", f'{V}.isGreaterThan(semver("1.2.2")) && !{V}.isGreaterThan({V})', "match"),
    ("less", f'{V}.isLessThan(semver("1.2.4")) && !{V}.isLessThan({V})', "match"),
    (
        "comparison",
        f'{V}.compareTo(semver("1.2.3")) == 0 && {V}.compareTo(semver("2.0.0")) == -1 && {V}.compareTo(semver("1.0.0")) == 1',
        "match",
    ),
    ("a prerelease comes before", f'device.attributes["d"].pre.isLessThan({V})', "match"),
    ("build metadata is ignored", 'semver("1.0.0+a") == semver("1.0.0+b")', "match"),
    ("a text does not equal a version", f'{V} == "1.2.3"', "error"),
    ("so it differs", f'{V} != "1.2.3"', "match"),
    ("two versions differ", f'{V} != semver("1.2.4")', "match"),
    ("a quantity does not compare", f'{V}.compareTo(quantity("1")) == 0', "error"),
    ("a part beyond int64 wraps", 'semver("18446744073709551615.0.0").major() == -1', "match"),
    (
        "the greatest int64 does not",
        'semver("9223372036854775807.0.0").major() == 9223372036854775807',
        "match",
    ),
    ("semver of an int", "semver(1) == semver('1.0.0')", "compile"),
    ("semver of an attribute", 'semver(device.attributes["d"].s) == semver("1.0.0")', "error"),
]


@pytest.mark.parametrize(("reason", "expression", "expected"), CASES, ids=[case[0] for case in CASES])
def test_versions(reason: str, expression: str, expected: str) -> None:
    assert says(expression) == expected, reason


part = st.integers(0, 2**64 - 1)
word = st.from_regex(r"[a-z-][0-9a-z-]{0,5}", fullmatch=True)
prerelease = st.lists(st.one_of(st.integers(0, 99).map(str), word), max_size=3)


def written(major: int, minor: int, patch: int, identifiers: list[str]) -> str:
    return f"{major}.{minor}.{patch}" + (f"-{'.'.join(identifiers)}" if identifiers else "")


versions = st.builds(written, part, part, part, prerelease)


@given(versions, versions, versions)
def test_the_order_is_total(one: str, two: str, three: str) -> None:
    a, b, c = map(semver, (one, two, three))
    assert a.compare(b) == -b.compare(a)
    assert (a.compare(b) == 0) == (a == b) == (one == two)
    if a.compare(b) <= 0 and b.compare(c) <= 0:
        assert a.compare(c) <= 0


@given(versions)
def test_a_strict_version_reads_the_same_with_normalization(text: str) -> None:
    assert semver(text) == semver(text, normalize=True)
    assert semver(text) == semver(f"v{text}", normalize=True)

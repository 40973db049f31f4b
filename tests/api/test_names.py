"""Identities and object names: the wire contract other software relies on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from function.api.names import Identity, desired_key, object_name, read_key

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAMES = st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,80}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("cluster", "index", "name"),
    [
        ("cluster-a", 0, "my-model-5ab63"),
        ("cluster-a", 1, "my-model-609c5"),
        ("cluster-b", 0, "my-model-f0b76"),
    ],
)
def test_object_names_are_those_of_the_contract(cluster: str, index: int, name: str) -> None:
    assert object_name("my-model", Identity(cluster, index)) == name


@pytest.mark.parametrize(
    ("deployment", "start", "reason"),
    [
        ("a" * 60, "a" * 57 + "-", "the name is cut to 57 characters"),
        ("a" * 56 + "-b", "a" * 56 + "-", "a dash at the cut is stripped"),
        ("a" * 55 + "--b", "a" * 55 + "-", "so are several"),
        ("llama.v2", "llama-v2-", "a dot is not allowed in a label"),
        ("Llama", "llama-", "nor is an uppercase letter"),
        ("...", "r-", "of a name that leaves nothing, the digest remains"),
    ],
)
def test_a_name_is_cut_and_mended(deployment: str, start: str, reason: str) -> None:
    name = object_name(deployment, Identity("a", 0))
    assert name[:-5] == start, reason
    assert LABEL.fullmatch(name)


@given(NAMES, NAMES, st.integers(0, 200))
def test_every_object_name_is_a_dns_label(deployment: str, cluster: str, index: int) -> None:
    assert LABEL.fullmatch(object_name(deployment, Identity(cluster, index)))


@given(NAMES, st.integers(0, 999_999_999))
def test_a_key_reads_back_as_its_identity(cluster: str, index: int) -> None:
    identity = Identity(cluster, index)
    assert read_key(desired_key("replica", identity)) == ("replica", identity)
    assert read_key(desired_key("endpoint", identity)) == ("endpoint", identity)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("replica-a", "no index"),
        ("replica-a-", "an empty index"),
        ("replica--1", "no cluster"),
        ("replica-a-01", "not canonical: it would name the same identity as replica-a-1"),
        ("replica-a-1 ", "a space"),
        ("replica-a-1\n", "a line break"),
        ("replica-a-1234567890", "no index is that large"),
        ("replica-a-²", "a digit, but not of ours"),
        ("service-a-1", "another kind"),
        ("", "nothing"),
    ],
)
def test_what_is_no_key_is_not_read(key: str, reason: str) -> None:
    assert read_key(key) is None, reason

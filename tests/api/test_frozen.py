"""Dataclasses that `frozen` makes are compared, copied and shown as Python's, and take less to define."""

from __future__ import annotations

import builtins
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest

from function.boundary import frozen
from tests.schema.crds import ROOT


def _made(by: Any) -> Any:
    class Held:
        name: str
        number: int = 0
        note: str = field(default="", compare=False)
        secret: str = field(default="", repr=False)
        labels: tuple[str, ...] = field(default_factory=tuple)

    return by(Held)


OURS, PYTHONS = _made(frozen), _made(dataclass(frozen=True, slots=True))
FIELDS = (("a",), ("a", 1), ("b", 1), ("a", 1, "note"), ("a", 1, "", "secret"), ("a", 1, "", "", ("x",)))


@pytest.mark.parametrize("one", FIELDS)
@pytest.mark.parametrize("other", FIELDS)
def test_values_are_equal_where_those_of_python_are(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    ours, pythons = (OURS(*one), OURS(*other)), (PYTHONS(*one), PYTHONS(*other))
    assert (ours[0] == ours[1]) is (pythons[0] == pythons[1])
    assert ours[0] != ours[1] or hash(ours[0]) == hash(ours[1])
    assert repr(ours[0]) == repr(pythons[0])
    assert deepcopy(ours[0]) == replace(ours[0]) == ours[0] != pythons[0]


@frozen
class Doubt:
    reason: str


@frozen
class NameTaken(Doubt):
    pass


def test_a_class_of_one_field_and_one_that_inherits_it_are_compared_as_well() -> None:
    assert Doubt("a") == Doubt("a") != Doubt("b")
    assert hash(Doubt("a")) == hash(Doubt("a"))
    assert NameTaken("a") == NameTaken("a") != Doubt("a")
    assert repr(NameTaken("a")) == "NameTaken(reason='a')"
    assert copy(NameTaken("a")) == NameTaken("a")


def _derived(by: Any) -> Any:
    class Held:
        name: str
        length: int = field(init=False)
        labels: list[str] = field(init=False, default_factory=list)
        kind: str = field(init=False, default="held")

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

    return by(Held)


def test_fields_that_nobody_gives_are_made_as_those_of_python_are() -> None:
    ours, pythons = _derived(frozen), _derived(dataclass(frozen=True, slots=True))
    assert repr(ours("abc")) == repr(pythons("abc"))
    assert ours("abc").labels is not ours("abc").labels


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), (("a", 1, "", "", (), 2), {}), (("a",), {"name": "b"}), (("a",), {"other": 1})],
)
def test_a_wrong_call_is_refused_in_the_words_of_python(
    given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """The first call of a class and those after it are refused alike."""
    ours = _made(frozen)
    refusals = []
    for kind in (ours, ours, PYTHONS):
        with pytest.raises(TypeError) as refused:
            kind(*given, **named)
        refusals.append(str(refused.value).partition("()")[2])
    assert len({*refusals}) == 1


def test_a_field_may_be_called_like_another_with_an_underscore() -> None:
    class Held:
        labels: list[str] = field(default_factory=list)
        _labels: int = 1

    assert frozen(Held)().labels == []


def test_a_class_keeps_the_methods_it_has() -> None:
    class Held:
        name: str

        def __hash__(self) -> int:
            return 7

    assert hash(frozen(Held)("a")) == 7


def test_a_class_is_compiled_once_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    write = builtins.exec
    monkeypatch.setattr(builtins, "exec", lambda text, *scopes: (compiled.append(text), write(text, *scopes)))
    kind = _made(frozen)
    assert compiled == []
    assert kind("a") == kind("a") != kind("b")
    assert len(compiled) == 1


@frozen(slots=False, eq=False)
class Remembering:
    name: str

    @cached_property
    def length(self) -> int:
        return len(self.name)


def test_a_class_without_slots_remembers_and_one_without_equality_is_compared_by_identity() -> None:
    one = Remembering("abc")
    assert one.length == 3 == vars(one)["length"]
    assert one != Remembering("abc")
    assert {one, Remembering("abc")} != {one}
    assert repr(one) == "Remembering(name='abc')"


def test_python_makes_no_frozen_dataclass_with_slots() -> None:
    """It writes eight methods for each, and a command defines 130 of them before it does anything."""
    files = sorted((ROOT / "function").rglob("*.py"))
    assert [file.name for file in files if "@dataclass(frozen=True, slots=True)\n" in file.read_text()] == []

"""Which Kubernetes release reads a selector: the input says it, a cluster may say its own, and the lint of a
default API server.
"""

from __future__ import annotations

from typing import Any

import pytest

from function.cel import DIALECTS, CompileError, bind_device, compile_device
from tests.cel.devices import MIXED, bound
from tests.support import build
from tests.support.drive import Answer, run
from tests.support.world import World

Plain = dict[str, Any]
QUOTED = 'device.attributes["gpu.nvidia.com"].`architecture` == "Hopper"'
"""Compiles from 1.37 on."""
PLAIN = 'dyn(device.attributes["gpu.nvidia.com"].architecture).orValue("") == "Hopper"'
"""Compiles in both, and is an error from 1.37 on."""
DIFFERENCES = [
    ("a field in backticks", 'device.attributes["d"].`s` == "fish"', "compile", "match"),
    ("a rooted name of a macro", "[1].all(x, .x == 1)", "match", "compile"),
    ("a wrapper as the result", "google.protobuf.BoolValue{value: true}", "compile", "match"),
    ("orValue of what is no optional", "dyn(1).orValue(2) == 1", "match", "error"),
    ("or of what is no optional", "dyn(1).or(optional.of(2)) == dyn(1)", "match", "error"),
    ("a range of less than none", "lists.range(-1) == []", "match", "error"),
    ("no part before the text", "'abc'.indexOf('', -1) == -1", "match", "error"),
    ("no part behind the text", "'abc'.lastIndexOf('', 9) == 9", "match", "nomatch"),
    (
        "adding to a decimal quantity",
        "cel.bind(q, quantity('0.5').sub(quantity('100E')), q.add(quantity('1')).compareTo(q) == 0)",
        "match",
        "nomatch",
    ),
    (
        "an optional quantity through a name",
        "cel.bind(q, optional.of(quantity('1')), q.value().isInteger())",
        "error",
        "match",
    ),
    ("includes of a long list", "lists.range(60).includes(59)", "error", "match"),
    (
        "indexOf on what may be a list",
        'device.attributes["d"].strs.first().value().indexOf("a") == 0',
        "error",
        "match",
    ),
    (
        "a duration of an int",
        'duration(device.attributes["d"].neg) == duration("1s") || true',
        "match",
        "match",
    ),
    ("a duration of a known int", "duration(1 + 1) == duration('2s') || true", "match", "compile"),
]


def says(expression: str, release: str) -> str:
    try:
        return compile_device(expression, release).evaluate(bound(MIXED)).kind
    except CompileError:
        return "compile"


@pytest.mark.parametrize(
    ("reason", "expression", "before", "after"), DIFFERENCES, ids=[d[0] for d in DIFFERENCES]
)
def test_what_differs_between_the_releases(reason: str, expression: str, before: str, after: str) -> None:
    assert (says(expression, "1.36"), says(expression, "1.37")) == (before, after), reason


def test_a_subject_that_says_its_release_is_read_by_it() -> None:
    expression, device = "dyn(1).orValue(2) == 1", bind_device(**MIXED)
    selector = compile_device(expression)
    assert selector.evaluate(device).kind == "match"
    assert selector.evaluate(device.read_by("1.36")).kind == "match"
    assert selector.evaluate(device.read_by("1.37")).kind == "error"
    assert selector.conjuncts[0].evaluate(device.read_by("1.37")).kind == "error"
    newer = compile_device(QUOTED, "1.37").evaluate(device.read_by("1.36"))
    assert newer.kind == "error"
    assert newer.message.startswith("Kubernetes 1.36 refuses this selector: ")


def test_subjects_of_different_releases_are_not_alike() -> None:
    device, selector = bind_device(**MIXED), compile_device("dyn(1).orValue(2) == 1")
    assert device != device.read_by("1.37")
    assert device.read_by("1.37") == bind_device(**MIXED).read_by("1.37")
    assert selector.projection(device) == selector.projection(device.read_by("1.36"))
    assert selector.projection(device) != selector.projection(device.read_by("1.37"))


def fleet(selector: str, *releases: str, default: str = "") -> Answer:
    """Place one replica on clusters `a`, `b` and so on, each of its release; "" says none."""
    clusters = []
    for name, release in zip("abc", releases, strict=False):
        made = build.cluster(name, [build.pool("p", 2)])
        if release:
            made["spec"]["celVersion"] = release
        clusters.append(made)
    member = build.member(devices=[build.request("gpu", 1, selector)])
    config = {"celVersion": default} if default else None
    deployment = build.deployment(engines=[build.engine(members=[member])])
    return run(World(deployment, clusters, input=config))


@pytest.mark.parametrize(
    ("reason", "selector", "releases", "default", "lands"),
    [
        ("a new word where nobody says a release", QUOTED, ("",), "", None),
        ("the input says it", QUOTED, ("",), "1.37", "a"),
        ("one cluster is older than the input says", QUOTED, ("1.36", ""), "1.37", "b"),
        ("both say theirs", QUOTED, ("1.36", "1.37"), "1.37", "b"),
        ("a cluster is newer than the input says", PLAIN, ("1.37", ""), "", "b"),
        ("all are", PLAIN, ("1.37", "1.37"), "", None),
        ("the input is newer than a cluster says", PLAIN, ("", "1.36"), "1.37", "b"),
    ],
)
def test_a_cluster_reads_selectors_as_its_release_does(
    reason: str, selector: str, releases: tuple[str, ...], default: str, lands: str | None
) -> None:
    placed = list(fleet(selector, *releases, default=default).replicas)
    assert placed == ([f"replica-{lands}-0"] if lands else []), reason


def test_an_unknown_release_is_a_fault_of_the_cluster() -> None:
    assert not fleet("true", "1.22").replicas
    assert set(DIALECTS) == {"1.36", "1.37"}


GATED = [
    ("includes", 'device.attributes["d"].s.includes("fish")', True),
    ("a loop over an attribute", 'device.attributes["d"].ints.all(x, x > 0)', True),
    ("through a name", 'cel.bind(l, device.attributes["d"].ints, l.exists(x, x > 0))', True),
    ("an attribute as a number", 'device.attributes["d"].i == 42', False),
    ("a look into a list is no loop", '3 in device.attributes["d"].ints', False),
    ("a loop over what is surely a list", '[device.attributes["d"].i].all(x, x == 42)', False),
    ("a loop over a domain", 'device.attributes["d"].exists(x, x == "i")', False),
    ("a whole that is not known", 'device.attributes["d"].ints[0]', True),
    ("a whole that is an attribute", 'device.attributes["d"].yes', False),
]


@pytest.mark.parametrize(("reason", "expression", "refused"), GATED, ids=[case[0] for case in GATED])
def test_what_a_default_api_server_refuses(reason: str, expression: str, *, refused: bool) -> None:
    for release in DIALECTS:
        assert bool(compile_device(expression, release).gated) == refused, reason

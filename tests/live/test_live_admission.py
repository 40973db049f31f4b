"""What `lint` says of an object is what the API server says: both look at the same mutated manifests.

Every mutant is one change of an object that both accept: another value, a field that is missing, doubled or
unknown. The server is asked as `kubectl apply --validate=strict --dry-run=server` asks.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from example import caller
from function.cli.admission import SELECTOR
from function.cli.admission.kinds import check, shipped
from function.cli.bad_input import BadInput
from function.cli.worlds.manifests import load_texts
from tests.live import fleet
from tests.live.plane import Refused, path
from tests.schema.bad import GOOD
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = "admission"
MUTANTS = scale.count(1_000, 5_000, 20_000)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 7, 1.5, 2.0, 2**31, 2**40, 10**20, 1e30),
    *("", "x", "Always", "UPPER_case!", "a b", "-a-", "9", "1.5", "80Gi", "true", "ä", "a" * 64, "a" * 254),
    *([], {}, ["a"], ["a", "a"], [None], {"a": "b"}, {"a": None}, {"name": "x"}, [{"name": "x"}]),
)
Place = tuple[Any, Any]
"""What holds a value, and under which key or index."""


def originals() -> list[Plain]:
    """Objects of the kinds that the API server knows: the good ones of the tests, and the examples."""
    examples = [plain for file in sorted(caller.HERE.rglob("*.yaml")) for plain in caller.objects(file)]
    readable = [
        fleet.applicable(plain) for plain in (*(case.plain for case in GOOD), *examples) if served(plain)
    ]
    return [plain for plain in readable if not check(plain, shipped()[plain["kind"]])]


def served(plain: Plain) -> bool:
    return str(plain.get("apiVersion")).startswith("modelplane.ai/") and plain["kind"] in shipped()


def places(holder: Any) -> Iterator[Place]:
    """Every value below a holder."""
    keys = (
        list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
    )
    for key in keys:
        yield holder, key
        yield from places(holder[key])


def mutant(seed: int, kinds: list[list[Plain]]) -> Plain:
    """One of the originals with one change; every kind comes equally often."""
    draw = random.Random(f"admission {seed}")
    made = deepcopy(draw.choice(kinds[seed % len(kinds)]))
    below = [place for part in ("spec", "metadata") for place in ((made, part), *places(made.get(part)))]
    holder, key = draw.choice(below if draw.random() < 0.9 else below[:1])
    change = draw.choice(("value", "value", "value", "missing", "unknown", "doubled"))
    if change == "value":
        holder[key] = deepcopy(draw.choice(VALUES))
    elif change == "missing":
        del holder[key]
    elif change == "unknown" and isinstance(holder[key], dict):
        holder[key][draw.choice(("nmae", "replicas", "spec", "name", "x"))] = deepcopy(draw.choice(VALUES))
    elif change == "doubled" and isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    else:
        holder[key] = [holder[key]]
    metadata = made.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("namespace"), str):
        metadata["namespace"] = NAMESPACE  # It has to be the one of the request.
    return made


def lint(plain: Plain) -> str:
    """Why `lint` refuses an object, "" where it does not. Selectors are no concern of the API server's."""
    try:
        manifests = load_texts([("mutant.yaml", json.dumps(plain))])
    except BadInput as refusal:
        return str(refusal)
    return "; ".join(str(issue.finding) for issue in manifests.issues if issue.finding.code != SELECTOR)


def as_sent(value: Any) -> Any:
    """A value as kubectl and Argo CD send it: Go writes 2.0 as 2."""
    if isinstance(value, dict):
        return {key: as_sent(child) for key, child in value.items()}
    if isinstance(value, list):
        return [as_sent(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def answer_of(plane: ControlPlane, plain: Plain) -> str:
    """Why the API server refuses an object, "" where it takes it."""
    namespace = NAMESPACE if shipped()[plain["kind"]].namespaced else ""
    try:
        plane.request(
            "POST",
            f"{path(plain['kind'], namespace=namespace)}?dryRun=All&fieldValidation=Strict",
            as_sent(plain),
        )
    except Refused as refusal:
        return str(refusal) or "refused"
    return ""


def test_lint_and_the_api_server_agree(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, NAMESPACE)
    by_kind: dict[str, list[Plain]] = {}
    for plain in originals():
        plain["metadata"] = {key: value for key, value in plain["metadata"].items() if key != "namespace"}
        plain["metadata"]["name"] = "example"
        if shipped()[plain["kind"]].namespaced:
            plain["metadata"]["namespace"] = NAMESPACE
        by_kind.setdefault(plain["kind"], []).append(plain)
    kinds = [by_kind[kind] for kind in sorted(by_kind)]
    mutants = [mutant(seed, kinds) for seed in range(MUTANTS)]
    verdicts: Counter[bool] = Counter()
    differences = []
    with day.step(f"{MUTANTS} mutated manifests", "fleet-scheduler lint refuses what the API server refuses"):
        for seed, plain in enumerate(mutants):
            ours, theirs = lint(plain), answer_of(living, plain)
            verdicts[bool(theirs)] += 1
            if bool(ours) != bool(theirs):
                differences.append(
                    f"{seed} {plain['kind']}: lint says {ours or 'fine'}; it {theirs or 'takes it'}"
                )
    living.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    assert min(verdicts[True], verdicts[False]) > MUTANTS // 10, verdicts
    assert not differences, "\n".join(differences)

"""Law C for clusters: doubt deletes nothing, and no Object becomes another remote object."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest

from function.api.lenient import mapping
from function.cluster import names
from function.objects import identity_of
from tests.cluster.build import Case, reason, replica, running
from tests.fuzz.mutate import mutated
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from function.boundary import Response

Plain = dict[str, Any]
CONDITIONS = ["ClusterReady", "BackendReady", "ClusterReachable", "PoolsPublished"]
PUBLISHED = ("providerConfigRef", "gateway")


def disturbed(draw: random.Random, case: Case) -> str:
    """Withdraw or mutate something around the cluster; returns what."""
    what = draw.choice(["class", "undelivered", "replicas", "replica", "composite", "observed", "input"])
    name = draw.choice(sorted(case.classes))
    match what:
        case "class":
            case.classes[name] = draw.choice([None, mutated(draw, case.classes[name])])
        case "undelivered":
            case.undelivered = (name,)
        case "replicas":
            case.replicas = None
        case "replica":
            case.replicas = [mutated(draw, content) for content in case.replicas or [replica()]]
        case "composite":
            case.cluster["spec"] = mutated(draw, case.cluster["spec"])
        case "observed":
            key = draw.choice(sorted(case.observed))
            for part in ("status", "spec"):
                case.observed[key][part] = mutated(draw, case.observed[key].get(part) or {"a": 1})
        case _:
            case.input = {
                **(case.input or {}),
                draw.choice(["stack", "publish", "x"]): draw.choice([1, "y", {}]),
            }
    return what


def allowed_to_leave(key: str, case: Case, response: Response) -> bool:
    """The listed reasons: what it belongs to is gone from a spec that was read."""
    if key == names.GUARD:
        return not case.replicas and case.replicas is not None
    readable = reason(response, "ClusterReady") not in ("SecretInvalid", "InvalidNodePool", "Malformed")
    return (
        key.startswith(names.CLASS_PREFIX) and readable and reason(response, "PoolsPublished") == "Published"
    )


@pytest.mark.parametrize("number", range(BATCHES))
def test_nothing_leaves_but_for_a_listed_reason(number: int) -> None:
    for seed in batch(number, quick=400):
        draw = random.Random(seed)
        case = running(draw)
        before = copy.deepcopy(case)
        what = [disturbed(draw, case) for _ in range(draw.randint(1, 2))]
        response = case.answer()
        lost = set(before.observed) - set(response.desired)
        assert not {key for key in lost if not allowed_to_leave(key, case, response)}, (seed, what)
        assert [condition.type for condition in response.conditions] == CONDITIONS
        for field in PUBLISHED:
            if field in before.cluster["status"] and "composite" not in what:
                assert response.status[field] == before.cluster["status"][field], (seed, what, field)
        for key, desired in response.desired.items():
            if key.startswith(names.OBSERVATIONS) and key in case.observed:
                assert _tie(desired.resource) == _tie(case.observed[key]), (seed, what, key)


def _tie(composed: Plain) -> Any:
    spec = mapping(composed.get("spec"))
    manifest = mapping(mapping(spec.get("forProvider")).get("manifest"))
    return identity_of(manifest), mapping(spec.get("providerConfigRef")).get("name")


@pytest.mark.parametrize("number", range(BATCHES))
def test_an_answer_applied_and_asked_again_is_the_same(number: int) -> None:
    for seed in batch(number, quick=100):
        settled = running(random.Random(seed))
        first = settled.answer()
        again = settled.settled().answer()
        assert {key: resource.resource for key, resource in again.desired.items()} == {
            key: resource.resource for key, resource in first.desired.items()
        }, seed
        assert again.status == first.status, seed

"""Everything composed for a cluster is valid against the real schemas, and what is published against our XRD.

A ServingStack is Modelplane's own kind: its wire contract is held by the recorded pairs.
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest

from function.cluster.names import OBSERVATIONS, STACK
from function.objects import COLLECTION
from tests.cluster.build import running
from tests.replica import schemas
from tests.schema.admission import refusals
from tests.schema.crds import schema_of
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import Response
    from tests.cluster.build import Case

Plain = dict[str, Any]
ONLY_NAMED = "'spec' is a required property"
"""What a schema says of a manifest that names an object and wants nothing of it."""


def scene(seed: int) -> Case:
    """Return a running cluster, with one way or another of everything that changes what is composed."""
    draw = random.Random(f"schema {seed}")
    case = running(draw)
    existing = case.cluster["spec"]["cluster"]["existing"]
    if draw.random() < 0.5:
        existing["identitySecretRef"] = {"name": "identity", "key": "json"}
    if draw.random() < 0.5:
        case.cluster["spec"]["drift"] = {"mode": "Observe"}
    if draw.random() < 0.3:
        case.cluster["spec"]["nodePools"][0]["nodeSelector"] = {"karpenter.sh/nodepool": "gpu"}
    if draw.random() < 0.5:
        case.input = {
            **(case.input or {}),
            "gateway": {"namespace": "edge", "name": "models"},
            "leaderWorkerSet": {"namespace": "kube-system", "name": "lws"},
        }
    return case


def wrong(response: Response) -> Iterator[str]:
    """Yield what an API server would refuse of an answer."""
    for key, desired in response.desired.items():
        if key == STACK:
            continue
        yield from schemas.findings(desired.resource)
        if key.startswith(OBSERVATIONS) and desired.resource["kind"] != COLLECTION:
            yield from observed(desired.resource)


def observed(resource: Plain) -> Iterator[str]:
    """Yield what is wrong with an Object that only looks: it names an object of a known kind."""
    spec = resource["spec"]
    if spec["managementPolicies"] != ["Observe"]:
        yield f"it may change what it looks at: {spec['managementPolicies']}"
    for finding in schemas.findings(spec["forProvider"]["manifest"]):
        if not finding.endswith(ONLY_NAMED):
            yield finding


@pytest.mark.parametrize("number", range(BATCHES))
def test_what_is_composed_and_published_for_a_random_cluster_is_valid(number: int) -> None:
    kinds: set[str] = set()
    for seed in batch(number, quick=120, gate=5_000):
        case = scene(seed)
        response = case.answer()
        assert not list(wrong(response)), seed
        if (case.input or {}).get("publish") == "Attributes":
            published = {**case.cluster, "status": dict(response.status)}
            assert refusals(published, schema_of("InferenceCluster")) == [], seed
        kinds |= {desired.resource["kind"] for desired in response.desired.values()}
    assert kinds >= {"ClusterProviderConfig", "ClusterUsage", "Object", "ObservedObjectCollection"}


MUTANTS: list[tuple[str, str, tuple[str, ...], Any]] = [
    ("an unknown field of a Gateway", "see-gateway", ("forProvider", "manifest", "addresses"), []),
    ("a kind of another group", "see-lws", ("forProvider", "manifest", "metadata", "namespce"), "x"),
    ("a policy that nobody knows", "see-lws", ("managementPolicies",), ["Look"]),
    ("it would be applied", "see-lws", ("managementPolicies",), ["*"]),
    ("a selector that is none", "see-nodes", ("observeObjects", "selector"), "all"),
    ("a Secret without a key", "cluster-provider-config-kubernetes", ("credentials", "secretRef"), {}),
    ("a usage of nothing", "usage-replicas", ("of",), "this"),
]


@pytest.mark.parametrize(("reason", "key", "path", "value"), MUTANTS)
def test_what_is_not_valid_is_found(reason: str, key: str, path: tuple[str, ...], value: Any) -> None:
    answers = (scene(seed).answer() for seed in range(200))
    response = copy.deepcopy(next(answer for answer in answers if key in answer.desired))
    holder = response.desired[key].resource["spec"]
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    assert list(wrong(response)), reason

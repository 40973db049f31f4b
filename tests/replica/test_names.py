"""Names: those of v0.3 where Kubernetes takes them, mended where it does not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from function.api.names import Identity, object_name
from function.replica import names
from tests.replica import generate
from tests.replica.build import REPLICA, Scene, engine, gang, manifests, replica, run
from tests.replica.provider import applied
from tests.support.scale import seeds

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
DOT = "r" * 56 + ".x"
"""A name that is cut right after its dot, where no name may end."""
LONG = "a-model-replica-with-a-very-long-name-that-is-close-to-57-5ab63"

CASES: list[tuple[str, Any, tuple[Any, ...], str]] = [
    ("as v0.3", names.deployment_name, (REPLICA, "main"), "my-model-5ab63-main-216f1"),
    ("as v0.3", names.gang_name, (REPLICA, "b"), "my-model-5ab63-b-31f82"),
    (
        "as v0.3: a template of claims",
        *(names.claim_name, (REPLICA, "main", "Standalone")),
        "my-model-5ab63-main-standalone-devices-74688",
    ),
    ("as v0.3", names.joined_name, (REPLICA, "epp"), "my-model-5ab63-epp"),
    ("as v0.3", names.joined_name, (REPLICA, "pool"), "my-model-5ab63-pool"),
    ("as v0.3", names.cache_claim_name, ("ml-team", "weights"), "modelcache-ml-team-weights-124df"),
    (
        "a Deployment may start with a digit",
        *(names.deployment_name, ("4bit-llama-5ab63", "main"), "4bit-llama-5ab63-main-d3b3a"),
    ),
    (
        "a LeaderWorkerSet may not: its Service has its name",
        *(names.gang_name, ("4bit-llama-5ab63", "main"), "m-4bit-llama-5ab63-main-d3b3a"),
    ),
    (
        "a Service may not",
        *(names.picker_service_name, ("4bit-llama-5ab63",), "m-4bit-llama-5ab63-epp"),
    ),
    (
        "a ConfigMap may",
        *(names.joined_name, ("4bit-llama-5ab63", "epp"), "4bit-llama-5ab63-epp"),
    ),
    (
        "67 characters are too many for a Service and for a label",
        *(
            names.joined_name,
            (LONG, "epp"),
            "a-model-replica-with-a-very-long-name-that-is-close-to-57-def85",
        ),
    ),
    (
        "68 characters are too many for a pool that a Service may be named after",
        *(
            names.joined_name,
            (LONG, "pool"),
            "a-model-replica-with-a-very-long-name-that-is-close-to-57-22b3f",
        ),
    ),
    (
        "a dot in a Service: mended, and a digest tells it from a namesake",
        *(names.picker_service_name, ("llama-3.1",), "llama-3-1-epp-9941c"),
    ),
    ("the same after a digit", names.picker_service_name, ("4bit-3.1",), "m-4bit-3-1-epp-35549"),
    (
        "the digest of what a claim template asks for is part of its name",
        *(names.claim_name, ("r", "main", "Worker", "0a1b2c3d"), "r-main-worker-devices-0a1b2c3d-55914"),
    ),
    ("one of each replica", names.part_name, (REPLICA, "main", "budget"), "my-model-5ab63-main-budget-48148"),
    ("one of each replica", names.part_name, (REPLICA, "secret", "pull"), "my-model-5ab63-secret-pull-0a813"),
    ("one of each replica", names.joined_name, (REPLICA, "adapters"), "my-model-5ab63-adapters"),
    (
        "an engine that is called like the picker",
        names.deployment_name,
        ("r" * 60, "epp"),
        f"{'r' * 57}-04d2d",
    ),
    (
        "one of each replica",
        names.part_name,
        (REPLICA, "main", "gang", "0a1b2c3d"),
        "my-model-5ab63-main-gang-0a1b2c3d-632ab",
    ),
    ("cut after a dot", names.part_name, (DOT, "main", "gang", "0a1b2c3d"), f"{'r' * 56}--d32e8"),
    ("cut after a dot", names.deployment_name, (DOT, "main"), f"{'r' * 56}--d73d3"),
    ("cut after a dot", names.part_name, (DOT, "main", "budget"), f"{'r' * 56}--8d2b0"),
    ("cut after a dot", names.part_name, (DOT, "secret", "pull"), f"{'r' * 56}--7a0d3"),
    ("cut after a dot", names.claim_name, (DOT, "main", "Standalone", "0a1b2c3d"), f"{'r' * 56}--300f2"),
    ("cut after a dot", names.joined_name, (f"{DOT}xxx", "pool"), f"{'r' * 56}--e5bac"),
    ("63 characters are not cut", names.joined_name, ("r" * 59, "epp"), f"{'r' * 59}-epp"),
    ("63 characters are not cut", names.serving_label, ("r" * 63,), "r" * 63),
    ("64 are too many for a label", names.serving_label, ("r" * 64,), f"{'r' * 57}-c9ea6"),
    ("28 characters leave KServe room", names.service_name, ("r" * 28,), "r" * 28),
    ("29 do not", names.service_name, ("r" * 29,), f"{'r' * 15}-f306dbb49049"),
    ("46 characters", names.gang_name, ("r" * 35, "main"), f"{'r' * 35}-main-3e594"),
    ("47 are too many", names.gang_name, ("r" * 36, "main"), f"{'r' * 33}-f6f67ef9301a"),
    ("mended and whole", names.gang_name, ("r." + "s" * 33, "main"), f"r-{'s' * 33}-main-5a8af"),
    ("mended and cut", names.gang_name, ("r." + "s" * 34, "main"), f"r-{'s' * 31}-88140adca832"),
    ("mended and whole", names.gang_name, ("4" + "r" * 32, "main"), f"m-4{'r' * 32}-main-dea0f"),
    ("mended and cut", names.gang_name, ("4" + "r" * 33, "main"), f"m-4{'r' * 30}-0cf3d93a2831"),
    ("as v0.3: pods up to index 9", names.legacy_gang_name, ("r" * 39, "e", 10), f"{'r' * 39}-e-54b3b"),
    ("an index of two digits leaves a character less", names.legacy_gang_name, ("r" * 42, "e", 11), ""),
]


@pytest.mark.parametrize(("reason", "name", "of", "expected"), CASES)
def test_a_name(reason: str, name: Any, of: tuple[Any, ...], expected: str) -> None:
    assert name(*of) == expected, reason


@pytest.mark.parametrize(("length", "expected"), [(46, 46), (47, 46), (63, 46)])
def test_a_gang_has_at_most_46_characters(length: int, expected: int) -> None:
    replica_name = "r" * (length - len("-main-12345"))
    assert len(names.gang_name(replica_name, "main")) == expected


def test_replicas_that_begin_alike_stay_apart_where_their_digest_is_cut_away() -> None:
    """Two of one name would be one object on a cluster that each of them writes."""
    replicas = [object_name(f"meta-llama-3-3-70b-instruct-team{n}", Identity("a", 0)) for n in range(10_000)]
    assert len({names.service_name(name) for name in replicas}) == len(replicas)
    long = [f"a-deployment-with-a-name-of-forty-characters-{n:05x}" for n in range(10_000)]
    assert len({names.gang_name(name, "main") for name in long}) == len(long)


@pytest.mark.parametrize("name", ["r" * 59, "r" * 60, LONG, f"{'a' * 40}.{'b' * 40}"])
def test_an_engine_called_like_the_picker_is_not_the_picker(name: str) -> None:
    """Two Objects of one Deployment would undo each other's work for ever."""
    made = manifests(run(Scene(replica(engine("epp"), name=name))))
    places = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in made.values()]
    assert len(places) == len(set(places))


def test_a_gang_that_runs_under_a_longer_name_keeps_it() -> None:
    name = "a-replica-of-thirty-nine-characters-abc"
    scene = Scene(replica(gang("main"), name=name))
    longer = f"{name}-main-" + names.deployment_name(name, "main")[-5:]
    assert len(longer) == 50
    before = run(scene)
    assert manifests(before)["model-serving-main"]["metadata"]["name"] != longer
    observed = applied(before)
    for holder in ("spec.forProvider", "status.atProvider"):
        top, inner = holder.split(".")
        observed["model-serving-main"][top][inner]["manifest"]["metadata"]["name"] = longer
    after = run(scene.but(observed=observed))
    assert manifests(after)["model-serving-main"]["metadata"]["name"] == longer
    assert after.desired.keys() == before.desired.keys()


def test_longer_names_that_never_worked_are_replaced() -> None:
    assert names.legacy_gang_name("r" * 30, "e" * 30, 1) == ""
    assert names.legacy_gang_name("4bit", "main", 1) == ""


def test_every_name_and_label_of_a_random_replica_is_one_that_kubernetes_takes() -> None:
    for seed in seeds(quick=300, gate=5_000):
        for key, manifest in manifests(run(generate.scene(seed))).items():
            name = manifest["metadata"]["name"]
            if manifest["kind"] in ("Service", "LeaderWorkerSet", "Namespace"):
                longest = 46 if manifest["kind"] == "LeaderWorkerSet" else 63
                allowed = SUBDOMAIN if manifest["kind"] == "Namespace" else DNS_1035
                assert allowed.fullmatch(name), (seed, key, name)
                assert len(name) <= longest, (seed, key, name)
            else:
                assert SUBDOMAIN.fullmatch(name), (seed, key, name)
                assert len(name) <= 253, (seed, key, name)
            for value in labels(manifest):
                assert LABEL_VALUE.fullmatch(value), (seed, key, value)
                assert len(value) <= 63, (seed, key, value)


def labels(value: Any) -> list[str]:
    """Return the values of all labels, and of all that select by label, anywhere in a manifest."""
    if isinstance(value, list):
        return [label for item in value for label in labels(item)]
    if not isinstance(value, dict):
        return []
    values = [entry for key in ("labels", "matchLabels") for entry in value.get(key, {}).values()]
    return values + [label for item in value.values() for label in labels(item)]


def test_names_that_a_workload_refers_to_are_those_of_the_objects() -> None:
    for seed in seeds(quick=100, gate=2_000):
        composed = manifests(run(generate.scene(seed)))
        by_kind = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in composed.values()}
        pool = next(manifest for manifest in composed.values() if manifest["kind"] == "InferencePool")
        assert ("Service", pool["spec"]["endpointPickerRef"]["name"]) in by_kind
        for manifest in composed.values():
            for claim in claims(manifest):
                assert ("ResourceClaimTemplate", claim) in by_kind, seed
        assert len(by_kind) == len(composed), seed


def claims(value: Any) -> list[str]:
    """Return the claim templates that pods refer to."""
    if isinstance(value, list):
        return [claim for item in value for claim in claims(item)]
    if not isinstance(value, dict):
        return []
    names = [claim["resourceClaimTemplateName"] for claim in value.get("resourceClaims", ())]
    return names + [claim for item in value.values() for claim in claims(item)]


KEYS = [
    ("model-serving-main", names.Key("model-serving", "main")),
    ("resource-claim-main-standalone", names.Key("resource-claim", "main", "standalone")),
    ("resource-claim-a-leader-worker", names.Key("resource-claim", "a-leader", "worker")),
    ("resource-claim-main-worker-0a1b2c3d", names.Key("resource-claim", "main", "worker")),
    ("resource-claim-main", None),
    ("pod-group-main-0a1b2c3d", names.Key("pod-group", "main")),
    ("pod-group-main", None),
    ("epp-service", names.Key("epp-service")),
    ("epp-other", None),
    ("pods-main", names.Key("pods", "main")),
    ("secret-a.b", names.Key("secret", "a.b")),
    ("namespace", names.Key("namespace")),
    ("model-serving", names.Key("inference-service")),
    ("model-serving-", None),
    ("of-another-step", None),
]


@pytest.mark.parametrize(("key", "expected"), KEYS)
def test_a_key_reads_back(key: str, expected: names.Key | None) -> None:
    assert names.read_key(key) == expected
    assert names.what_of(key) == ("" if expected is None else expected.what)


def test_every_composed_key_reads_back() -> None:
    scene = Scene(replica(engine("a"), gang("b-leader")))
    assert all(names.read_key(key) for key in run(scene).desired)

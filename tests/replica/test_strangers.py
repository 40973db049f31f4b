"""Replicas of many teams share a namespace of a cluster: nothing of one is taken for another's (P23).

What a user writes never matches what we select by, and the names that we give are of one replica only.
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function.api.names import Identity, object_name
from function.objects import identity_of
from function.replica.picker import PICKER_LABEL
from tests.replica import generate
from tests.replica.build import (
    Scene,
    config,
    engine,
    gang,
    manifests,
    member,
    replica,
    run,
)
from tests.replica.provider import applied, observed, remote
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.drive import Answer

Plain = dict[str, Any]
GANG = "leaderworkerset.sigs.k8s.io/name"
EVERYTHING = config(budget=True, diagnose="Pods", podsAcrossNodes="Required", replicasAcrossNodes="Required")


def selectors(answer: Answer) -> Iterator[tuple[str, Plain]]:
    """Yield everything that pods are selected by, with its key.

    But for the picker's Deployment: it takes no pod that another controller owns, and no user has any other.
    """
    for key, manifest in manifests(answer).items():
        spec = manifest.get("spec", {})
        match manifest["kind"]:
            case "InferencePool" | "PodDisruptionBudget":
                yield key, spec["selector"]["matchLabels"]
            case "Service":
                yield key, spec["selector"]
            case "Deployment" if key != "epp":
                yield key, spec["selector"]["matchLabels"]
        for template in templates(manifest):
            for kind in template["spec"].get("affinity", {}).get("podAntiAffinity", {}).values():
                for term in kind:
                    yield key, term.get("podAffinityTerm", term)["labelSelector"]["matchLabels"]
    for key, resource in answer.desired.items():
        if resource["kind"] == "ObservedObjectCollection":
            yield key, resource["spec"]["observeObjects"]["selector"]["matchLabels"]


def templates(manifest: Plain) -> list[Plain]:
    """Return the pod templates of a workload."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "LeaderWorkerSet":
        return [spec["leaderWorkerTemplate"][part] for part in ("leaderTemplate", "workerTemplate")]
    return [spec["template"]] if manifest["kind"] == "Deployment" else []


def pods(answer: Answer) -> Iterator[Plain]:
    """Yield the labels of all pods, with what the controller of a gang sets, whatever the template has."""
    for manifest in manifests(answer).values():
        for template in templates(manifest):
            ours = {GANG: manifest["metadata"]["name"]} if manifest["kind"] == "LeaderWorkerSet" else {}
            yield {**template.get("metadata", {}).get("labels", {}), **ours}


def labelled(made: Plain, labels: Plain, annotations: Plain | None = None) -> Plain:
    """Return a replica all of whose members have labels and annotations."""
    made = copy.deepcopy(made)
    for one in made["spec"]["engines"]:
        for part in one["members"]:
            part["template"]["metadata"] = {"labels": dict(labels), "annotations": dict(annotations or {})}
    return made


def matches(labels: Plain, selector: Plain) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_no_label_of_a_user_puts_a_pod_behind_anothers_selector(number: int) -> None:
    for seed in scale.batch(number, quick=40):
        draw = random.Random(f"strangers {seed}")
        ours = Scene(generate.replica(draw), generate.cluster(draw), input=EVERYTHING)
        victim = run(ours)
        everything = {key: value for _, selector in selectors(victim) for key, value in selector.items()}
        made = labelled(generate.replica(draw), everything | {"app": f"{draw.random()}"})
        made["metadata"]["name"] = "attacker"
        attacker = run(Scene(made, ours.cluster, input=EVERYTHING))
        assert attacker.desired
        for key, selector in selectors(victim):
            assert selector, key
            assert not [labels for labels in pods(attacker) if matches(labels, selector)], (seed, key)
            assert any(matches(labels, selector) for labels in pods(victim)), (seed, key)


VICTIM = "their-model-1a2b3"
HOSTILE = {
    "modelplane.ai/serving": VICTIM,
    "modelplane.ai/workload": f"{VICTIM}-main-11111",
    "modelplane.ai/anything": "x",
    GANG: f"{VICTIM}-main-11111",
}


@pytest.mark.parametrize("made", [engine(), gang()], ids=["single", "gang"])
def test_reserved_keys_reach_no_pod_and_the_replica_says_so(made: Plain) -> None:
    scene = Scene(
        labelled(replica(made), HOSTILE | {"app": "mine"}, {"modelplane.ai/note": "x", "note": "y"})
    )
    answer = run(scene)
    assert answer.desired.keys() == run(Scene(replica(made))).desired.keys()
    for template in templates(manifests(answer)["model-serving-main"]):
        assert not HOSTILE.items() & template["metadata"]["labels"].items()
        assert template["metadata"]["labels"]["app"] == "mine"
        assert template["metadata"]["annotations"] == {"note": "y"}
    accepted = run(scene.but(observed=applied(answer))).conditions["ModelAccepted"]
    assert accepted[:2] == (True, "Accepted")
    assert f"{GANG} (engine main" in accepted[2]


def test_without_reserved_keys_nothing_is_said() -> None:
    scene = Scene(labelled(replica(), {"app": "mine"}))
    assert run(scene.but(observed=applied(run(scene)))).conditions["ModelAccepted"] == (True, "Accepted", "")


# Names


WORDS = ("a", "b", "epp", "pool", "main", "secret", "leader", "devices", "0a1b2")
"""What deployments, engines and Secrets are called after, so that joins by dashes are often alike."""


def joined(draw: random.Random, most: int = 3) -> str:
    """Return a name."""
    return "-".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_no_object_on_a_cluster_is_of_two_replicas(number: int) -> None:
    for seed in scale.batch(number, quick=20):
        draw = random.Random(f"names {seed}")
        held: dict[Any, str] = {}
        for _ in range(8):
            name = object_name(joined(draw), Identity("use1", draw.randint(0, 3)))
            engines = {joined(draw): [joined(draw)] for _ in range(2)}
            singles = [engine(part, member(secrets=secrets)) for part, secrets in engines.items()]
            gangs = [gang(part, secrets=secrets) for part, secrets in engines.items()]
            made = replica(singles[0], *gangs[1:], name=name, namespace=joined(draw, 2))
            answer = run(Scene(made, input=config(secrets="Mirror", budget=True)))
            for manifest in manifests(answer).values():
                assert held.setdefault(identity_of(manifest), name) == name, (seed, identity_of(manifest))


def test_a_pod_finds_no_mirrored_secret_but_its_own() -> None:
    """Whatever Secret a user names, the pods refer to this replica's copy of one in its own namespace."""
    theirs = "their-model-1a2b3-secret-hf-token-0c1d2"
    variable = {"name": "T", "valueFrom": {"secretKeyRef": {"name": theirs, "key": "token"}}}
    made = replica(engine("main", member(env=[variable], secrets=[theirs])))
    answer = run(Scene(made, input=config(secrets="Mirror")))
    (template,) = templates(manifests(answer)["model-serving-main"])
    (container,) = template["spec"]["containers"]
    named = {
        container["env"][0]["valueFrom"]["secretKeyRef"]["name"],
        *(one["name"] for one in template["spec"]["imagePullSecrets"]),
    }
    mirrored = answer.desired[f"secret-{theirs}"]
    assert named == {mirrored["spec"]["forProvider"]["manifest"]["metadata"]["name"]} != {theirs}
    assert {one["patchesFrom"]["namespace"] for one in mirrored["spec"]["references"]} == {"ml-team"}


# Law C 6: an upgrade changes no pod that runs


def without_probes(held: dict[str, Plain]) -> None:
    """Take from a picker what it had not before `PickerReads`."""
    (container,) = held["epp"]["spec"]["template"]["spec"]["containers"]
    del container["readinessProbe"], container["startupProbe"]
    del held["epp-role"]["rules"][3:]


def as_before(scene: Scene) -> Scene:
    """Return a scene after what the release before these rules made of it: the user's labels on every pod.

    Its picker had no probes, and could read fewer kinds (`PickerReads`).
    """
    seen = applied(run(scene))
    held = {
        key: seen[key]["spec"]["forProvider"]["manifest"] for key in seen if seen[key]["kind"] == "Object"
    }
    for part in scene.replica["spec"]["engines"]:
        manifest = held[f"model-serving-{part['name']}"]
        for given, template in zip(part["members"], templates(manifest), strict=True):
            metadata = template.setdefault("metadata", {})
            for field, pairs in given["template"].get("metadata", {}).items():
                metadata |= {field: {**pairs, **metadata.get(field, {})}} if pairs else {}
    del held["epp"]["spec"]["template"]["metadata"]["labels"][PICKER_LABEL]
    without_probes(held)
    held["epp-service"]["spec"]["selector"] = {"app": held["epp"]["metadata"]["name"]}
    return scene.but(observed={key: observed(key, {k: v for k, v in made.items() if k != "status"})
                               for key, made in seen.items()})  # fmt: skip


@pytest.mark.parametrize("made", [engine(), gang(), gang(copies=3)], ids=["single", "gang", "gangs"])
def test_pods_that_run_with_reserved_keys_stay_until_their_next_edit(made: Plain) -> None:
    running = as_before(Scene(labelled(replica(made), HOSTILE)))
    before = {key: one["spec"] for key, one in running.observed.items()}
    answer = run(running)
    assert {key: one["spec"] for key, one in answer.desired.items()} == before
    assert answer.reason("ModelUpdated") == "UpToDate"
    scaled = run(running.edited(engines=[{**running.replica["spec"]["engines"][0], "copies": 7}]))
    assert templates(manifests(scaled)["model-serving-main"]) == templates(
        manifests(answer)["model-serving-main"]
    )
    edited = copy.deepcopy(running.replica["spec"]["engines"])
    edited[0]["members"][0]["template"]["spec"]["containers"][0]["image"] = "next"
    for template in templates(manifests(run(running.edited(engines=edited)))["model-serving-main"]):
        assert not HOSTILE.items() & template.get("metadata", {}).get("labels", {}).items()


def test_a_picker_that_is_made_anew_reads_all_that_it_waits_for() -> None:
    """Its Role is of before and its pods are not: their Object was deleted, or the Role was not applied."""
    scene = Scene(replica(engine()))
    seen = applied(run(scene))
    del seen["epp-role"]["spec"]["forProvider"]["manifest"]["rules"][3:]
    for held_now in (seen, {key: made for key, made in seen.items() if key != "epp"}):
        held = manifests(run(scene.but(observed=held_now)))
        assert "readinessProbe" in held["epp"]["spec"]["template"]["spec"]["containers"][0]
        assert len(held["epp-role"]["rules"]) > 3


def test_an_edit_adds_no_reserved_key_to_pods_that_run() -> None:
    scene = Scene(replica(gang()))
    running = scene.but(observed=applied(run(scene)))
    answer = run(
        running.but(replica=labelled(running.replica, {GANG: VICTIM, "modelplane.ai/serving": VICTIM}))
    )
    assert {key: one["spec"] for key, one in answer.desired.items()} == {
        key: one["spec"] for key, one in running.observed.items()
    }


# The Service of the picker follows its pods


def picker_of(scene: Scene) -> tuple[bool, str]:
    """Return whether the picker's pods are to have our label, and the label that its Service selects by."""
    desired = manifests(run(scene))
    (label,) = desired["epp-service"]["spec"]["selector"]
    return PICKER_LABEL in desired["epp"]["spec"]["template"]["metadata"]["labels"], label


def edited(scene: Scene) -> Scene:
    """Return a scene whose image was edited."""
    return scene.edited(engines=[engine("main", member(image="next"))])


def test_a_new_pickers_pods_have_a_label_that_nobody_else_can_set() -> None:
    answer = manifests(run(Scene(replica())))
    assert answer["epp-service"]["spec"]["selector"] == {PICKER_LABEL: "my-model-5ab63-epp"}
    assert answer["epp"]["spec"]["selector"] == {"matchLabels": {"app": "my-model-5ab63-epp"}}


class Late(NamedTuple):
    """How far the controller of an edited picker is, and whether its Service may follow."""

    reason: str
    follows: bool
    generation: int = 2
    observed: int = 2
    replicas: int = 1
    updated: int = 1
    available: int = 1
    labelled: bool = True
    synced: bool = True


LATE = [
    Late("every pod is of the new template", True),
    Late("the provider reports what it wrote, beside the status of before", False, observed=1),
    Late("the provider has not written it yet", False, generation=1, observed=1, labelled=False),
    Late("an old pod is there still", False, replicas=2),
    Late("no new pod yet", False, updated=0),
    Late("the new pod does not take requests yet", False, available=0),
    Late("there is no pod", False, replicas=0, updated=0, available=0),
    Late("the provider could not write it", False, synced=False),
]


@pytest.mark.parametrize("late", LATE, ids=[late.reason for late in LATE])
def test_the_service_of_a_picker_follows_its_pods(late: Late) -> None:
    running = as_before(Scene(replica()))
    assert picker_of(running) == (False, "app")
    rolling = edited(running)
    assert picker_of(rolling) == (True, "app")
    seen = applied(run(rolling))
    status = {"observedGeneration": late.observed, "replicas": late.replicas, "updatedReplicas": late.updated}
    status |= {"availableReplicas": late.available}
    manifest = seen["epp"]["spec"]["forProvider"]["manifest"]
    held = copy.deepcopy(manifest)
    if not late.labelled:
        del held["spec"]["template"]["metadata"]["labels"][PICKER_LABEL]
    held["metadata"]["generation"] = late.generation
    seen["epp"]["status"]["atProvider"]["manifest"] = {
        **held,
        "status": {**remote(manifest)["status"], **status},
    }
    seen["epp"]["status"]["conditions"][0]["status"] = str(late.synced)
    after = rolling.but(observed=seen)
    assert picker_of(after) == (True, PICKER_LABEL if late.follows else "app")
    if late.follows:
        later = after.but(observed=applied(run(after), epp="started"))
        assert picker_of(later) == (True, PICKER_LABEL), "it goes on while the picker restarts"


def test_a_picker_that_runs_gets_probes_and_permissions_with_the_next_edit() -> None:
    first = applied(run(Scene(replica())))
    held = {key: one["spec"]["forProvider"]["manifest"] for key, one in first.items()}
    without_probes(held)
    seen = {key: observed(key, {k: v for k, v in one.items() if k != "status"}) for key, one in first.items()}
    running = Scene(replica(), observed=seen)
    standing, changed = (manifests(run(scene)) for scene in (running, edited(running)))
    assert {key: standing[key] for key in ("epp", "epp-role")} == {
        key: held[key] for key in ("epp", "epp-role")
    }
    (container,) = changed["epp"]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["grpc"] == {"port": 9003, "service": "readiness"}
    wanted = {
        ("inference.networking.x-k8s.io", "inferencemodelrewrites"),
        ("llm-d.ai", "inferenceobjectives"),
    }
    assert wanted <= {(rule["apiGroups"][0], rule["resources"][0]) for rule in changed["epp-role"]["rules"]}


def test_a_role_is_made_anew_with_all_kinds_beside_pods_that_run() -> None:
    """The Role of before stays as it stands; one that was deleted, or has all kinds, is not taken back."""
    scene = Scene(replica())
    seen = applied(run(scene))
    rules = manifests(run(scene))["epp-role"]["rules"]
    (container,) = seen["epp"]["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]["containers"]
    del container["readinessProbe"], container["startupProbe"]
    for there in (seen, {key: made for key, made in seen.items() if key != "epp-role"}):
        made = manifests(run(scene.but(observed=there)))
        assert made["epp"] == seen["epp"]["spec"]["forProvider"]["manifest"]
        assert made["epp-role"]["rules"] == rules


def test_a_service_goes_back_to_pods_that_lost_the_label() -> None:
    """As after a release before this one ran for a while: its picker's pods have no such label."""
    running = as_before(Scene(replica()))
    seen = dict(running.observed)
    service = copy.deepcopy(seen["epp-service"])
    service["spec"]["forProvider"]["manifest"]["spec"]["selector"] = {PICKER_LABEL: "my-model-5ab63-epp"}
    assert picker_of(running.but(observed=seen | {"epp-service": service})) == (False, "app")

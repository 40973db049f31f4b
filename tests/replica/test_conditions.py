"""Conditions: what is said of a replica, from the statuses of its Objects."""

from __future__ import annotations

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from function.replica.conditions import condition_types
from tests.replica.build import Scene, cluster, config, engine, gang, member, replica, run
from tests.replica.provider import applied
from tests.support.circuit import with_circuit

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
SCENE = Scene(replica(engine("a"), gang("b", copies=2)))


def remote(observed: Plain, key: str) -> Plain:
    """Return the remote object of a key, to be changed."""
    return dict(observed[key]["status"]["atProvider"])["manifest"]


def refused(observed: Plain) -> None:
    conditions = [{"type": "Accepted", "status": "False", "message": "no listener\n takes it"}]
    remote(observed, "model-route")["status"] = {"parents": [{"conditions": conditions}]}


def unresolved(observed: Plain) -> None:
    conditions = [{"type": "ResolvedRefs", "status": "False"}]
    remote(observed, "model-route")["status"] = {"parents": [{"conditions": conditions}]}


def no_picker(observed: Plain) -> None:
    observed["epp"]["status"]["conditions"][1]["status"] = "False"


def silent_route(observed: Plain) -> None:
    remote(observed, "model-route").pop("status")


def vacuous(observed: Plain) -> None:
    """One copy that may be unavailable: the Deployment is Available, and no pod is."""
    remote(observed, "model-serving-a")["status"].pop("availableReplicas")


def unsynced(observed: Plain) -> None:
    for manifest in observed.values():
        manifest["status"]["conditions"][0]["status"] = "False"


def without_status(observed: Plain) -> None:
    del observed["model-serving-b"]["status"]


def half_updated(observed: Plain) -> None:
    remote(observed, "model-serving-b")["status"]["updatedReplicas"] = 1


def still_updating(observed: Plain) -> None:
    condition = {"type": "UpdateInProgress", "status": "True"}
    remote(observed, "model-serving-b")["status"]["conditions"].append(condition)


def stalled(observed: Plain) -> None:
    status = remote(observed, "model-serving-a")["status"]
    status["updatedReplicas"] = 0
    reason = "ProgressDeadlineExceeded"
    status["conditions"] = [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "False", "reason": reason, "message": "timed out"},
    ]


QUOTA = 'pods "a-5d4f-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2'


def refused_pods(observed: Plain) -> None:
    """The API server refuses the pods of a Deployment, which says so; nothing is seen of them."""
    conditions = remote(observed, "model-serving-a")["status"].setdefault("conditions", [])
    conditions.append(
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    )


def not_acted_on(observed: Plain) -> None:
    """A field that the manifest left out since is still there: all that is wanted is there too."""
    observed["model-serving-a"]["metadata"]["generation"] = 3
    observed["model-serving-a"]["status"]["conditions"][0]["observedGeneration"] = 2


def failing(observed: Plain, applied: Plain) -> None:
    """The provider fails, and what it applied last is noted on the remote object."""
    workload = observed["model-serving-a"]
    workload["status"]["conditions"][0] |= {"status": "False", "message": "denied", "observedGeneration": 3}
    workload["metadata"]["generation"] = 3
    remote(observed, "model-serving-a")["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)
    }


def refused_to_take_away(observed: Plain) -> None:
    """The pods have all that is wanted, and a command that an edit took away: the edit was refused."""
    before = copy.deepcopy(observed["model-serving-a"]["spec"]["forProvider"]["manifest"])
    before["spec"]["template"]["spec"]["containers"][0]["command"] = ["sleep"]
    failing(observed, before)
    remote(observed, "model-serving-a")["spec"] = before["spec"]


def cut_off(observed: Plain) -> None:
    failing(observed, observed["model-serving-a"]["spec"]["forProvider"]["manifest"])


def acted_on(observed: Plain) -> None:
    observed["model-serving-a"]["metadata"]["generation"] = 3
    observed["model-serving-a"]["status"]["conditions"][0]["observedGeneration"] = 3


def deleted_by_hand(observed: Plain) -> None:
    remote(observed, "model-serving-a")["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"


def of_another_kind(observed: Plain) -> None:
    remote(observed, "model-serving-a")["kind"] = "StatefulSet"


def of_another_name(observed: Plain) -> None:
    remote(observed, "model-serving-a")["metadata"]["name"] = "other"


CASES: list[tuple[str, Callable[[Plain], None], str, bool, str]] = [
    ("nothing is wrong", lambda _: None, "ModelReady", True, "Serving"),
    ("nothing is wrong", lambda _: None, "ModelAccepted", True, "Accepted"),
    ("nothing is wrong", lambda _: None, "ModelUpdated", True, "UpToDate"),
    ("the gateway refuses the route", refused, "ModelReady", False, "RouteRejected"),
    ("the route has no backend", unresolved, "ModelReady", False, "RouteRejected"),
    ("the route is not judged yet: unknown passes", silent_route, "ModelReady", True, "Serving"),
    ("no picker works", no_picker, "ModelReady", False, "PickerStarting"),
    ("available without a pod", vacuous, "ModelReady", False, "ModelStarting"),
    ("the cluster is cut off: what was seen last counts", unsynced, "ModelReady", True, "Serving"),
    ("an Object without a status", without_status, "ModelAccepted", False, "Deploying"),
    ("an Object without a status", without_status, "ModelReady", False, "WaitingForModel"),
    ("one group of two is updated", half_updated, "ModelUpdated", False, "Updating"),
    ("pods of before serve on", half_updated, "ModelReady", True, "Serving"),
    ("a group is being replaced", still_updating, "ModelUpdated", False, "Updating"),
    ("no progress in time", stalled, "ModelUpdated", False, "RolloutStalled"),
    ("the provider is behind the latest manifest", not_acted_on, "ModelUpdated", False, "Updating"),
    ("pods of before serve on", not_acted_on, "ModelReady", True, "Serving"),
    ("the provider acted on the latest manifest", acted_on, "ModelUpdated", True, "UpToDate"),
    ("an edit that only takes away is refused", refused_to_take_away, "ModelUpdated", False, "Updating"),
    ("the cluster is cut off, nothing was edited", cut_off, "ModelUpdated", True, "UpToDate"),
    ("what is being deleted does not stay", deleted_by_hand, "ModelUpdated", False, "Updating"),
    ("what is being deleted serves until it is gone", deleted_by_hand, "ModelReady", True, "Serving"),
    ("what was seen is of another kind", of_another_kind, "ModelAccepted", False, "Deploying"),
    ("what was seen has another name", of_another_name, "ModelUpdated", False, "Updating"),
]


@pytest.mark.parametrize(("why", "change", "kind", "status", "reason"), CASES)
def test_a_condition(
    why: str, change: Callable[[Plain], None], kind: str, *, status: bool, reason: str
) -> None:
    observed = applied(run(SCENE))
    change(observed)
    answer = run(SCENE.but(observed=observed))
    assert answer.conditions[kind][:2] == (status, reason), why
    assert answer.desired.keys() == observed.keys()
    assert answer.settled == all(condition[0] for condition in answer.conditions.values())


@pytest.mark.parametrize("stack", ["Standard", "KServe"])
@pytest.mark.parametrize("doubted", [False, True], ids=["composed", "in doubt"])
@pytest.mark.parametrize(("was", "expected"), [("True", "UpToDate"), ("False", "Updating")])
def test_while_providers_fail_what_was_known_of_a_rollout_stands(
    stack: str, was: str, expected: str, *, doubted: bool
) -> None:
    """Applied server-side, a remote object notes nothing: a failure proves nothing, nor does it undo."""
    engines = [engine("a"), gang("b", copies=2)] if stack == "Standard" else [engine("a")]
    made = replica(*engines, conditions=[{"type": "ModelUpdated", "status": was}])
    made["spec"]["serving"] = {"model": {"uri": "hf://org/m"}}
    scene = Scene(made, cluster(stack=stack))
    observed = applied(run(scene))
    unsynced(observed)
    asked = scene.but(observed=observed, cluster=None if doubted else scene.cluster)
    answer = run(asked, level="wire")
    assert answer.reason("ModelUpdated") == expected


@pytest.mark.parametrize("change", [refused, unresolved])
def test_a_replica_whose_route_is_refused_is_not_ready(change: Callable[[Plain], None]) -> None:
    observed = applied(run(SCENE))
    change(observed)
    assert run(SCENE.but(observed=observed)).unready


def test_a_message_is_one_line_of_what_the_gateway_says() -> None:
    observed = applied(run(SCENE))
    refused(observed)
    message = run(SCENE.but(observed=observed)).conditions["ModelReady"][2]
    assert message == "HTTPRoute default/my-model-5ab63: no listener takes it"


@pytest.mark.parametrize("stage", ["nothing", "created", "started"])
def test_two_engines_one_stuck(stage: str) -> None:
    observed = applied(run(SCENE), model_serving_b=stage)
    answer = run(SCENE.but(observed=observed))
    assert answer.conditions["ModelReady"][0] is False
    assert "model-serving-a" in answer.ready
    assert "model-serving-b" not in answer.ready
    assert answer.desired.keys() == observed.keys()


def test_why_an_object_cannot_be_applied_is_said() -> None:
    observed = applied(run(SCENE), "nothing")
    condition = observed["model-serving-b"]["status"]["conditions"][0]
    condition |= {"status": "False", "message": "admission webhook denied the request"}
    text = run(SCENE.but(observed=observed)).conditions["ModelAccepted"][2]
    assert text == "Not on cluster-a yet: a, b (admission webhook denied the request)"


CLAIM = "ResourceClaimTemplate default/my-model-5ab63-a-standalone-devices-76ee6"


@pytest.mark.parametrize(
    ("key", "stages", "kind", "text"),
    [
        ("model-serving-a", {}, "ModelUpdated", "a 0 of 1 copies (denied)"),
        (
            "resource-claim-a-standalone",
            {"model_serving_a": "started"},
            "ModelReady",
            f"Not serving yet: a; {CLAIM}: denied",
        ),
        (
            "resource-claim-a-standalone",
            {"model_serving_a": "nothing"},
            "ModelReady",
            f"Waiting for the workloads to be created; {CLAIM}: denied",
        ),
        (
            "epp-config",
            {"epp": "started"},
            "ModelReady",
            "The endpoint picker is not available yet; ConfigMap default/my-model-5ab63-epp: denied",
        ),
    ],
)
def test_which_object_could_not_be_applied_is_said(
    key: str, stages: dict[str, str], kind: str, text: str
) -> None:
    observed = applied(run(SCENE), **stages)
    observed[key]["metadata"]["generation"] = 2
    observed[key]["status"]["conditions"][0] |= {
        "status": "False",
        "message": "denied",
        "observedGeneration": 1,
    }
    assert run(SCENE.but(observed=observed)).conditions[kind][2] == text


REFUSED = "create failed: cannot create object: admission webhook denied the request"
NO_SECRET = 'observe failed: cannot resolve resource references: Secret "pull" not found'
FORBIDDEN = "observe failed: cannot get object: poddisruptionbudgets.policy is forbidden: no verb get"
AWAY = "connect failed: cannot build kube client for provider config"
DIALLED = 'cannot apply object: Post "https://10.0.0.1:443/api/v1": dial tcp 10.0.0.1:443: connection refused'
SLOW = "observe failed: cannot get desired state: cannot dry run SSA: context deadline exceeded"
WEBHOOK = 'create failed: failed calling webhook "a.io": failed to call webhook: Post "https://a.io": EOF'
LATE = "update failed: cannot apply object: Operation cannot be fulfilled: the object has been modified"
SECRET = "Secret default/my-model-5ab63-secret-pull-0a813"
BUDGET = "PodDisruptionBudget default/my-model-5ab63-a-budget-fde83"


@pytest.mark.parametrize(
    ("reason", "said", "expected"),
    [
        ("a budget", {"budget-a": REFUSED}, f"Not applied: {BUDGET} ({REFUSED})"),
        ("one that may not even be read", {"budget-a": FORBIDDEN}, f"Not applied: {BUDGET} ({FORBIDDEN})"),
        (
            "a mirrored Secret whose original is not there",
            {"secret-pull": NO_SECRET},
            f"Not applied: {SECRET} ({NO_SECRET})",
        ),
        (
            "two, of which the first is named",
            {"budget-a": REFUSED, "secret-pull": NO_SECRET},
            f"Not applied: {BUDGET} ({REFUSED}) and 1 more",
        ),
        (
            "an edit of the route, which was created",
            {"model-route": "update failed: no"},
            "Not applied: HTTPRoute default/my-model-5ab63 (update failed: no)",
        ),
        ("the network is no refusal: nothing flaps because of it", {"budget-a": AWAY, "epp": AWAY}, ""),
        ("nor is it where the cluster was reached before", {"budget-a": f"create failed: {DIALLED}"}, ""),
        ("nor at an edit", {"budget-a": f"update failed: {DIALLED}"}, ""),
        ("nor where it takes too long", {"budget-a": SLOW}, ""),
        (
            "a webhook that the API server does not reach refuses",
            {"budget-a": WEBHOOK},
            f"Not applied: {BUDGET} ({WEBHOOK})",
        ),
        ("a conflict passes", {"budget-a": LATE}, ""),
        ("of a workload ModelUpdated says it", {"model-serving-a": REFUSED}, ""),
    ],
)
def test_what_is_refused_beside_a_model_that_serves_is_named(
    reason: str, said: dict[str, str], expected: str
) -> None:
    several = Scene(
        replica(engine("a", member(secrets=["pull"]), copies=2)), input=config(budget=True, secrets="Mirror")
    )
    observed = applied(run(several))
    for key, message in said.items():
        observed[key]["status"]["conditions"][0] |= {"status": "False", "message": message}
    answer = run(several.but(observed=observed))
    assert answer.conditions["ModelAccepted"] == (True, "Accepted", expected), reason
    assert answer.conditions["ModelReady"] == (True, "Serving", ""), reason
    assert not answer.unready


PORT, KIND = "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535", "spec.type: Required value"
NAME = 'metadata.name: Invalid value: "a.b": must be a label (e.g. "a", or "b", by "[a-z]*")'
UNDECLARED = (".spec.b: field not declared in schema", ".spec.a: field not declared in schema")


@pytest.mark.parametrize(
    ("reason", "head", "by", "tail", "fields"),
    [
        ("validation", 'Service "a" is invalid: [', ", ", "]", (PORT, KIND, NAME)),
        ("types", "failed to create typed patch object: errors:\n  ", "\n  ", "", UNDECLARED),
        ("cut off", 'Service "a" is invalid: [', ", ", "", ("spec.a: Required value", KIND)),
        ("not one reading for each opening", "a is invalid: [", ", ", " is invalid: [" * 100_000, (KIND,)),
    ],
)
def test_fields_that_an_api_server_refuses_are_said_in_one_order(
    reason: str, head: str, by: str, tail: str, fields: tuple[str, ...]
) -> None:
    """It walks maps in another order each time. A text that changes is a write, which wakes everybody."""
    observed = applied(run(SCENE))
    texts = set()
    for order in itertools.permutations(fields):
        said = f"create failed: {head}{by.join(order)}{tail}"
        observed["epp"]["status"]["conditions"][0] |= {"status": "False", "message": said}
        texts.add(run(SCENE.but(observed=observed)).conditions["ModelAccepted"][2])
    (text,) = texts
    places = [text.index(field) for field in sorted(fields)]
    assert places == sorted(places), reason


def pod(name: str, scheduled: str, message: str = "") -> Plain:
    """Return the Object through which a pod is seen, with its condition PodScheduled."""
    condition = {"type": "PodScheduled", "status": scheduled, "message": message}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    seen = {"manifest": {**manifest, "status": {"conditions": [condition]}}}
    spec = {"forProvider": {"manifest": manifest}}
    made = {"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": name}}
    return {**made, "spec": spec, "status": {"atProvider": seen}}


@pytest.mark.parametrize(
    ("reason", "stage", "kind", "expected"),
    [
        ("the first pods", "started", "ModelReady", ("FailedCreate", f"a: {QUOTA}")),
        ("the first pods", "started", "PodsScheduled", ("FailedCreate", f"a: {QUOTA}")),
        ("those of before serve on", "half", "ModelReady", ("Serving", "")),
        ("what a rollout waits for", "half", "ModelUpdated", ("Updating", f"a 0 of 1 copies ({QUOTA})")),
        ("it ran out of time", "late", "ModelUpdated", ("RolloutStalled", f"a: timed out; {QUOTA}")),
    ],
)
def test_pods_that_a_cluster_refuses_are_told_of(
    reason: str, stage: str, kind: str, expected: tuple[str, str]
) -> None:
    scene = SCENE.but(input=config(diagnose="Pods"))
    observed = applied(run(scene), **({"model_serving_a": "started"} if stage == "started" else {}))
    if stage == "late":
        stalled(observed)
    if stage == "half":
        remote(observed, "model-serving-a")["status"]["updatedReplicas"] = 0
    refused_pods(observed)
    assert run(scene.but(observed=observed)).conditions[kind][1:] == expected, reason


def test_pods_that_cannot_be_deleted_are_not_called_refused() -> None:
    """A ReplicaSet says ReplicaFailure of both, each by its reason."""
    observed = applied(run(SCENE), model_serving_a="started")
    refused_pods(observed)
    remote(observed, "model-serving-a")["status"]["conditions"][-1]["reason"] = "FailedDelete"
    answer = run(SCENE.but(observed=observed))
    assert answer.conditions["ModelReady"][1:] == ("ModelStarting", "Not serving yet: a")


FULL = "0/4 nodes are available"


@pytest.mark.parametrize(
    ("reason", "stage", "pods", "expected"),
    [
        ("no pod is seen", "started", [], (False, "WaitingForPods", "The pods are not observed yet")),
        (
            "one that its provider has not looked at is no pod that is seen",
            "started",
            [{**pod("b", "True"), "status": {}}],
            (False, "WaitingForPods", "The pods are not observed yet"),
        ),
        ("none is looked for once they serve", "available", [], (True, "Scheduled", "")),
        ("all are scheduled", "started", [pod("a", "True")], (True, "Scheduled", "")),
        (
            "one is not",
            "started",
            [pod("a", "True"), pod("b", "False", FULL)],
            (False, "Unschedulable", FULL),
        ),
        (
            "the first by name is told of",
            "started",
            [pod("c", "False", "other"), pod("b", "False", FULL)],
            (False, "Unschedulable", FULL),
        ),
        (
            "it does not say why",
            "started",
            [pod("b", "False")],
            (False, "Unschedulable", "Pod b is not scheduled"),
        ),
    ],
)
def test_why_a_pod_is_pending_is_told(
    reason: str, stage: str, pods: list[Plain], expected: tuple[bool, str, str]
) -> None:
    scene = SCENE.but(input=config(diagnose="Pods"))
    starting = scene.but(observed=applied(run(scene), model_serving_a=stage), more={"pods-a": pods})
    answer = run(starting)
    assert answer.conditions["PodsScheduled"] == expected, reason
    if expected[1] == "Unschedulable":
        assert answer.conditions["ModelReady"] == expected, "the reason why it does not serve"
    elif stage == "started":
        assert answer.conditions["ModelReady"][1:] == ("ModelStarting", "Not serving yet: a")
    assert "PodsScheduled" not in run(starting.but(input=config())).conditions


@pytest.mark.parametrize(("diagnose", "more"), [("Pods", ("PodsScheduled",)), ("None", ())])
def test_an_error_of_our_own_will_say_every_condition(diagnose: str, more: tuple[str, ...]) -> None:
    asked = SCENE.but(input=config(diagnose=diagnose)).asked.request()
    assert condition_types(asked) == ("ModelAccepted", "ModelReady", "ModelUpdated", *more)


def test_before_anything_is_composed_that_is_said() -> None:
    expected = (False, "Updating", "No workload is composed yet")
    assert run(SCENE.but(cluster=None)).conditions["ModelUpdated"] == expected


def test_the_query_of_a_workload_can_ask_for_a_copy() -> None:
    scene = SCENE.but(input=config(readiness="AvailableCopies"))
    plain, asked = (
        {key: one["spec"].get("readiness", {}).get("celQuery") for key, one in run(which).desired.items()}
        for which in (SCENE, scene)
    )
    assert {key for key, query in plain.items() if query} == {"model-serving-a", "model-serving-b", "epp"}
    has_copy = "has(object.status.availableReplicas) && object.status.availableReplicas > 0"
    assert asked == {**plain, "model-serving-a": f"{plain['model-serving-a']} && {has_copy}"}


class TestStatus:
    """The status is written only where the input asks for it, and kept in doubt."""

    scene = SCENE.but(input=config(status="Engines"))

    def test_nothing_is_written_unasked(self) -> None:
        assert run(SCENE).status == {}

    def test_engines_and_what_all_of_their_pods_run(self) -> None:
        settled = self.scene.but(observed=applied(run(self.scene)))
        answer = run(settled)
        assert run(settled, level="wire").status == answer.status
        assert answer.status["engines"] == [
            {"name": "a", "copies": 1, "available": 1, "updated": 1},
            {"name": "b", "copies": 2, "available": 2, "updated": 2},
        ]
        assert len(answer.status["servingDigest"]) == 16

    def test_the_digest_stays_until_every_pod_runs_the_new_spec(self) -> None:
        settled = self.scene.but(observed=applied(run(self.scene)))
        status = run(settled).status
        kept = settled.but(replica={**settled.replica, "status": status})
        image = engine("a", {**engine("a")["members"][0]})
        image["members"][0]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/new:v2"
        edited = kept.edited(engines=[image, gang("b", copies=2)])
        first = run(edited)
        assert first.status["servingDigest"] == status["servingDigest"]
        assert first.status["engines"][0]["updated"] == 0
        second = run(edited.but(observed=applied(first)))
        assert second.status["servingDigest"] != status["servingDigest"]

    def test_copies_are_no_part_of_the_digest(self) -> None:
        settled = run(self.scene.but(observed=applied(run(self.scene))))
        more = self.scene.edited(engines=[engine("a", copies=2), gang("b", copies=2)])
        assert (
            run(more.but(observed=applied(run(more)))).status["servingDigest"]
            == settled.status["servingDigest"]
        )

    def test_in_doubt_the_status_is_written_again(self) -> None:
        status = {"engines": [{"name": "a"}], "servingDigest": "d", "conditions": [], "other": 1}
        doubted = self.scene.but(replica={**self.scene.replica, "status": status}, cluster=None)
        assert run(doubted).status == {"engines": [{"name": "a"}], "servingDigest": "d"}

    def test_without_engines_none_are_written(self) -> None:
        doubted = self.scene.but(
            replica={**self.scene.replica, "status": {"servingDigest": "d"}}, cluster=None
        )
        assert run(doubted).status == {"servingDigest": "d"}

    @pytest.mark.parametrize("before", [{}, {"adapters": [{"name": "x"}]}])
    def test_adapters_stay_until_their_list_is_seen(self, before: Plain) -> None:
        """Law C 3: a field that an answer leaves out is removed."""
        made = replica(engine("a") | {"adapters": {"slots": 2}})
        scene = Scene({**made, "status": before}, more={"adapters": []})
        assert run(scene).status == before
        assert run(scene.but(observed=applied(run(scene)))).status == {"adapters": []}

    def test_in_doubt_no_copy_counts_as_updated_to_a_spec_that_was_edited_since(self) -> None:
        """Ready will be about the edited spec: a rollout took old counts for half an update."""
        settled = self.scene.but(observed=applied(run(self.scene)))
        status = run(settled).status
        doubted = settled.but(replica={**settled.replica, "status": status}, cluster=None)
        assert run(doubted).status == status
        assert run(doubted).conditions["ModelUpdated"] == (True, "UpToDate", "")
        edited = doubted.edited(engines=[engine("a", copies=1, phase="Decode"), gang("b", copies=2)])
        assert run(edited).status["servingDigest"] == status["servingDigest"]
        assert run(edited).status["engines"] == [
            {"name": "a", "copies": 1, "available": 1, "updated": 0},
            {"name": "b", "copies": 2, "available": 2, "updated": 0},
        ]
        said = run(edited).conditions
        assert said["ModelUpdated"] == (False, "Updating", said["ModelAccepted"][2])
        assert said["ModelReady"] == (True, "Serving", ""), "it serves on"

    def test_in_doubt_an_edit_that_is_taken_back_proves_nothing(self) -> None:
        """The digest is that of the spec again, and pods may run the edit."""
        settled = self.scene.but(observed=applied(run(self.scene)))
        status = run(settled).status
        doubted = settled.but(replica={**settled.replica, "status": status}, cluster=None)
        edited = run(doubted.edited(engines=[engine("a", copies=1, phase="Decode"), gang("b", copies=2)]))
        back = doubted.but(replica={**settled.replica, "status": edited.status})
        assert "servingDigest" not in run(back).status
        assert run(back).status["engines"] == edited.status["engines"]
        assert run(back).reason("ModelUpdated") == "Updating"

    def test_in_doubt_nothing_is_said_to_run_a_spec_that_it_was_never_seen_to_run(self) -> None:
        """The replica was edited before its first pods started: the workloads are of the spec before."""
        doubted = self.scene.but(observed=applied(run(self.scene)), cluster=None)
        edited = run(doubted.edited(engines=[engine("a", copies=1, phase="Decode"), gang("b", copies=2)]))
        message = edited.conditions["ModelAccepted"][2]
        assert edited.conditions["ModelUpdated"] == (False, "Updating", message)


def test_while_the_circuit_is_open_an_answer_holds_as_short_as_it_may() -> None:
    """Its ten Objects open the breaker of every replica that starts, and then only the ttl brings an edit."""
    serving = SCENE.but(observed=applied(run(SCENE)))
    assert run(serving).settled
    assert not run(serving.but(replica=with_circuit(serving.replica, opened=True))).settled
    assert run(serving.but(replica=with_circuit(serving.replica, opened=False))).settled

"""Replicas of one name in two namespaces do not get the same objects on a cluster, if that is asked for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.replica.build import API, CLUSTER, NAMESPACE, REPLICA, Scene, config, replica, run
from tests.replica.provider import applied
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Mapping

Plain = dict[str, Any]
EARLY, LATE = "2026-03-01T08:00:00Z", "2026-03-01T08:00:01Z"
LABELS = {"modelplane.ai/deployment": "my-model", "modelplane.ai/cluster": CLUSTER}
REFUSE = config(namesakes="Refuse")


def existing(
    namespace: str = NAMESPACE,
    *,
    created: str = EARLY,
    labels: Mapping[str, str] = LABELS,
    name: str = REPLICA,
) -> Plain:
    """Return a replica as the API server has it."""
    made = replica(name=name, namespace=namespace)
    made["metadata"] |= {"creationTimestamp": created, "labels": dict(labels), "uid": f"uid-in-{namespace}"}
    return made


def scene(ours: Plain, *others: Plain, asked: Plain | None = REFUSE) -> Scene:
    """Return a request about a replica, with all that its requirement would fetch."""
    return Scene(ours, input=asked, more={"namesakes": [ours, *others]})


def planned() -> Plain:
    """Return a replica that is in no API server yet."""
    made = existing()
    del made["metadata"]["creationTimestamp"]
    return made


def moved(made: Plain, cluster: str) -> Plain:
    return {**made, "spec": {**made["spec"], "clusterName": cluster}}


class Case(NamedTuple):
    """A replica, who else is there, the input, and the reason of ModelAccepted."""

    reason: str
    ours: Plain
    others: tuple[Plain, ...]
    accepted: str
    asked: Plain | None = REFUSE


THEIRS = existing("team-b")
CASES = [
    Case("alone", existing(), (), "Deploying"),
    Case("who came first has the name", existing(created=LATE), (THEIRS,), "NameTaken"),
    Case("who came later has not", existing(), (existing("team-b", created=LATE),), "Deploying"),
    Case("in one second the namespace decides", existing(), (existing("a-team"),), "NameTaken"),
    Case("and for the other one too", existing(), (THEIRS,), "Deploying"),
    Case("another name", existing(created=LATE), (existing("team-b", name="other"),), "Deploying"),
    Case("another cluster", existing(created=LATE), (moved(THEIRS, "b"),), "Deploying"),
    Case("one that is being deleted has it until it is gone", existing(created=LATE),
         ({**THEIRS, "metadata": {**THEIRS["metadata"], "deletionTimestamp": LATE}},), "NameTaken"),
    Case("one that is planned comes last", planned(), (existing("team-b", created=LATE),), "NameTaken"),
    Case("nobody asked", existing(created=LATE), (THEIRS,), "Deploying", None),
    Case("Ignore", existing(created=LATE), (THEIRS,), "Deploying", config(namesakes="Ignore")),
    Case("pods are in namespaces of their own", existing(created=LATE), (THEIRS,), "Deploying",
         config(namesakes="Refuse", remoteNamespace="Same")),
    Case("made by hand: there is nothing to find namesakes by", existing(created=LATE, labels={}), (THEIRS,),
         "Deploying"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
@pytest.mark.parametrize("level", ["plain", "wire"])
def test_who_came_first_has_the_name(case: Case, level: str) -> None:
    answer = run(scene(case.ours, *case.others, asked=case.asked), level=level)
    assert answer.reason("ModelAccepted") == case.accepted
    assert bool(answer.desired) == (case.accepted == "Deploying")
    if case.accepted == "NameTaken":
        holder = case.others[0]["metadata"]["namespace"]
        assert f"{holder}/{REPLICA} came first on {CLUSTER}" in answer.conditions["ModelAccepted"][2]
        assert answer.unready


def test_the_replicas_of_deployments_of_this_name_on_this_cluster_are_asked_for() -> None:
    answer = run(Scene(existing(), input=REFUSE))
    asked = next(asked for asked in answer.requirements if asked["name"] == "namesakes")
    assert (asked["apiVersion"], asked["kind"], asked["namespace"]) == (API, "ModelReplica", None)
    assert (asked["matchName"], asked["matchLabels"]) == (None, LABELS)


@pytest.mark.parametrize(
    "labels", [{}, {"modelplane.ai/deployment": "my-model"}, {**LABELS, "modelplane.ai/cluster": ""}]
)
def test_without_both_labels_nothing_is_asked_for(labels: Plain) -> None:
    answer = run(Scene(existing(labels=labels), input=REFUSE))
    assert [asked["name"] for asked in answer.requirements] == ["cluster"]


def test_until_they_are_delivered_nothing_new_is_composed() -> None:
    answer = run(Scene(existing(), input=REFUSE))
    assert answer.reason("ModelAccepted") == "WaitingForCluster"
    assert not answer.desired


def test_pods_that_share_their_names_already_stay_and_serve() -> None:
    """As after an upgrade: which of the two runs is not known here, and doubt deletes nothing."""
    ours = existing(created=LATE)
    observed = applied(run(scene(ours)))
    answer = run(scene(ours, THEIRS).but(observed=observed))
    assert answer.desired.keys() == observed.keys()
    assert {key: made["spec"] for key, made in answer.desired.items()} == {
        key: made["spec"] for key, made in observed.items()
    }
    assert answer.reason("ModelReady") == "Serving"
    assert not answer.unready


@pytest.mark.parametrize("seed", scale.seeds(20))
def test_of_all_namesakes_exactly_one_is_composed(seed: int) -> None:
    draw = random.Random(seed)
    namespaces = draw.sample(["a", "b", "c", "d", "e"], draw.randint(1, 5))
    all_of_them = [existing(one, created=draw.choice((EARLY, LATE))) for one in namespaces]
    draw.shuffle(all_of_them)
    composed = [bool(run(scene(one, *all_of_them)).desired) for one in all_of_them]
    assert composed.count(True) == 1

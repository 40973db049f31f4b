"""Giving way, decided on a snapshot that is old by the time it is applied; and the answer to who asked."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from function.api.names import PAUSED_ANNOTATION, RECONCILE_ANNOTATION
from tests.live import faults, fleet
from tests.live.function_log import FunctionLog
from tests.live.plane import name_of, until

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = "yield"
INDEX = "modelplane.ai/replica-index"
IN_FLIGHT = 3.0
"""Seconds in which Crossplane takes its snapshot and calls the function, which does not answer yet."""


def request(living: ControlPlane, deployment: Plain, token: str) -> None:
    """Ask a deployment to reconcile, as docs/operations.md says."""
    words = ("annotate", "modeldeployment", name_of(deployment), "-n", NAMESPACE, "--overwrite")
    living.kubectl(*words, f"{RECONCILE_ANNOTATION}={token}")


def handled(living: ControlPlane, deployment: Plain) -> str:
    """The request to reconcile that a deployment says was handled last."""
    return str(fleet.current(living, deployment)["status"].get("lastHandledReconcileAt", ""))


def shrink(living: ControlPlane, cluster: Plain) -> None:
    """Publish one node where there were two."""
    pools = [{**pool, "nodes": 1} for pool in cluster["status"]["gpuPools"]]
    living.publish({**cluster, "status": {**cluster["status"], "gpuPools": pools}})


def answers(log: FunctionLog, deployment: Plain) -> list[Plain]:
    """The answers to a deployment since the last look at the log."""
    who = (NAMESPACE, name_of(deployment))
    return [line for line in log.answers() if (line["namespace"], line["name"]) == who]


def at_rest(living: ControlPlane, deployments: list[Plain]) -> bool:
    """Whether no deployment calls within `IN_FLIGHT`: then a call that comes is a new one."""
    logs = [FunctionLog(living) for _ in deployments]
    time.sleep(IN_FLIGHT)
    return not any(map(answers, logs, deployments))


def test_a_replica_that_turns_ready_after_the_snapshot_keeps_its_place(
    living: ControlPlane, day: Day
) -> None:
    """Crossplane writes to what it deletes first, with the version of its snapshot, and is refused."""
    fleet.create_namespace(living, NAMESPACE)
    cluster = fleet.small_cluster("shrinks", "yield", nodes=2)
    fleet.create_fleet(living, [cluster])
    pair = [fleet.small_deployment(name, "yield", namespace=NAMESPACE) for name in ("one", "other")]
    living.apply(*pair)
    replicas = {name_of(manifest): fleet.until_placed(living, manifest, 1)[0] for manifest in pair}
    stays, leaves = sorted(pair, key=lambda manifest: seniority(replicas[name_of(manifest)]))
    until(lambda: at_rest(living, pair), "both at rest")
    log = FunctionLog(living)
    with faults.hung(living, "function"):
        shrink(living, cluster)
        request(living, leaves, "1")
        time.sleep(IN_FLIGHT)
        fleet.make_ready(living, [replicas[name_of(leaves)]])
    request(living, stays, "1")
    step = "two replicas on one node, the later one turns Ready while it is to give way"
    with day.step(step, "it keeps its place, the other one gives way"):
        until(lambda: not fleet.replicas(living, stays), "the replica that is not Ready gives way")
    (kept,) = fleet.replicas(living, leaves)
    assert kept["metadata"]["uid"] == replicas[name_of(leaves)]["metadata"]["uid"]
    decided = [answer for answer in answers(log, leaves) if "counts" in answer]
    given_up = {answer["tag"] for answer in decided if answer["counts"]["dropped"]}
    assert len(given_up) <= 1, (
        "the reconcile of the snapshot without Ready, in one call or several; none where Crossplane was slow"
    )
    for deployment in pair:
        until(lambda one=deployment: handled(living, one) == "1", "the request in the status")


def test_a_replica_that_crossplane_does_not_refer_to_leaves(living: ControlPlane, day: Day) -> None:
    """An answer on reads from before the latest one takes its references away; here a patch does."""
    fleet.create_namespace(living, NAMESPACE)
    cluster = fleet.small_cluster("forgets", "forgets", nodes=2)
    fleet.create_fleet(living, [cluster])
    made = fleet.small_deployment("forgotten", "forgets", 2, NAMESPACE)
    living.apply(made)
    first, last = sorted(
        fleet.until_placed(living, made, 2), key=lambda one: one["metadata"]["labels"][INDEX]
    )
    until(lambda: at_rest(living, [made]), "it is at rest")
    words = ("modeldeployment", name_of(made), "-n", NAMESPACE)
    living.kubectl("annotate", *words, f"{PAUSED_ANNOTATION}=true")
    references = fleet.current(living, made)["spec"]["crossplane"]["resourceRefs"]
    left = [one for one in references if one["name"] != name_of(last)]
    spec = {"replicas": 1, "crossplane": {"resourceRefs": left}}
    living.kubectl("patch", *words, "--type=merge", "-p", json.dumps({"spec": spec}))
    with day.step("a replica that is not referred to is scaled down", "it leaves, the other one stays"):
        living.kubectl("annotate", *words, f"{PAUSED_ANNOTATION}-")
        until(lambda: len(fleet.replicas(living, made)) == 1, "it leaves")
    assert name_of(fleet.replicas(living, made)[0]) == name_of(first)


def seniority(replica: Plain) -> tuple[str, str]:
    """Who has the right to a node: creation, then name."""
    return replica["metadata"]["creationTimestamp"], name_of(replica)

"""A gate of clusters stands in several places, each written on its own: one that lacks it fails here.

Each case is the world of `tests/support/rejected.py` in which `here` is rejected for that reason alone.
"""

from __future__ import annotations

import pytest

from function.api import ModelDeployment
from function.api.reasons import Level, Reason
from function.scheduler.filters import Spread
from function.verify.gates import closed
from tests.oracle import facts
from tests.oracle.schedule import Scheduler
from tests.support import changes, drive, generate
from tests.support.promises.opted_in import state
from tests.support.rejected import CASES
from tests.support.remedies import REMEDIES, unopened

GATES = [reason.name for reason in Reason if reason.level is Level.CLUSTER]

NOT_CERTIFIED = {
    "MalformedCluster": "the checker is given clusters that could be read",
    "NoPoolsPublished": "it holds every replica against the published pools",
    "ChargeNotPublished": "it counts the replicas themselves, whatever a cluster publishes of them",
    "MaxReplicasPerCluster": "it depends on where replicas are: `verify/rules.py`",
    "TopologySpread": "it depends on where replicas are: `verify/capacity.py`",
}
"""Gates that `verify/gates.py` has no line for, and why."""

NOT_IN_THE_ORACLE = {
    "MalformedCluster": "its facts leave out clusters that cannot be read",
    "NoPoolsPublished": "its search finds no pool",
    "ClusterSelectorError": "it has no CEL over clusters",
    "StackCannotExpress": "its worlds have one stack",
    "ChargeNotPublished": "its worlds publish no charge",
    "MaxReplicasPerCluster": "its worlds set no strategy: `tests/properties/test_opted_in.py` has them",
    "TopologySpread": "as above",
}
"""Gates that `tests/oracle/schedule.py` has no line for, and why."""

LEAVES_DOMAIN = {
    "MalformedCluster": True,  # Its labels are not read.
    "ClusterDeleting": False,
    "ClusterSelectorMismatch": True,
    "ClusterSelectorError": True,
    "OutsideCacheFootprint": True,  # The ModelCache's selector.
    "CacheNotReady": False,
    "UntoleratedTaint": True,
    "StackCannotExpress": False,
    "ClusterNotReady": False,
    "ClusterLost": False,
    "NoGatewayAddress": False,
    "NoPoolsPublished": False,
    "ChargeNotPublished": False,
}
"""By standing gate, if `topologySpread` takes the domain of a closed cluster for none.

As of a Pod's constraints, domains are those of clusters that pass selectors and taints. For others that are
closed the spread waits: it gives up no zone that is down for a minute.
"""


@pytest.mark.parametrize("code", [code for code in GATES if code not in NOT_CERTIFIED])
def test_the_checker_has_the_gate(code: str) -> None:
    world = CASES[code]().world
    exists = state(world)
    closing = closed(exists, ModelDeployment.parse(world.deployment), exists.clusters["here"])
    assert list(closing), f"verify/gates.py lets a replica onto a cluster that is rejected for {code}"


@pytest.mark.parametrize("code", [code for code in GATES if code not in NOT_IN_THE_ORACLE])
def test_the_oracle_has_the_gate(code: str) -> None:
    read = facts.read(CASES[code]().world)
    assert read.clusters is not None
    is_open = Scheduler(read).open(read.clusters["here"])
    assert not is_open, f"tests/oracle/schedule.py opens a cluster that is rejected for {code}"


@pytest.mark.parametrize("code", [reason.name for reason in Reason if reason.is_standing])
def test_a_closed_cluster_is_a_domain_or_not(code: str) -> None:
    world = CASES[code]().world.copy()
    spread = {"topologyKey": "name", "whenUnsatisfiable": "DoNotSchedule"}
    world.deployment["spec"].setdefault("placement", {})["topologySpread"] = [spread]
    for cluster in world.clusters or ():
        cluster["metadata"].setdefault("labels", {})["name"] = cluster["metadata"]["name"]
    decision = drive.run(world, level="plain").decision
    assert decision is not None
    (constraint,) = Spread(decision.inputs, "DoNotSchedule").constraints
    assert code in LEAVES_DOMAIN, (
        f"does {code} close a domain? Say so here, and in `Spread.__init__` if it does"
    )
    assert ("here" not in constraint.names) is LEAVES_DOMAIN[code]


@pytest.mark.parametrize("code", GATES)
def test_the_gate_has_a_remedy_that_opens_it(code: str) -> None:
    assert code in REMEDIES, f"tests/support/remedies.py does not say what opens {code}"
    world = CASES[code]().world
    assert list(unopened(world, drive.run(world, level="plain"))) == []


def test_the_exceptions_are_gates() -> None:
    assert NOT_CERTIFIED.keys() | NOT_IN_THE_ORACLE.keys() <= set(GATES)


def test_the_worlds_of_the_oracle_meet_every_gate_that_it_has() -> None:
    """A gate that no drawn world closes is compared with nothing."""
    wanted = set(GATES) - set(NOT_IN_THE_ORACLE)
    drawn = (worlds(seed) for seed in range(1_000) for worlds in (generate.world, changes.world))
    while wanted and (world := next(drawn, None)) is not None:
        decision = drive.run(world, level="plain").decision
        wanted -= {rejection.reason.name for rejection in decision.rejections.values()} if decision else set()
    assert wanted == set(), "tests/support/generate.py and changes.py never draw what closes these gates"

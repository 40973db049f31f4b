"""Nothing flaps: an unchanged world gives identical conditions, status and no event after the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate import episode
from tests.simulate.driven import DEPLOYMENT
from tests.support import build, drive, parts, scale, scarce
from tests.support.rejected import one, wants

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.driven import Driven
    from tests.support.world import World

Plain = dict[str, Any]

PATIENCE = 12
"""Rounds in which a world comes to rest: objects go, endpoints appear."""
AGAIN = 5
"""Reconciles of the world at rest."""


def _nothing(_: World, __: drive.Answer) -> None:
    """Look at nothing on the way."""


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_five_reconciles_of_a_world_at_rest_say_the_same(number: int) -> None:
    for seed in scale.batch(number, quick=96, gate=1_000):
        clusters, deployments = episode.fleet(parts.Source(seed))
        for plain in deployments:
            plain["spec"]["replicas"] = seed % 9
        lived = episode.driven(seed, clusters, deployments, _nothing, {"explain": "Status"})
        _rest(lived)
        for of in lived.living(DEPLOYMENT):
            said = [lived.reconcile(of) for _ in range(AGAIN)]
            for item in said:
                assert item.conditions == said[0].conditions, f"seed {seed}"
                assert item.status == said[0].status, f"seed {seed}"
                assert item.events == (), f"seed {seed}"


def _rest(lived: Driven) -> None:
    """Reconcile until nothing changes, however the replicas do."""
    before = None
    for _ in range(PATIENCE):
        said = [lived.reconcile(of) for of in lived.living(DEPLOYMENT)]
        lived.age()
        now = [(item.desired, item.conditions, item.status) for item in said]
        if now == before and not lived.leaving():
            return
        before = now
    pytest.fail("no rest")


def _touched(made: World) -> World:
    """Change everything that scheduling does not read, and the order in which objects are listed."""
    noise = {"resourceVersion": "4711", "generation": 7, "managedFields": [{"manager": "x", "time": "now"}]}
    made.deployment["metadata"] |= noise
    made.deployment["status"] = {"placement": {"summary": "an older one"}}
    for cluster in made.clusters or ():
        cluster["metadata"] |= noise
    for replica in made.replicas or ():  # By resourceVersion the later read of two counts.
        replica["metadata"] |= {**noise, "resourceVersion": replica["metadata"].get("resourceVersion", "")}
    for cluster in [*(made.clusters or ()), *(made.replicas or ())]:
        for condition in cluster.get("status", {}).get("conditions", []):
            # Of replicas a deployment repeats the message.
            said = {"message": "as before"} if cluster["kind"] == "InferenceCluster" else {}
            condition |= {"lastTransitionTime": "2031-01-01T00:00:00Z", **said}
    return made.but(
        clusters=list(reversed(made.clusters or ())), replicas=list(reversed(made.replicas or ()))
    )


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_what_scheduling_does_not_read_changes_no_word(number: int) -> None:
    for seed in scale.batch(number, quick=160, gate=4_000):
        made = scarce.world(seed).but(input={"explain": "Status"})
        answer, again = drive.run(made, level="plain"), drive.run(_touched(made.copy()), level="plain")
        assert answer.conditions == again.conditions, f"seed {seed}"
        assert answer.status == again.status, f"seed {seed}"


def _relabel(cluster: Plain) -> None:
    cluster["metadata"]["labels"]["tier"] = "other"


def _grow(cluster: Plain) -> None:
    cluster["status"]["gpuPools"][0]["nodes"] = 99


def _fail(cluster: Plain) -> None:
    cluster["status"]["conditions"] = []


def _taint(cluster: Plain) -> None:
    cluster["spec"]["taints"] = [{"key": "new", "effect": "NoSchedule"}]


def _shrink(cluster: Plain) -> None:
    cluster["status"]["gpuPools"][0]["devices"][0]["capacity"]["memory"]["value"] = "1Gi"


@pytest.mark.parametrize("change", [_relabel, _grow, _fail, _taint, _shrink])
def test_what_scheduling_reads_changes_the_digest(change: Callable[[Plain], None]) -> None:
    made = one(wants(build.request())).but(input={"explain": "Status"})
    other = made.copy()
    change((other.clusters or ())[0])
    assert _digest(made) != _digest(other)


def _digest(made: World) -> str:
    digest: str = drive.run(made, level="plain").status["placement"]["inputDigest"]
    return digest

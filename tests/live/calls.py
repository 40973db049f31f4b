"""Calls and bytes of a reconcile, with the Composition's bootstrap block and without it.

`python -m tests.live.calls` starts a control plane, creates a few deployments, and counts the calls of the
function while they are placed and asked to reconcile again; then it takes the block out of the Composition
and counts anew. With the block no answer states requirements, so Crossplane takes the first one; without it
every reconcile takes a second call. CONTROLPLANE may name scripts that start another version of Crossplane.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

import click

from function.api.names import RECONCILE_ANNOTATION
from tests.live import burst, fleet, plane
from tests.live.__main__ import isolate

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane, Plain

COMPOSITION = "modeldeployments.modelplane.ai"
REST = 5.0
"""Seconds without a call until what was asked for has been done."""


def counted(living: ControlPlane, skip: int) -> Plain:
    """The calls since a place in the function's log, once there are no more."""
    calls: list[Plain] = []
    while len(calls) != len(calls := list(burst.answers(living.state, skip))):
        time.sleep(REST)
    repeated = sum(line["repeated"] for line in calls)
    return {
        "calls": len(calls),
        "calls of a reconcile": round(len(calls) / max(1, len(calls) - repeated), 2),
        "kB of a call": round(sum(line["received"] for line in calls) / 1000 / max(1, len(calls)), 1),
    }


def position(living: ControlPlane) -> int:
    """How long the function's log is."""
    return (living.state / "logs" / "function.log").stat().st_size


def ask(living: ControlPlane, token: str) -> None:
    """Ask every deployment to reconcile."""
    words = ("annotate", "modeldeployments", "--all", "-n", burst.NAMESPACE, "--overwrite")
    living.kubectl(*words, f"{RECONCILE_ANNOTATION}={token}")


def take_the_block_out(living: ControlPlane) -> None:
    """Let the Composition state no requirements; deployments follow its new revision."""
    shipped = json.loads(living.kubectl("get", "composition", COMPOSITION, "-o", "json"))
    pipeline = shipped["spec"]["pipeline"]
    del pipeline[0]["requirements"]
    patch = json.dumps({"spec": {"pipeline": pipeline}})
    living.kubectl("patch", "composition", COMPOSITION, "--type=merge", "-p", patch)


@click.command()
@click.option("--deployments", default=5, help="How many, of two replicas each.")
def main(deployments: int) -> None:
    """Print what was counted, one object of JSON."""
    if reason := plane.missing():
        sys.exit(reason)
    isolate()
    living = plane.ControlPlane.here(os.environ.get("CORE_FLAGS", ""))
    try:
        living.up()
        burst.prepare(living, None)
        burst.publish_fleet(living, 4 * deployments)
        skip = position(living)
        made = [burst.deployment(f"model-{number:03}", 2) for number in range(deployments)]
        living.apply(*made)
        for deployment in made:
            fleet.until_placed(living, deployment, 2)
        ask(living, "1")
        seen = {"with the block": counted(living, skip)}
        take_the_block_out(living)
        time.sleep(REST)
        skip = position(living)
        ask(living, "2")
        seen["without it"] = counted(living, skip)
    finally:
        living.down()
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")


if __name__ == "__main__":
    main()

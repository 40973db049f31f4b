"""Calls and bytes of a reconcile at rest.

`python -m tests.live.calls` starts a control plane, places a few deployments, asks them to reconcile, and
counts the calls of the function. CROSSPLANE_VERSION, or CONTROLPLANE with scripts that start another version
of Crossplane (`make core`), takes that version.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from function.api.names import RECONCILE_ANNOTATION
from tests.live import burst, fleet
from tests.live.function_log import FunctionLog
from tests.live.shipped import NAMESPACE, shipped

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane, Plain

REST = 5.0
"""Seconds without a call until what was asked for has been done."""


def counted(log: FunctionLog) -> Plain:
    """The calls that were logged since the last look, once there are no more."""
    calls: list[Plain] = []
    while latest := list(log.answers()):
        calls += latest
        time.sleep(REST)
    repeated = sum(line["repeated"] for line in calls)
    return {
        "calls": len(calls),
        "calls of a reconcile": round(len(calls) / max(1, len(calls) - repeated), 2),
        "kB of a call": round(sum(line["received"] for line in calls) / 1000 / max(1, len(calls)), 1),
    }


def ask(living: ControlPlane, token: str) -> None:
    """Ask every deployment to reconcile."""
    words = ("annotate", "modeldeployments", "--all", "-n", NAMESPACE, "--overwrite")
    living.kubectl(*words, f"{RECONCILE_ANNOTATION}={token}")


@click.command()
@click.option("--deployments", default=5, help="How many, of two replicas each.")
def main(deployments: int) -> None:
    """Print what was counted, one object of JSON."""
    with shipped() as living:
        burst.publish_fleet(living, 4 * deployments)
        log = FunctionLog(living)
        made = [burst.deployment(f"model-{number:03}", 2) for number in range(deployments)]
        living.apply(*made)
        for deployment in made:
            fleet.until_placed(living, deployment, 2)
        for deployment in made:
            fleet.until_serving(living, deployment)
        time.sleep(REST)
        log.skip()
        ask(living, "1")
        seen = {"at rest": counted(log)}
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")


if __name__ == "__main__":
    main()

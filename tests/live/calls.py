"""Calls and bytes of a reconcile, with the Composition's bootstrap block and without it.

`python -m tests.live.calls` starts a control plane, places a few deployments, asks them to reconcile a few
times, and counts the calls of the function; then it takes the block out of the Composition and counts anew.
With the block no answer states requirements, so Crossplane takes the first one; without it every reconcile
takes a second call. CONTROLPLANE may name scripts that start another version of Crossplane (`make core`). One
that refuses the shipped block is given a block that selects by a label, after every object has got it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click
import yaml

from example.caller import ROOT
from function.api.names import RECONCILE_ANNOTATION
from tests.live import burst, fleet, install
from tests.live.function_log import FunctionLog
from tests.live.shipped import NAMESPACE, change_step, shipped

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane, Plain

SHIPPED = ROOT / "apis" / "modeldeployments" / "composition.yaml"
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


def deliver_by_label(living: ControlPlane) -> None:
    """Give every object the label of the fleet, and the Composition a block that selects by it."""
    (label,) = (f"{key}={text}" for key, text in burst.FLEET.items())
    for kind in ("inferenceclusters", "modelreplicas", "modeldeployments"):
        living.kubectl("label", kind, "--all", "--all-namespaces", "--overwrite", label)
    step = yaml.safe_load(SHIPPED.read_text())["spec"]["pipeline"][0]
    rows = [{**row, "matchLabels": burst.FLEET} for row in step["requirements"]["requiredResources"]]
    change_step(living, lambda current: current.update(requirements={"requiredResources": rows}))


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
        if not install.takes_the_package(living):
            deliver_by_label(living)
            time.sleep(REST)
            log.skip()
        ask(living, "1")
        seen = {"with the block": counted(log)}
        change_step(living, lambda step: step.pop("requirements"))
        time.sleep(REST)
        log.skip()
        ask(living, "2")
        seen["without it"] = counted(log)
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")


if __name__ == "__main__":
    main()

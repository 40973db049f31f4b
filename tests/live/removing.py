"""Remove everything as docs/install.md says, line by line, on a control plane of its own.

`python -m tests.live.removing` starts one, and follows the page from the Configuration to a served model.
Then it runs the lines below the heading Remove, and prints the seconds of each. The exit code is 1 where an
XRD or its CRD, a package, or a namespace that waits for an object in it is left five minutes later.
CROSSPLANE_VERSION=2.4.0 takes that Crossplane.

It is no part of `make live`, whose files have objects of their own in one control plane.
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

from example.caller import ROOT
from tests.live import day, fleet, install, plane
from tests.live.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.plane import ControlPlane

PAGE = ROOT / "docs" / "install.md"
LINES = re.compile(r"^## Remove\n.*?```console\n(.*?)```", re.DOTALL | re.MULTILINE)
NAMESPACES = ("ml-search", "ml-small", "burst")
LONGEST = 300.0
"""Seconds until what was removed must be gone; a line is given as long."""
MODEL = fleet.example_deployment("small-model")


def lines() -> list[str]:
    """Return what the page tells to run, in order."""
    stated = LINES.search(PAGE.read_text())
    assert stated is not None, f"a block of commands below Remove in {PAGE}"
    return stated[1].splitlines()


def serve(living: ControlPlane) -> None:
    """Follow the page to a fleet with a replica of nobody's, a model that serves, and a service of it."""
    fleet.publish_example(living)
    for word in ("create namespace ml-small", "apply -f example/small-model"):
        living.shell("\n".join(install.commands("install.md", word)))
    fleet.until_placed(living, MODEL, 3, LONGEST)
    fleet.until_serving(living, MODEL, LONGEST)
    living.shell("\n".join(install.commands("install.md", "apply -f example/routing/service.yaml")))
    plane.until(lambda: living.list("ModelService", "ml-small"), "the service", LONGEST)


def left(living: ControlPlane) -> Iterator[str]:
    """Yield whatever of ours is still there."""
    for resource in ("xrd", "crd", "configuration", "function", "configurationrevision", "functionrevision"):
        for line in living.kubectl("get", resource, "-o", "name", "--ignore-not-found").split():
            if resource != "crd" or line.endswith(".modelplane.ai"):
                yield line


def removed(living: ControlPlane) -> Iterator[tuple[str, float]]:
    """Run line after line; yield the seconds of each, and then of what ends by itself."""
    for line in lines():
        started = time.monotonic()
        living.shell(line)
        yield line, time.monotonic() - started
    started = time.monotonic()
    try:
        plane.until(lambda: not [*left(living)], "nothing of ours", LONGEST)
    except AssertionError:
        sys.exit(f"left after {LONGEST:.0f} s: {', '.join(left(living))}")
    yield "until XRDs, CRDs and packages are gone", time.monotonic() - started
    started = time.monotonic()
    living.kubectl("delete", "namespace", *NAMESPACES, f"--timeout={LONGEST:.0f}s")
    yield f"kubectl delete namespace {' '.join(NAMESPACES)}", time.monotonic() - started


def main() -> None:
    """Print the table."""
    with shipped() as living:
        serve(living)
        rows = [(line, f"{seconds:.1f}") for line, seconds in removed(living)]
    sys.stdout.write(day.columns([("line", f"s, {plane.version()}"), *rows]))


if __name__ == "__main__":
    main()

"""A control plane of its own for a command, with what is shipped installed; nobody runs workload clusters."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live import fleet, install, plane
from tests.live.__main__ import isolate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.live.plane import ControlPlane, Plain

NAMESPACE = "burst"
"""Where the deployments of the commands are."""
COMPOSITION = "modeldeployments.modelplane.ai"


@contextmanager
def shipped(settings: Plain | None = None, *, running: bool = False) -> Iterator[ControlPlane]:
    """Start a control plane, install what is shipped, and stop it in the end.

    `settings` replace those of the Composition's input. With `running` a control plane that runs and has the
    packages is used and left alone. CORE_FLAGS holds flags of Crossplane. Where there is no control plane,
    the process ends with a sentence.
    """
    if reason := plane.missing():
        sys.exit(reason)
    if not running:
        isolate()
    living = plane.ControlPlane.here(os.environ.get("CORE_FLAGS", ""))
    if running:
        yield living
        return
    try:
        living.up()
        prepare(living)
        if settings is not None:
            change_input(living, settings)
        yield living
    finally:
        living.down()


def prepare(living: ControlPlane) -> None:
    """Install what is shipped on a bare control plane."""
    with tempfile.TemporaryDirectory() as folder:
        install.push_packages(living, Path(folder))
    install.install(living)
    install.start(living)
    install.take_the_platforms_part(living)
    fleet.create_namespace(living, NAMESPACE)


def change_input(living: ControlPlane, settings: Plain) -> None:
    """Give the function other settings than the shipped ones."""

    def change(step: Plain) -> None:
        kept = {key: step["input"][key] for key in ("apiVersion", "kind", "explain") if key in step["input"]}
        step["input"] = {**kept, **settings}

    change_step(living, change)


def change_step(living: ControlPlane, change: Callable[[Plain], None]) -> None:
    """Change the step of the shipped Composition; deployments follow its new revision."""
    composition = json.loads(living.kubectl("get", "composition", COMPOSITION, "-o", "json"))
    pipeline = composition["spec"]["pipeline"]
    change(pipeline[0])
    patch = json.dumps({"spec": {"pipeline": pipeline}})
    living.kubectl("patch", "composition", COMPOSITION, "--type=merge", "-p", patch)

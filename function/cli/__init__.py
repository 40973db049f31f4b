"""The command line: the same pipeline on plain YAML. Output is made for people first."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from function.cli.group import Group

COMMANDS = {
    "plan": "function.cli.commands.plan:plan",
    "why": "function.cli.commands.why:why",
    "whatif": "function.cli.commands.whatif:whatif",
    "headroom": "function.cli.commands.headroom:headroom",
    "advise": "function.cli.commands.advise:advise",
    "verify": "function.cli.commands.verify:verify",
    "map": "function.cli.commands.fleet_map:fleet_map",
    "size": "function.cli.commands.size:size",
    "replay": "function.cli.commands.replay:replay",
    "snapshot": "function.cli.commands.snapshot:snapshot",
    "class": "function.cli.commands.describe:describe_class",
    "drift": "function.cli.commands.describe:show_drift",
    "reconcile": "function.cli.commands.reconcile:reconcile",
    "serve": "function.main:main",  # The door above this room: started from here, used by nothing in it.
    "completion": "function.cli.commands.completion:completion",
}


def _version() -> str:
    try:
        return version("function-fleet-scheduler")
    except PackageNotFoundError:
        return "unknown (not installed)"


@click.group(
    cls=Group,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_version(), prog_name="fleet-scheduler")
def main() -> None:
    r"""Ask the fleet scheduler on plain YAML: the same decision as in the cluster, explained.

    FILEs are manifests or dumps of `kubectl get ... -o yaml`, or directories of them; "-" reads
    standard input. Kinds may be mixed in any file.

    \b
    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input; the worst of several.
    """

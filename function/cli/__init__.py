"""The command line: the same pipeline on plain YAML. Output is made for people first."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from function.cli.group import Group

COMMANDS = {
    "plan": "function.cli.plan:plan",
    "why": "function.cli.why:why",
    "whatif": "function.cli.whatif:whatif",
    "headroom": "function.cli.headroom:headroom",
    "advise": "function.cli.advise:advise",
    "verify": "function.cli.verify:verify",
    "map": "function.cli.fleet_map:fleet_map",
    "size": "function.cli.size:size",
    "replay": "function.cli.replay:replay",
    "snapshot": "function.cli.snapshot:snapshot",
    "serve": "function.main:main",  # The door above this room: started from here, used by nothing in it.
    "completion": "function.cli.completion:completion",
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

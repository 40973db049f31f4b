"""The command line: the same pipeline on plain YAML. Output is made for people first."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from function.cli.advise import advise
from function.cli.common import Group
from function.cli.completion import completion
from function.cli.fleet_map import fleet_map
from function.cli.headroom import headroom
from function.cli.plan import plan
from function.cli.replay import replay
from function.cli.size import size
from function.cli.snapshot import snapshot
from function.cli.verify import verify
from function.cli.whatif import whatif
from function.cli.why import why


def _version() -> str:
    try:
        return version("function-fleet-scheduler")
    except PackageNotFoundError:
        return "unknown (not installed)"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(_version(), prog_name="fleet-scheduler")
def main() -> None:
    r"""Ask the fleet scheduler on plain YAML: the same decision as in the cluster, explained.

    FILEs are manifests or dumps of `kubectl get ... -o yaml`, or directories of them; "-" reads
    standard input. Kinds may be mixed in any file.

    \b
    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input; the worst of several.
    """


for command in (plan, why, whatif, headroom, advise, verify, fleet_map, size, replay, snapshot, completion):
    main.add_command(command)

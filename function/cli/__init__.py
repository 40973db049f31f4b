"""The command line: the same pipeline on plain YAML, with output for people first.

`fleet-scheduler VERB` reads manifests or a control plane, presents them as Crossplane would, and asks the
same handlers that a server asks. So its answers are those of the function, and no rule is written here.

The rooms, from the top: `commands/` has one verb a file; `render/` and `sizing/` are shared by several;
`options` has their arguments; `worlds/` turns YAML into requests; `admission/` says what an API server
would; `live` reads a control plane; `group` starts it all without importing a command.

Nothing here writes to a cluster. A verb that would change something prints the kubectl commands instead.
"""

from __future__ import annotations

import click

from function.cli.group import HELP, Group, Lazy

COMMANDS = {
    "plan": Lazy("function.cli.commands.plan:plan", "where would the replicas go, and why?"),
    "why": Lazy("function.cli.commands.why:why", "why is this replica here, and why is that one missing?"),
    "whatif": Lazy("function.cli.commands.whatif:whatif", "what would this change do to everybody?"),
    "headroom": Lazy(
        "function.cli.commands.headroom:headroom", "how many more fit, and what runs out first?"
    ),
    "advise": Lazy(
        "function.cli.commands.advise:advise",
        "which moves would make room for what is missing, or relieve an overcommitted pool?",
    ),
    "verify": Lazy("function.cli.commands.verify:verify", "does this decision keep the rules?"),
    "lint": Lazy("function.cli.commands.lint:lint_files", "is anything wrong with these files?"),
    "map": Lazy("function.cli.commands.fleet_map:fleet_map", "what does the fleet look like?"),
    "ui": Lazy("function.cli.commands.ui:ui", "how does the fleet stand now, in a browser?"),
    "watch": Lazy("function.cli.commands.watch:watch", "how do deployments settle?"),
    "history": Lazy("function.cli.commands.history:history", "what happened to a deployment?"),
    "size": Lazy("function.cli.commands.size:size", "which GPUs does this model need?"),
    "replay": Lazy(
        "function.cli.commands.replay:replay", "does this version answer a recorded call as it was answered?"
    ),
    "snapshot": Lazy(
        "function.cli.commands.snapshot:snapshot", "how do I collect a fleet, without its secrets?"
    ),
    "class": Lazy(
        "function.cli.commands.machine_class:describe_class", "what does a node of this kind have?"
    ),
    "cluster": Lazy(
        "function.cli.commands.cluster:describe_cluster", "what is the InferenceCluster of this cluster?"
    ),
    "drift": Lazy("function.cli.commands.drift:show_drift", "does a cluster have what it publishes?"),
    "reconcile": Lazy("function.cli.commands.reconcile:reconcile", "how do deployments act on a change now?"),
    # The door above this room: started from here, used by nothing in it.
    "serve": Lazy("function.main:main", "the function itself, to develop and to render with"),
    "completion": Lazy("function.cli.commands.completion:completion", "how does my shell complete all this?"),
}
"""The verbs in the order of the manual, each with the question that it answers."""


def _say_version(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's form
    """Print the version of the installed package, and end.

    A tree that is not installed has none, and says so.
    """
    if not value or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - reads mail headers

    try:
        number = version("function-fleet-scheduler")
    except PackageNotFoundError:
        number = "unknown (not installed)"
    click.echo(f"fleet-scheduler, version {number}")
    context.exit()


@click.group(
    cls=Group,
    lazy=COMMANDS,
    context_settings={"help_option_names": HELP, "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
def main() -> None:
    r"""Ask the fleet scheduler on plain YAML: the same decision as in the cluster, explained.

    FILEs are manifests or dumps of `kubectl get ... -o yaml`, or directories of them; "-" reads
    standard input. Kinds may be mixed in any file.

    Exit codes: 0 everything is placed, 2 something has no place, 1 bad input; the worst of several.
    130 ended by ctrl-c.
    """

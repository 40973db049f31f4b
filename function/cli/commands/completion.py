"""`completion`: what makes a shell complete commands, options, clusters and deployments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from function.cli.common import Command
from function.cli.worlds.manifests import load
from function.cli.worlds.parsing import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM, VARIABLE = "fleet-scheduler", "_FLEET_SCHEDULER_COMPLETE"
SHELLS = ("bash", "fish", "zsh")


def names(
    kind: str, suffix: str = ""
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Complete the names of the objects of a kind in the files that were given so far."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            # While an option waits for its value, click has not told the arguments apart yet.
            given = context.params.get("files") or context.args
            found = load([each for each in given if Path(each).exists()])[kind]
        except BadInput:
            return []
        titles = (f"{each.namespace}/{each.name}".lstrip("/") + suffix for each in found)
        return [CompletionItem(each) for each in sorted(titles) if each.startswith(incomplete)]

    return complete


deployment_names = names("ModelDeployment")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print the script that makes a shell complete this command line.

    Commands, options and files are completed, and the clusters and deployments that stand in the files
    given so far.

    \b
    Exit codes: 0 done, 1 bad input.

    \b
    Installation:
      bash   eval "$(fleet-scheduler completion bash)"  in ~/.bashrc
      zsh    eval "$(fleet-scheduler completion zsh)"   in ~/.zshrc, after compinit
      fish   fleet-scheduler completion fish > ~/.config/fish/completions/fleet-scheduler.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise BadInput(f"no completion for {shell}")
    from function.cli import main  # noqa: PLC0415 - the group holds this command

    click.echo(made(main, {}, PROGRAM, VARIABLE).source())

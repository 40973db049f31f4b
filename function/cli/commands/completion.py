"""`completion`: print the script by which a shell completes commands, options, clusters and deployments."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from function.cli.options import Command, fail

PROGRAM, VARIABLE = "fleet-scheduler", "_FLEET_SCHEDULER_COMPLETE"
SHELLS = ("bash", "fish", "zsh")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print the script that makes a shell complete this command line.

    Commands, options and files are completed, and the clusters and deployments that stand in the files
    given so far.

    Exit codes: 0 done, 1 bad input.

    \b
    Installation:
      bash   eval "$(fleet-scheduler completion bash)"  in ~/.bashrc
      zsh    eval "$(fleet-scheduler completion zsh)"   in ~/.zshrc, after compinit
      fish   fleet-scheduler completion fish > ~/.config/fish/completions/fleet-scheduler.fish
    """
    script = get_completion_class(shell)
    if script is None:
        fail(f"no completion for {shell}")
    group = click.get_current_context().find_root().command
    click.echo(script(group, {}, PROGRAM, VARIABLE).source())

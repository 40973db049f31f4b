"""Print commands to run as they are typed: whole lines, which a terminal wraps and a copy does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cli.text import escape

if TYPE_CHECKING:
    from rich.console import Console

    from function.cli.worlds.kubectl import Commands


def show_commands(out: Console, commands: Commands, apply: str, revert: str) -> None:
    """Print commands and their reverse, each below its title."""
    for title, lines in ((apply, commands.apply), (revert, commands.revert)):
        if lines:
            out.print(f"\n{title}:", style="bold")
        for line in lines:
            out.print(f"  {escape(line)}", style="dim" if line.startswith("#") else "", soft_wrap=True)

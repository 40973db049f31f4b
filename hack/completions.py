"""Write the table that shells complete from, and manual pages: `python -m hack.completions`."""

from __future__ import annotations

import json
import sys

import click

from function import cli
from function.cli.group import TABLE, described, manual_of


def table() -> str:
    """Every command, its manual page, and its parameters, one on a line."""
    commands = {name: cli.main.get_command(click.Context(cli.main), name) for name in cli.COMMANDS}
    blocks = (_block(name, command) for name, command in commands.items() if command is not None)
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _block(name: str, command: click.Command) -> str:
    rows = ",\n".join(f"    {json.dumps(row)}" for row in described(command))
    facts = (f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in manual_of(command).items())
    return f"  {json.dumps(name)}: {{\n" + ",\n".join(facts) + f',\n    "parameters": [\n{rows}\n    ]\n  }}'


def main() -> int:
    """Write the table."""
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write the table that shells complete from: `python -m hack.completions`."""

from __future__ import annotations

import json
import sys

import click

from function import cli
from function.cli.group import TABLE, described


def table() -> str:
    """Every command and its parameters, one on a line."""
    commands = {name: cli.main.get_command(click.Context(cli.main), name) for name in cli.COMMANDS}
    listed = {name: described(command) for name, command in commands.items() if command is not None}
    blocks = (
        f"  {json.dumps(name)}: [\n"
        + ",\n".join(f"    {json.dumps(row)}" for row in rows)
        + ("\n  ]" if rows else "  ]")
        for name, rows in listed.items()
    )
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> int:
    """Write the table."""
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a shell completes, from a table: the parameters of every command, without importing any.

Commands import the scheduler, which takes most of a second; a shell asks at every press of the tab key. So
completion reads `completions.json`, which `python -m hack.completions` writes from the commands, and a test
holds against them. What completes a value (names in files, models) is imported when that value is completed.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click

TABLE = Path(__file__).with_name("completions.json")
PLAIN = {"String": "text", "Bool": "flag", "Choice": "choice", "Path": "path"}
"""Types that are completed or parsed in their own way; every other is text."""


def described(command: click.Command) -> list[dict[str, Any]]:
    """The parameters of a command, as they stand in the table."""
    return [_described(parameter) for parameter in command.params]


def _described(parameter: click.Parameter) -> dict[str, Any]:
    facts = parameter.to_info_dict()
    row = {
        "name": facts["name"],
        "flags": [*facts["opts"], *facts["secondary_opts"]] if facts["param_type_name"] == "option" else [],
        "type": PLAIN.get(facts["type"]["param_type"], "text"),
        "choices": list(facts["type"].get("choices", ())),
        "help": facts.get("help") or "",
        "hidden": facts.get("hidden", False),
        "many": facts["nargs"] == -1 or facts["multiple"],
        "completes": list(getattr(getattr(parameter, "_custom_shell_complete", None), "reference", ())),
    }
    return {key: value for key, value in row.items() if value or key in ("name", "type")}


def light(name: str) -> click.Command | None:
    """A command that parses and completes as the one of this name, and does nothing; None without one."""
    rows = json.loads(TABLE.read_text(encoding="utf-8")).get(name)
    return None if rows is None else click.Command(name, params=[_parameter(row) for row in rows])


def _parameter(row: dict[str, Any]) -> click.Parameter:
    kind = row["type"]
    types = {"choice": click.Choice(row.get("choices", ())), "path": click.Path(allow_dash=True)}
    completes = row.get("completes")
    more: dict[str, Any] = {
        "type": types.get(kind),
        "shell_complete": _completer(*completes) if completes else None,
    }
    many = row.get("many", False)
    if not row.get("flags"):
        return click.Argument([row["name"]], nargs=-1 if many else 1, required=False, **more)
    words = [*row["flags"], row["name"]]
    if kind == "flag":
        return click.Option(words, is_flag=True, help=row.get("help"), hidden=row.get("hidden", False))
    return click.Option(words, multiple=many, help=row.get("help"), **more)


def _completer(where: str, *arguments: str) -> Any:
    """What completes a value: imported when it is asked, as the commands are."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        module, _, attribute = where.partition(":")
        return getattr(import_module(module), attribute)(*arguments)(context, parameter, incomplete)

    return complete

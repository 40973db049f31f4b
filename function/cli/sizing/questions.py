"""Ask for the options of a command that were not given, and say the command that needs no questions.

For somebody who does not know the options yet. Questions go to standard error, so standard output stays the
manifest and can be redirected. Each has a default; an answer that an option would refuse is asked for again.
Where the input ends before all is answered, that is an error, and nothing is written.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from function.cli.bad_input import BadInput
from function.cli.sizing import models

if TYPE_CHECKING:
    from collections.abc import Iterable


class ModelName(click.ParamType[str]):
    """A model's name, its repository or the path of its config.json, which must exist."""

    name = "model"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as given. Raises UsageError, which a prompt shows before it asks again."""
        try:
            models.model(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)
        return value


def ask(context: click.Context, texts: dict[str, str], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values of the parameters in `texts`, in that order: as given, else as answered. Raises BadInput.

    The defaults are those of the parameters, but for those in `defaults`.
    """
    parameters = {parameter.name: parameter for parameter in context.command.params}
    for name, text in texts.items():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            continue
        parameter = parameters[name]
        is_argument = isinstance(parameter, click.Argument)
        default = defaults.get(name, None if is_argument else parameter.get_default(context))
        kind = ModelName() if is_argument else parameter.type
        try:
            context.params[name] = click.prompt(text, default=default, type=kind, err=True)
        except click.Abort:
            raise BadInput(f"--ask: no answer to {text!r}") from None
    return {name: context.params[name] for name in texts}


def without_questions(context: click.Context, answered: Iterable[str], flag: str) -> str:
    """The command line that needs no questions: what was given, one flag aside, and what was answered."""
    words: list[Any] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if name == flag or (name not in answered and is_default):
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words += value if isinstance(value, tuple) else [value]
        else:
            words += [parameter.opts[-1], *([] if getattr(parameter, "is_flag", False) else [value])]
    return f"{context.command_path} {shlex.join(map(str, words))}"

"""The group of commands: each is imported when it is asked for, so that starting and completing are quick.

Three things happen before a verb runs. A shell that completes is answered from a table of parameters;
`--help` is answered from the same table; any other call imports the one module that the verb needs. The
table, `completions.json`, is written by `python -m hack.completions` and held against the commands by a
test.

The group also decides how the program ends: misuse is bad input (1), ctrl-c ends without a traceback, and a
reader that leaves (`| head`) ends the output and not the program.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from function.cli.patience import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


# What a shell completes, from a table: the parameters of every command, without importing any.
#
# Commands import the scheduler, which takes most of a second; a shell asks at every press of the tab key.
# So completion reads `completions.json`, which `python -m hack.completions` writes from the commands, and a
# test holds against them. What completes a value (names in files, models) is imported when that value is
# completed.

TABLE = Path(__file__).with_name("completions.json")
HELP = ["-h", "--help"]
PLAIN = {"String": "text", "Bool": "flag", "Choice": "choice", "Path": "path"}
"""Types that are completed or parsed in their own way; every other is text."""


def described(command: click.Command) -> list[dict[str, Any]]:
    """The parameters of a command, as they stand in the table; what is empty is left out of a row."""
    rows = []
    for parameter in command.params:
        facts = parameter.to_info_dict()
        flags = [*facts["opts"], *facts["secondary_opts"]] if facts["param_type_name"] == "option" else []
        row = {
            "name": facts["name"],
            "flags": flags,
            "type": PLAIN.get(facts["type"]["param_type"], "text"),
            "choices": list(facts["type"].get("choices", ())),
            "help": facts.get("help") or "",
            "hidden": facts.get("hidden", False),
            "many": facts["nargs"] == -1 or facts["multiple"],
            "completes": list(getattr(getattr(parameter, "_custom_shell_complete", None), "reference", ())),
        }
        rows.append({key: value for key, value in row.items() if value or key in ("name", "type")})
    return rows


def light(name: str) -> click.Command | None:
    """A command that parses and completes as the one of this name, and does nothing; None without one."""
    facts = _facts(name)
    if facts is None:
        return None
    return click.Command(name, params=[_parameter(row) for row in facts["parameters"]])


def _facts(name: str) -> dict[str, Any] | None:
    """The table's entry of a command."""
    facts: dict[str, Any] | None = json.loads(TABLE.read_text(encoding="utf-8")).get(name)
    return facts


def manual_of(command: click.Command) -> dict[str, Any]:
    """The manual page of a command, as it stands in the table."""
    context = click.Context(command, info_name="", **{**command.context_settings, "help_option_names": HELP})
    options = (item for item in command.get_params(context) if isinstance(item, click.Option))
    records = (option.get_help_record(context) for option in options)
    listed = [list(record) for record in records if record]
    usage = command.collect_usage_pieces(context)
    return {"help": command.help, "epilog": command.epilog, "usage": usage, "options": listed}


class Manual(click.Command):
    """The stand-in for a command whose manual page is asked for: it prints the page and ends."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        """Take what the table has of the command."""
        super().__init__(name, help=facts["help"], epilog=facts["epilog"], add_help_option=False)
        self._facts = facts

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page as click does, with the usage and the options of the table."""
        formatter.write_usage(ctx.command_path, " ".join(self._facts["usage"]))
        self.format_help_text(ctx, formatter)
        with formatter.section("Options"):
            formatter.write_dl([(left, right) for left, right in self._facts["options"]])
        self.format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: ARG002 - as click has it
        """Print the page, whatever else was given."""
        click.echo(ctx.get_help())
        ctx.exit()


def _parameter(row: dict[str, Any]) -> click.Parameter:
    """Build a parameter from its row, as far as a shell needs it: names, type, choices."""
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
    """Return the completer of a value; it is imported when it is needed, as the commands are."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        module, _, attribute = where.partition(":")
        return getattr(import_module(module), attribute)(*arguments)(context, parameter, incomplete)

    return complete


BAD_INPUT = 1
"""Exit code where the command line or a file cannot be read."""
INTERRUPTED = 130
"""Exit code of a program that ctrl-c ended, as shells have it: 128 and the number of SIGINT."""


def _asks_for_help(args: list[str]) -> bool:
    """Tell whether a manual page is asked for; behind `--` every word is an argument."""
    options = args[: args.index("--")] if "--" in args else args
    return any(word in HELP for word in options[1:])


class Lazy(NamedTuple):
    """Where a command is, as `module:attribute`, and what it is for."""

    where: str
    summary: str


EXTRA = "function-fleet-scheduler[cli]"
EXTRA_MODULES = frozenset({"jinja2", "rich"})
"""Modules that commands import at their start, and that the server's image does without."""


class Group(click.Group):
    """Commands by name. Wrong usage is bad input (1); click's own 2 would read as an answer."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **more: Any) -> None:
        """Take the commands by name; none is imported to list, complete or describe them."""
        super().__init__(*args, **more)
        self.help = (self.help or "").replace(r"\b", "\b")
        self._lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click has it
        """Names, in the order of the table."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; where a shell completes, take its stand-in instead.

        A module of an extra that is not installed is named with the command that installs it. Any other
        missing module is a fault of ours, and is raised.
        """
        if ctx.resilient_parsing:
            return light(cmd_name)
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return None
        module, _, attribute = lazy.where.partition(":")
        try:
            with waiting("Starting"):  # Modules may come from a slow disk.
                command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRA_MODULES:
                raise
            sys.exit(f"fleet-scheduler {cmd_name}: needs {package}: pip install '{EXTRA}'")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a name that is none of them is answered with the nearest.

        A manual page is answered from the table: the module of the command is not imported for it.
        """
        if args and args[0] not in self._lazy and os.path.exists(args[0]):  # noqa: PTH110 - of any length
            ctx.fail(f"name a command before the files: {ctx.command_path} plan {args[0]}")
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            from function.cli.bad_input import closest  # noqa: PLC0415 - only for an error

            ctx.fail(f"No such command '{args[0]}'; {closest(args[0], self._lazy)}")
        facts = _facts(args[0]) if not ctx.resilient_parsing and _asks_for_help(args) else None
        if facts is not None:
            return args[0], Manual(args[0], facts), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands in the manual page."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, else an option."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        items = (CompletionItem(name, help=lazy.summary) for name, lazy in self._lazy.items())
        return [item for item in items if item.value.startswith(incomplete)]

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse the group's own arguments into a context."""
        with _exit_codes():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse a command's arguments, and run it."""
        with _exit_codes():
            return super().invoke(ctx)

    def main(self, *args: Any, **more: Any) -> Any:
        """Run the program; a reader that has read enough (`| head`) ends the output, not the program.

        The standard streams are replaced for as long as the program runs, and put back for whoever called
        it. A full disk is reported at the end, with the exit code of bad input.
        """
        streams = sys.stdout, sys.stderr
        out, errors = map(Patient, streams)
        sys.stdout, sys.stderr = out, errors
        try:
            return super().main(*args, **more)
        finally:
            out.flush()
            if out.fault:
                errors.write(f"error: standard output: {out.fault}\n")
            errors.flush()
            sys.stdout, sys.stderr = streams
            if out.fault:
                raise SystemExit(BAD_INPUT)


class Patient:
    """A stream whose reader may leave: what is written after that goes nowhere, and is no error.

    A full disk is one: it is in `fault`, and what follows goes nowhere too.
    """

    def __init__(self, stream: Any) -> None:
        """Take the stream; None, as Python has it, where the shell closed it."""
        self.fault = ""
        self._stream = stream if stream is not None else os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        if isinstance(self._stream, TextIOWrapper):
            # Answers have characters that not every locale has, and are UTF-8 as those of kubectl. A terminal
            # is written to as it reads; what it cannot show is escaped.
            encoding = None if self._stream.isatty() else "utf-8"
            self._stream.reconfigure(encoding=encoding, errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, unless nobody reads any more."""
        self._unless_closed(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush, likewise."""
        self._unless_closed(self._stream.flush)

    def _unless_closed(self, write: Callable[..., object], *text: str) -> None:
        """Write to the stream, or into nothing once its reader has left.

        The stream is then turned to /dev/null for good. Python flushes it once more when it ends, and would
        complain.
        """
        try:
            write(*text)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.fault = error.strerror or str(error)
            # What the stream still holds is flushed at the end, into nothing.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class Misuse(click.UsageError):
    """Wrong usage of the command line."""

    exit_code = BAD_INPUT


@contextmanager
def _exit_codes() -> Iterator[None]:
    """End with the codes of this program where click has others, which would read as an answer.

    Wrong usage is bad input. Ctrl-c ends without a word: click's own 1 would be bad input.

    A long message is wrapped here: click leaves it to the terminal, which would break it within words.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        raise click.exceptions.Exit(BAD_INPUT) from None
    except click.UsageError as error:
        from textwrap import fill  # noqa: PLC0415 - only for an error

        from function.cli.text import NARROWEST, console, printable  # noqa: PLC0415 - as above

        width = max(console(stderr=True).width - len("Error: "), NARROWEST)
        lines = error.format_message().splitlines()  # It quotes what was given.
        wrapped = (fill(printable(line), width, break_long_words=False) for line in lines)
        raise Misuse("\n".join(wrapped), error.ctx) from None

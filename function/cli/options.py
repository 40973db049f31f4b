"""Arguments and options that commands share, how commands end, and the names a shell completes.

A verb takes its input by a decorator: `reads_fleet` (files or a control plane), `reads_control_plane`,
`may_read_live` (prints a command line, or reads), `reads_devices` (a cluster's own devices). Each turns the
options into one value, a `Source` or a `Target`, so that a verb never sees --context and its kin.

Exit codes are an interface: 0 the answer hoped for, 2 another answer, 1 bad input, 130 ended by ctrl-c.
A verb ends through `end`, and raises `BadInput` for what cannot be read; `Command` turns that into one line.

Heavy modules are imported where they are used. A shell that completes a word imports this module at every
press of a key (tests/cli/test_commands.py holds the list of what may not be imported).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from function.boundary import frozen
from function.cli.bad_input import LENIENT, BadInput
from function.cli.group import BAD_INPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from click.shell_completion import CompletionItem

    from function.cli.live import Target

FINE, FINDINGS = 0, 2
"""Exit codes: all is well; the answer is not the one hoped for. BAD_INPUT is the third."""

COMPLETION_SECONDS = 3.0
"""Seconds that a control plane may take to name what a shell completes."""
AS_DATA = "table for people; yaml and json hold the same answer as data."


def output_option(*forms: str, text: str = AS_DATA) -> Callable[..., Any]:
    """The option that says in which form to answer; the first form is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*forms]),
        default=forms[0],
        show_default=True,
        help=text,
    )


@frozen
class Names:
    """Completes names of the objects of a kind: in the files given so far, else in the control plane."""

    kind: str
    suffix: str = ""
    also: str = ""
    """Another kind whose objects may be named."""

    @property
    def reference(self) -> tuple[str, ...]:
        """How the table of completions says it."""
        also = (self.also,) if self.also else ()
        return "function.cli.options:Names", self.kind, self.suffix, *also

    def __call__(self, context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so; none where nothing can be read."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for a shell that completes

        try:
            identities = self._identities(context)
        except BadInput:
            return []
        titles = (f"{namespace}/{name}".lstrip("/") + self.suffix for namespace, name in identities)
        return [CompletionItem(title) for title in sorted(titles) if title.startswith(incomplete)]

    def _identities(self, context: click.Context) -> list[tuple[str, str]]:
        """Namespace and name of all objects that may be meant. Raises BadInput."""
        # While an option waits for its value, click has not told the arguments apart yet.
        given = context.params.get("files") or context.args
        if not given:
            from function.cli.live import ControlPlane, identities  # noqa: PLC0415 - as above

            context_name, kubeconfig = (context.params.get(name) or "" for name in ("context", "kubeconfig"))
            # Asked for no longer than somebody waits.
            plane = ControlPlane(_target(context_name, kubeconfig, COMPLETION_SECONDS))
            listed = identities(plane, self.kind)
            with suppress(BadInput):  # A role may allow the one kind and not the other.
                listed += identities(plane, self.also) if self.also else []
            return listed
        from function.cli.worlds.manifests import load  # noqa: PLC0415 - as above

        manifests = load([path for path in given if Path(path).exists()], checked=False)
        return [manifest.identity for kind in (self.kind, self.also) for manifest in manifests[kind]]


def _target(context: str, kubeconfig: str, seconds: float) -> Target:
    """The control plane that options name; nothing is read of it yet."""
    from function.cli.live import Target  # noqa: PLC0415 - to start and to complete, it is not needed

    return Target(context, kubeconfig, seconds)


_FLEET_PARAMETERS = (
    click.argument("files", nargs=-1, metavar="[FILE|DIR...]", type=click.Path(allow_dash=True)),
    click.option("--context", default="", help="Read this context's control plane. [default: the current]"),
    click.option("--kubeconfig", default="", metavar="FILE", help="Its kubeconfig. [default: as kubectl]"),
    click.option(
        "-n", "--namespace", default="", help="Ask about the deployments of this namespace. [default: all]"
    ),
    click.option(
        "--request-timeout",
        "seconds",
        type=click.FloatRange(min=0, min_open=True),
        default=30,
        show_default=True,
        help="Seconds that the control plane may take to answer.",
    ),
)


def reads_fleet(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command read files or a control plane: it is called with a `source` instead of all of these."""
    return lenient(reads_control_plane(command, _FLEET_PARAMETERS))


def reads_control_plane(
    command: Callable[..., Any], parameters: Iterable[Callable[..., Any]] = _FLEET_PARAMETERS[1:]
) -> Callable[..., Any]:
    """Let a command read a control plane, and no files: it is called with a `source`.

    The options of reading become one value, so that a new one of them changes no command.
    """

    @wraps(command)
    def called(
        *,
        context: str,
        kubeconfig: str,
        namespace: str,
        seconds: float,
        files: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        from function.cli.worlds.inputs import Source  # noqa: PLC0415 - starting reads nothing

        command(source=Source(files, _target(context, kubeconfig, seconds), namespace), **more)

    for parameter in reversed([*parameters]):
        called = parameter(called)
    return called


def may_read_live(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command that prints a command line read instead: it gets a `target`, and whether `live`.

    --context and --kubeconfig name the control plane, for the command line as for reading.
    """

    @wraps(command)
    def called(*, context: str, live: bool, kubeconfig: str, seconds: float, **more: Any) -> None:
        if live and more.get("files"):
            raise BadInput("--live reads the control plane: leave the files out")
        command(target=_target(context, kubeconfig, seconds), live=live, **more)

    _, _, _, _, seconds = _FLEET_PARAMETERS
    context = click.option("--context", default="", help="The context to read, and to name in command lines.")
    kubeconfig = click.option("--kubeconfig", default="", metavar="FILE", help="Its kubeconfig, likewise.")
    flag = click.option("--live", is_flag=True, help="Read the control plane now.")
    return context(flag(kubeconfig(seconds(called))))


def reads_devices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command read a cluster's own devices: it is called with a `devices_of` target, or None."""

    @wraps(command)
    def called(*, context: str, kubeconfig: str, seconds: float, **more: Any) -> None:
        is_named = bool(context or kubeconfig)
        command(devices_of=_target(context, kubeconfig, seconds) if is_named else None, **more)

    _, _, _, _, seconds = _FLEET_PARAMETERS
    context = click.option("--context", default="", help="Read this context's ResourceSlices and Nodes.")
    kubeconfig = click.option("--kubeconfig", default="", metavar="FILE", help="Those of this kubeconfig.")
    return context(kubeconfig(seconds(called)))


FILES = click.argument(
    "files", nargs=-1, required=True, metavar="FILE|DIR...", type=click.Path(allow_dash=True)
)


lenient = click.option(
    "--lenient",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({LENIENT: value}),
    help="Unknown fields and kinds are warnings, not errors.",
)
"""The option of every command that reads manifests; `is_lenient` looks for it in the context."""
OUTPUT = output_option("table", "yaml", "json")
LIST_IS_TEXT = "--list prints text only: leave -o out"
"""Said where names are to be listed as data."""
DEPLOYMENTS = click.option(
    "-d",
    "--deployment",
    "names",
    multiple=True,
    metavar="NS/NAME",
    shell_complete=Names("ModelDeployment"),
    help="Only this deployment; repeatable.",
)


def _no_file(_: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a file where a name stands first: the control plane would be asked for it."""
    if value.endswith((".yaml", ".yml", ".json")) and os.path.isfile(value):  # noqa: PTH113 - of any length
        raise click.BadParameter(
            f"{value} is a file; the name of a deployment comes before it", param=parameter
        )
    return value


DEPLOYMENT = click.argument(
    "deployment", shell_complete=Names("ModelDeployment", also="ModelAdapter"), callback=_no_file
)


class Command(click.Command):
    """A command that ends with a clear line and exit code 1 when the files cannot be read."""

    def __init__(self, *args: Any, **more: Any) -> None:
        """Let a raw docstring mark paragraphs that are not to be wrapped."""
        super().__init__(*args, **more)
        self.help = (self.help or "").replace(r"\b", "\b")

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; BadInput is an answer, not a crash."""
        try:
            return super().invoke(ctx)
        except BadInput as error:
            fail(str(error))
        except RecursionError:
            fail("the files are nested too deeply")


def fail(problem: str) -> NoReturn:
    """Say what is wrong with the input, and end."""
    from function.cli.text import complain  # noqa: PLC0415 - only for an error

    complain([problem])
    sys.exit(BAD_INPUT)


def end(faults: Collection[str], *, findings: bool) -> NoReturn:
    """End with the exit code for what could not be read, and for an answer that is not the one hoped for.

    Bad input outweighs every answer: it was made of a part of what was given.
    """
    sys.exit(BAD_INPUT if faults else FINDINGS if findings else FINE)

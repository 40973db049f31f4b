"""Start the command line: ctrl-c ends it without a word from the first moment, while modules are imported.

The console scripts come here, so this imports nothing but what Python has imported by itself.

Two of them make the kubectl plugin: `kubectl fleet why chat` is `fleet-scheduler why chat`, and kubectl
completes it. kubectl runs `kubectl-fleet` for `kubectl fleet`, and `kubectl_complete-fleet` with the words
typed so far to complete them. The candidates are those of the program itself, so a verb needs nothing here.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPLETE_FILES, COMPLETE_NOTHING_ELSE = 0, 4
"""cobra's directives: let the shell complete files; complete nothing beside the candidates."""
SELDOM = (1_000_000, 20, 50)
"""Thresholds of the garbage collector. What a program imports and reads lives until it ends and has no
cycles: to look through it again and again took a third of the time of a large fleet."""


def fleet_scheduler() -> None:
    """Run `fleet-scheduler`."""
    with _starting():
        from function.cli import main  # noqa: PLC0415 - what takes its time
    main()


def kubectl_fleet() -> None:
    """Run `kubectl fleet`, which its help names as it was typed."""
    with _starting():
        from function.cli import main  # noqa: PLC0415 - likewise
    main(prog_name="kubectl fleet")


def kubectl_complete() -> None:
    """Complete `kubectl fleet`: print as cobra does each candidate, a colon and what else to do."""
    with _starting():
        import click  # noqa: PLC0415 - likewise
        from click.shell_completion import ShellComplete  # noqa: PLC0415 - likewise

        from function.cli import main  # noqa: PLC0415 - likewise
    *before, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(main, {}, "kubectl fleet", "").get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            click.echo(item.value + (f"\t{item.help}" if item.help else ""))
    files = any(item.type != "plain" for item in items)
    click.echo(f":{COMPLETE_FILES if files else COMPLETE_NOTHING_ELSE}")


class Later(ModuleType):
    """`importlib.metadata` until something of it is used.

    It imports readers of mail, archives and tables, as long as a twentieth of a small command takes. pydantic
    imports `entry_points` from it, to look for plugins, and never calls it where these are switched off.
    """

    def __init__(self) -> None:
        """Have the path of the package: a name is taken from one that has none only once it is imported."""
        super().__init__("importlib.metadata")
        self.__path__ = [f"{path}/metadata" for path in importlib.__path__]

    def __getattr__(self, name: str) -> Any:
        """Return what the module has; that function imports it when it is called, anything else at once."""
        if name == "entry_points":
            return lambda **chosen: self._imported().entry_points(**chosen)
        return getattr(self._imported(), name)

    def _imported(self) -> Any:
        """Let the module take this place."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


@contextmanager
def _starting() -> Iterator[None]:
    """End at once on ctrl-c, with the code that shells have for it: nothing was printed yet.

    Where it is ignored (`nohup`), it stays ignored. The garbage collector runs seldom from here on, and finds
    nothing to look through when Python ends.
    """
    # To look for plugins reads the metadata of every package that is installed beside this one.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    importlib.metadata = sys.modules.setdefault("importlib.metadata", Later())
    gc.set_threshold(*SELDOM)
    atexit.register(gc.freeze)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    yield
    signal.signal(signal.SIGINT, before)

"""Output in a pipe: lines are never wrapped, notes are beside the answer, a reader may leave early."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from threading import Event
from typing import TYPE_CHECKING, Any

import click
import pytest

from function.cli import COMMANDS, group, main, patience, text
from function.cli.commands import lint, plan as plan_command, watch as watch_command
from function.cli.worlds import manifests
from tests.cli.command import run, write
from tests.schema.crds import ROOT
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PROGRAM = (sys.executable, "-c", "from function.cli import main; main()")
EXAMPLE = str(ROOT / "example")
PATIENCE = 60
"""Seconds after which what should have been shown is missed."""
TABLES = (("plan",), ("headroom",), ("size", "llama-3.1-70b"), ("why", "kimi-k2"))


def _ran(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, cwd=ROOT, env=kept | environment
    )


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and the commands tested here inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("command", TABLES)
def test_a_row_is_a_line_whatever_its_length(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = run(*command, EXAMPLE).out
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run(*command, EXAMPLE).out
    assert len(narrow.splitlines()) > len(whole.splitlines())
    assert narrow.split() != whole.split() or len(narrow) != len(whole)
    assert all(line == line.rstrip() for line in whole.splitlines())


def test_a_row_of_plan_has_its_replica_and_its_reason_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    answer = run("plan", EXAMPLE, "-o", "json").data
    replicas = [
        entry for deployment in answer["deployments"] for entry in deployment["placement"]["replicas"]
    ]
    lines = run("plan", EXAMPLE).out.splitlines()
    assert replicas
    for replica in replicas:
        (row,) = (line for line in lines if line.startswith(f"{replica['name']} "))
        assert replica["because"] in row


def test_a_reader_that_leaves_changes_no_exit_code() -> None:
    for command, code in ((("plan",), 2), (("plan", "-o", "json"), 2), (("verify",), 0), (("map",), 0)):
        program = subprocess.Popen(
            [*PROGRAM, *command, EXAMPLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()  # Before anything is written: every write fails.
        said = program.stderr.read()
        program.stderr.close()
        assert program.wait() == code, said
        assert "Traceback" not in said
        assert "Broken" not in said


def test_ctrl_c_ends_a_command_as_shells_expect(tmp_path: Path) -> None:
    """While a file is read that never ends: no traceback, and not the code of bad input."""
    endless = tmp_path / "endless.yaml"
    os.mkfifo(endless)
    program = subprocess.Popen(
        [*PROGRAM, "plan", str(endless)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    with endless.open("w"):  # Opened once the command reads it.
        program.send_signal(signal.SIGINT)
        out, err = program.communicate()
    assert (program.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("script", ["fleet_scheduler", "kubectl_fleet", "kubectl_complete"])
@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("click", "what the command line itself imports"),
        ("function/cli/group", "a module of its own"),
        ("function/cli/commands/plan", "a command, imported when it is asked for"),
    ],
)
def test_ctrl_c_while_modules_are_imported_ends_without_a_word(
    script: str, module: str, reason: str, tmp_path: Path
) -> None:
    """A module that sends the signal while it is imported stands in the place of the real one."""
    if script == "kubectl_complete" and "commands" in module:
        pytest.skip("completing imports no command")
    name = module.replace("/", ".")
    start = f"""
import os, signal, sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

class Interrupted(MetaPathFinder, Loader):
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == {name!r} else None

    def exec_module(self, module):
        os.kill(os.getpid(), signal.SIGINT)
        sys.exit("it went on")

sys.meta_path.insert(0, Interrupted())
sys.argv = ["fleet-scheduler", "plan", {EXAMPLE!r}]
from function.start import {script}
{script}()
"""
    ran = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", ""), reason


def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    start = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from function import start
with start._starting():
    signal.raise_signal(signal.SIGINT)
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
"""
    ran = subprocess.run([sys.executable, "-c", start], capture_output=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_every_script_of_the_command_line_starts_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {where.split(":")[0] for name, where in scripts.items() if name != "function"} == {
        "function.start"
    }


def test_no_color_prints_no_escape_on_a_terminal_that_has_colours() -> None:
    coloured = _ran("why", "kimi-k2", EXAMPLE, FORCE_COLOR="1", TERM="xterm-256color")
    plain = _ran("why", "kimi-k2", EXAMPLE, FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b[" in coloured.stdout
    assert "\x1b" not in plain.stdout + plain.stderr


def test_notes_are_on_standard_error_and_folded(tmp_path: Path) -> None:
    clusters = []
    for number in range(200):
        cluster = build.cluster(f"c{number:03}", [build.pool("h100", 1)])
        del cluster["status"]
        clusters.append(cluster)
    head = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    path = write(
        tmp_path / "f.yaml",
        [*clusters, {**head, "spec": {"devices": [build.gpu()]}}, build.deployment("a", 1)],
    )
    ran = run("plan", path)
    assert "note:" not in ran.out
    named = "(c000, c001, c002, 197 more)"
    assert ran.err.splitlines() == [
        f"note: 200 clusters have no status: assumed Ready, with a placeholder gateway {named}",
        f"note: 200 clusters publish no pools: derived from nodePools and their classes {named}",
    ]
    assert len(run("plan", path, "-o", "json").data["assumptions"]) == 400


def test_alike_errors_are_folded_and_named_by_lint(tmp_path: Path) -> None:
    clusters = [build.cluster(f"c{number}", [build.pool("h100", 1)]) for number in range(30)]
    for cluster in clusters:
        cluster["metadata"] = {"name": cluster["metadata"]["name"]}
        cluster["spec"]["regoin"] = "eu"
    path = write(tmp_path / "f.yaml", [*clusters, build.deployment("a", 1)])
    ran = run("plan", path)
    assert len(ran.err.splitlines()) == 1
    assert "(and InferenceCluster c1, InferenceCluster c2, InferenceCluster c3, 26 more)" in ran.err
    assert len(run("lint", path).out.splitlines()) == 30


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        ("> /dev/full", 1, "error: standard output: No space left on device"),
        (">&-", 2, "note: "),
        ("<&-", 1, "error: standard input is closed"),
    ],
)
def test_a_stream_that_takes_or_gives_nothing_is_a_line_and_no_traceback(
    line: str, code: int, expected: str
) -> None:
    words = shlex.join([*PROGRAM, "plan", "-" if line.startswith("<") else EXAMPLE])
    ran = subprocess.run(
        ["/bin/bash", "-c", f"{words} {line}"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ran.returncode == code, ran.stderr
    assert expected in ran.stderr
    assert "Traceback" not in ran.stderr


DOZEN = 12


def test_a_narrow_terminal_keeps_names_pools_and_reasons() -> None:
    text = " ".join(_ran("plan", EXAMPLE, COLUMNS="40").stdout.split())
    assert "chat-93a4f on aks-eastus, index 0: new" in text
    assert "main: h200-ib" in text
    assert "fewest replicas of this deployment (0); next: aks-westeurope" in text


ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "plan": (("plan", EXAMPLE),),
    "why": (("why", "ml-chat/chat", EXAMPLE), ("why", "ml-research/kimi-k2", EXAMPLE)),
    "whatif": (("whatif", "--drain", "aks-eastus", EXAMPLE),),
    "headroom": (("headroom", EXAMPLE),),
    "advise": (("advise", EXAMPLE),),
    "verify": (("verify", EXAMPLE),),
    "lint": (("lint", EXAMPLE),),
    "size": (("size", "llama-3.1-70b", EXAMPLE), ("size", "--list"), ("size", "llama")),
    "class": (("class", "--list"), ("class", "nowhere/none")),
    "map": (("map", "nowhere"),),
    "drift": (("drift", EXAMPLE),),
    "replay": (("replay", "nowhere"),),
    "watch": (("watch", "--kubeconfig", "nowhere"),),
    "snapshot": (("snapshot", "nowhere"),),
    "reconcile": (("reconcile", "--nothing"),),
    "serve": (("serve", "--nothing"),),
    "history": (("history", "--nothing"),),
    "ui": (("ui", "--nothing"),),
    "cluster": (("cluster", "gpu-east", "nowhere"),),
    "completion": (("completion", "none"),),
}
"""Calls of every verb. Of those that print a page, data, or commands to run, only what they say otherwise."""
WHOLE = ("kubectl ", "fleet-scheduler ", "  - cel: ", "    - cel: ", "- cel: ", "Usage: ")
"""How lines begin, or what they have, that are typed or copied as they are."""


def test_every_verb_is_asked_on_a_narrow_terminal() -> None:
    assert ASKED.keys() == COMMANDS.keys()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("words", [call for calls in ASKED.values() for call in calls], ids=" ".join)
def test_no_line_is_wider_than_the_terminal_but_what_is_typed(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = run(*words)
    lines = [*ran.out.splitlines(), *ran.err.splitlines()]
    assert lines
    assert [line for line in lines if len(line) > columns and not any(word in line for word in WHOLE)] == []


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_pools_and_reasons_vanish_at_no_width(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    replicas = [
        replica
        for deployment in run("plan", EXAMPLE, "-o", "json").data["deployments"]
        for replica in deployment["placement"]["replicas"]
    ]
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "".join(run("plan", EXAMPLE).out.split())  # A column may break a long name.
    for replica in replicas:
        assert all(pool in text for pool in replica["pools"].values())
        assert all(word in text for word in replica["because"].split())


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize(
    "words",
    [("why", "ml-chat/chat", EXAMPLE), ("headroom", EXAMPLE), ("size", "llama-3.1-70b", EXAMPLE)],
    ids=" ".join,
)
def test_no_cell_of_a_table_vanishes(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = run(*words).out.partition("\nClusters\n")[0].splitlines()
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = "".join(run(*words).out.split())  # A column may break a long name.
    cells = [word for line in whole if not line.isupper() for word in line.split()]
    assert len(cells) > DOZEN
    assert [word for word in cells if word not in narrow] == []


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if verb != "serve"])
def test_a_manual_page_is_as_wide_as_the_terminal_but_its_examples(verb: str) -> None:
    lines = _ran(verb, "--help", COLUMNS="60").stdout.splitlines()
    assert len(lines) > 1
    assert [line for line in lines if len(line) > 60 and not any(word in line for word in WHOLE)] == []


def test_a_sentence_that_is_wrapped_goes_on_below_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("plan", EXAMPLE).out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  … ReplicasScheduled"))
    assert lines[at + 1].startswith("    ")
    assert lines[at + 1].strip()


def test_a_narrow_terminal_keeps_where_a_replica_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run("why", "ml-chat/chat", EXAMPLE).out
    monkeypatch.delenv("COLUMNS")
    for place in ("aks-westeurope/0", "gke-europe-west4/0"):
        assert place in run("why", "ml-chat/chat", EXAMPLE).out
        assert place in narrow


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("at_once", [True, False])
def test_progress_is_shown_from_the_beginning_where_the_first_item_takes_long(
    monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(patience, "PATIENCE", float(PATIENCE * 1_000))

    def items() -> Iterator[bool]:
        yield "Reading" in screen.getvalue()

    assert [*text.track(items(), "Reading", at_once=at_once)] == [at_once]


class _Watched(_Terminal):
    """A terminal that tells when something is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_written = Event()

    def write(self, text: str) -> int:
        super().write(text)
        if text.strip():
            self.is_written.set()
        return len(text)


def _tracked(screen: _Watched) -> None:
    def items() -> Iterator[bool]:
        yield screen.is_written.wait(PATIENCE)

    assert [*text.track(items(), "Reading")] == [True]


def _imported(screen: _Watched) -> None:
    def import_slowly(_: str) -> Any:
        assert screen.is_written.wait(PATIENCE)
        return plan_command

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "import_module", import_slowly)
        assert main.get_command(click.Context(main), "plan") is plan_command.plan


def _written(screen: _Watched) -> None:
    with patience.waiting("Writing"):
        assert screen.is_written.wait(PATIENCE)


def _looked(screen: _Watched) -> None:
    def look(*_: object) -> Iterator[Any]:
        assert screen.is_written.wait(PATIENCE)
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_command, "_look", look)
        plane: Any = None
        assert next(watch_command._looks(plane, {}, 0)) == {}


@pytest.mark.parametrize(
    ("takes_long", "shown", "reason"),
    [
        (_tracked, "Reading", "the first item does not arrive"),
        (_imported, "Starting", "the modules of a verb come from a slow disk"),
        (_written, "Writing", "there is nothing to count off"),
        (_looked, "Reading", "a control plane has much to list"),
    ],
)
def test_a_clock_shows_what_takes_long_before_it_is_done(
    monkeypatch: pytest.MonkeyPatch, takes_long: Callable[[_Watched], None], shown: str, reason: str
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := _Watched())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(patience, "PATIENCE", 0)
    takes_long(screen)
    assert shown in screen.getvalue(), reason
    assert screen.getvalue().endswith(("\r", "\x1b[2K")), "what was shown is taken back"


def test_what_is_waited_for_is_not_shown_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr(patience, "PATIENCE", 0)
    monkeypatch.setattr(patience, "Timer", None)
    with patience.waiting("Writing"):
        assert [*text.track([1], "Reading")] == [1]
    assert stream.getvalue() == ""


@pytest.mark.parametrize("verb", ["plan", "lint"])
def test_a_large_file_is_one_whose_first_item_takes_long(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def track(items: Iterable[Any], *_: Any, at_once: bool = False, **__: Any) -> Iterator[Any]:
        asked.append(at_once)
        return iter([*items])

    monkeypatch.setattr(manifests, "track", track)
    monkeypatch.setattr(lint, "track", track)
    run(verb, EXAMPLE)
    assert not any(asked)
    monkeypatch.setattr(manifests, "SLOW", 1_000)
    monkeypatch.setattr(lint, "SLOW", 1_000)
    run(verb, EXAMPLE)
    assert any(asked)

"""`replay`: answer a recorded call again in this version, and compare the bytes.

A recording holds the redacted request and the answer to that (`function.recording`), so equal bytes
are expected, and a difference is a change of the decision or of its words. Upgrades are tried with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function import wire
from function.cli.bad_input import BadInput
from function.cli.options import OUTPUT, Command, end
from function.cli.text import answered, console, emit, escape, track
from function.dispatch import run
from function.recording import NoRecording, Recording, loaded, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

FieldDifference = tuple[str, Any, Any]
"""A path, what was recorded there and what this version says."""
SHOWN = 20
ABSENT = "(absent)"


def _files(paths: tuple[str, ...]) -> list[Path]:
    """The recordings that are named; of a folder, all. Raises BadInput where there is none."""
    recordings: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise BadInput(f"{path}: no such file or directory")
        recordings += sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not recordings:
        raise BadInput("there are no recordings (*.json) in the folders")
    return recordings


def answer(recording: Recording) -> bytes:
    """Answer the recorded request with this version. Raises wire.MalformedRequest."""
    call = wire.decode(recording.request)
    return wire.encode(call, run(call.request), recording.ttl)


def differences(was: Any, now: Any, path: str = "") -> Iterator[FieldDifference]:
    """Where two plain values differ, as far down as they have the same form."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted({*was, *now}):
            yield from differences(
                was.get(key, ABSENT), now.get(key, ABSENT), f"{path}.{key}" if path else key
            )
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for at, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, f"{path}[{at}]")
    elif was != now:
        yield path, was, now


def _short(value: Any) -> str:
    """A value in a line or two of a terminal."""
    text = str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"  # noqa: PLR2004 - a line of a terminal or two


def _replayed(path: Path) -> dict[str, Any]:
    """Answer one recording again, and compare.

    Bytes decide whether the answer is the same. The fields only say where it differs, as equal fields may
    be written in another order.

    Raises:
        BadInput: where the file cannot be read, or is no recording.
    """
    try:
        recording = loaded(path.read_bytes())
        again = answer(recording)
    except (OSError, NoRecording, wire.MalformedRequest) as error:
        raise BadInput(f"{path}: {error}") from None
    differing = differences(readable(recording.response), readable(again))
    return {
        "file": str(path),
        "recordedBy": recording.version,
        "same": again == recording.response,
        "bytes": len(again),
        "differences": [{"path": where, "recorded": was, "now": now} for where, was, now in differing],
    }


def _show(result: dict[str, Any]) -> None:
    """Print one result: a line where the answer is the same, else the first fields that differ."""
    out, file = console(), result["file"]
    if result["same"]:
        out.print(escape(f"✓ {file}: the same {result['bytes']} bytes"), style="green", soft_wrap=True)
        return
    differing = result["differences"]
    text = f"✗ {file}: recorded by {result['recordedBy']}, {len(differing)} differences"
    out.print(escape(text), style="bold red", soft_wrap=True)
    for difference in differing[:SHOWN]:
        was, now = (_short(difference[key]) for key in ("recorded", "now"))
        out.print(escape(f"    {difference['path']}"))
        out.print(escape(f"      recorded: {was}"), style="red", soft_wrap=True)
        out.print(escape(f"      now:      {now}"), style="green", soft_wrap=True)
    if len(differing) > SHOWN:
        out.print(f"    and {len(differing) - SHOWN} more (-o json lists all)")


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@OUTPUT
def replay(files: tuple[str, ...], output: str) -> None:
    r"""Answer recorded calls again, and compare: the same bytes, or what differs in this version.

    A server started with --record DIR writes its calls there, without what may be secret (see
    `fleet-scheduler snapshot`). What decides a placement is in a recording whole, so the answer is the one
    that was given, secrets aside. Where it is not, the differences are listed by their path in the response.

    Exit codes: 0 every answer is the same, 2 some differ, 1 bad input.

    \b
    Example:
      fleet-scheduler replay recordings/
    """
    paths = _files(files)
    results = [_replayed(path) for path in track(paths, "Replaying", total=len(paths))]
    if output == "table":
        for result in results:
            _show(result)
    else:
        emit(output, answered("Replay", {"recordings": results}))
    end((), findings=not all(result["same"] for result in results))

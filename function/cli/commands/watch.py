"""`watch`: a line for each change of deployments, or adapters, and their replicas, until they have settled.

The control plane is polled with `get` and `list`, as by every other verb; `changes` compares two looks. A
failure after the first look is said once and the watch goes on. The first one ends the command, as it is
most likely a wrong name or a missing right. Several deployments are read with two lists a namespace, and
adapters with three.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from function.api.replica import DEPLOYMENT_LABEL
from function.cli.bad_input import BadInput
from function.cli.group import INTERRUPTED
from function.cli.live import ADAPTERS, DEPLOYMENTS, REPLICAS, ControlPlane, identities
from function.cli.options import FINDINGS, FINE, Command, Names, output_option, reads_control_plane
from function.cli.patience import waiting
from function.cli.text import answered, counted, note, printable
from function.cli.worlds.inputs import Origin, Source, title_of
from function.cli.worlds.settling import Standing, StateChange, adapter_standing, changes, standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from function.boundary import JsonObject

DEPLOYMENT, ADAPTER = "ModelDeployment", "ModelAdapter"


class Watched(NamedTuple):
    """A deployment or an adapter: both may have one title."""

    kind: str
    title: str

    def __str__(self) -> str:
        """`ml-chat/chat`, or `ml-chat/support (adapter)`."""
        return self.title if self.kind == DEPLOYMENT else f"{self.title} (adapter)"

    @property
    def field(self) -> str:
        """`deployment`, or `adapter`."""
        return self.kind.removeprefix("Model").lower()


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[DEPLOYMENT...]", shell_complete=Names(DEPLOYMENT, also=ADAPTER))
@reads_control_plane
@click.option("--adapter", is_flag=True, help="The names are those of ModelAdapters.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to wait. [default: no end]")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds from one look to the next.",
)
@output_option("text", "json", text="text for people; json: one object on a line for each change.")
def watch(
    names: tuple[str, ...],
    source: Source,
    timeout: float | None,
    interval: float,
    output: str,
    *,
    adapter: bool,
) -> None:
    r"""Show each DEPLOYMENT (NAMESPACE/NAME, or NAME) settle: a line for each change, until all have settled.

    Without any, all of them are watched, or with -n those of a namespace. A deployment has settled when every
    replica that it wants is Ready, none is leaving, it is Ready itself (its endpoints too), and no condition
    of ours is False for its spec as it is now. One that lacks capacity is watched on: it settles when there
    is some. The control plane is asked again and again, so that what comes and goes between two looks is not
    seen; when it cannot be reached for a while, that is said and the watch goes on.

    A name that only a ModelAdapter has, or any with --adapter, is that of an adapter. It has settled when it
    is configured on as many replicas as it wants.

    Exit codes: 0 settled, 2 not settled within --timeout or deleted, 1 bad input, 130 ended by ctrl-c.

    \b
    Examples:
      fleet-scheduler watch ml-chat/chat --timeout 600 && echo serving
      fleet-scheduler watch -n ml-chat --timeout 600
      kubectl fleet watch chat search -o json | jq -r .text
      kubectl fleet watch support --adapter
    """
    plane = ControlPlane(source.target)
    origin, kind = Origin(plane.title, source.namespace, plane.namespace), ADAPTER if adapter else DEPLOYMENT
    with waiting("Reading"):
        every = _chosen(plane, origin, names, kind)
    until = None if timeout is None else monotonic() + timeout
    last = dict.fromkeys(every, Standing())
    deleted: list[Watched] = []
    try:
        for looks in _looks(plane, last, interval):
            for one, now in looks.items():
                if now is None:
                    deleted.append(one)
                    del last[one]
                    _say(StateChange(one.field.title(), "", "deleted"), one, every, output)
                    continue
                for change in changes(last[one], now):
                    _say(change, one, every, output)
                last[one] = now
            if all(now.is_settled for now in last.values()):
                if deleted:
                    names_of = ", ".join(map(str, deleted))
                    _end(f"{names_of} {'was' if len(deleted) == 1 else 'were'} deleted", FINDINGS)
                _end(f"settled: {_summary(last)}", FINE)
            if until is not None and monotonic() >= until:
                _end(f"not settled after {timeout:g} s: {_unsettled(last, every)}", FINDINGS)
    except KeyboardInterrupt:
        _end(f"not settled: {_unsettled(last, every)}", INTERRUPTED)


def _chosen(plane: ControlPlane, origin: Origin, names: Sequence[str], kind: str) -> list[Watched]:
    """All that the names mean, each once; without names, all of the kind. Raises BadInput."""

    def titles_of(kind: str) -> list[str]:
        listed = identities(plane, kind)
        return sorted(f"{one}/{name}" for one, name in listed if origin.only in ("", one))

    titles, adapters = titles_of(kind), list[str]()
    named = {name for title in titles for name in (title, title.partition("/")[2])}
    if kind == DEPLOYMENT and not named.issuperset(names):
        with suppress(BadInput):  # A role may allow the one kind and not the other.
            adapters = titles_of(ADAPTER)
    only_adapters = {name for title in adapters for name in (title, title.partition("/")[2])} - named
    if not titles and not only_adapters.intersection(names):
        where = f'namespace "{origin.only}" of {origin.where}' if origin.only else origin.where
        raise BadInput(f"there is no {kind} in {where}")
    chosen = [
        Watched(ADAPTER, title_of(name, adapters, origin, ADAPTER))
        if name in only_adapters
        else Watched(kind, title_of(name, titles, origin, kind))
        for name in names
    ]
    return list(dict.fromkeys(chosen)) or [Watched(kind, title) for title in titles]


def _summary(last: Mapping[Watched, Standing]) -> str:
    """How many replicas are ready: of the one deployment, or of all together."""
    if len(last) == 1:
        return next(iter(last.values())).summary
    kinds = Counter(one.field for one in last)
    nouns = ", ".join(counted(number, noun) for noun, number in kinds.items())
    ready = sum(replica.state == "ready" for now in last.values() for replica in now.replicas.values())
    wanted = sum(now.wanted for now in last.values())
    return f"{nouns}, {ready} of {wanted} replicas ready"


def _unsettled(last: Mapping[Watched, Standing], every: Sequence[Watched]) -> str:
    """Return what is missing; where several are watched, of each one that has not settled."""
    missing = {one: now.unsettled for one, now in last.items() if not now.is_settled}
    if len(every) == 1:
        return next(iter(missing.values()), "")
    return "".join(f"\n  {one}: {text}" for one, text in missing.items())


def _looks(
    plane: ControlPlane, watched: Mapping[Watched, Standing], interval: float
) -> Iterator[dict[Watched, Standing | None]]:
    """Yield the states of what is still watched, None of one that is gone. The first failure is raised.

    A failure is said once: a control plane that is away for minutes would fill the screen.
    """
    silent = False
    first = True
    while True:
        try:
            with waiting("Reading") if first else nullcontext():  # Later nobody waits for it.
                looks = dict(_look(plane, [*watched]))
            yield looks
            silent = False
        except BadInput as error:
            if first:
                raise
            if not silent:
                note(f"{error}; the watch goes on")
            silent = True
        first = False
        sleep(interval)


def _look(plane: ControlPlane, every: Sequence[Watched]) -> Iterator[tuple[Watched, Standing | None]]:
    """Read each with its replicas: one deployment alone by its name, all else by the lists of a namespace.

    Two lists a namespace are as much as a watch of many deployments costs; one alone is read by its name.
    """
    by_namespace: dict[str, list[Watched]] = defaultdict(list)
    for one in every:
        by_namespace[one.title.partition("/")[0]].append(one)
    for namespace, those in by_namespace.items():
        if len(every) == 1 and every[0].kind == DEPLOYMENT:
            content, replicas = plane.deployment(namespace, every[0].title.partition("/")[2])
            yield every[0], None if content is None else standing(content, replicas)
            continue
        kinds = {one.kind for one in those}
        read = [*([DEPLOYMENTS] if DEPLOYMENT in kinds else []), *(ADAPTERS if ADAPTER in kinds else ())]
        listed = {resource.kind: plane.objects(resource, namespace) for resource in (*read, REPLICAS)}
        of_deployment: dict[object, list[JsonObject]] = defaultdict(list)
        for plain in listed["ModelReplica"]:
            of_deployment[(plain["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL)].append(plain)
        contents = {(kind, plain["metadata"]["name"]): plain for kind in kinds for plain in listed[kind]}
        for one in those:
            name = one.title.partition("/")[2]
            content = contents.get((one.kind, name))
            if content is None:
                yield one, None
            elif one.kind == DEPLOYMENT:
                yield one, standing(content, of_deployment[name])
            else:
                yield one, adapter_standing(content, listed[ADAPTERS[1].kind], listed["ModelReplica"])


def _say(change: StateChange, one: Watched, every: Sequence[Watched], output: str) -> None:
    """One line, at once: a pipe is read while the watch goes on. Of several, it begins with whose it is."""
    now = datetime.now(tz=UTC)
    if output == "json":
        at = now.isoformat(timespec="milliseconds")
        facts = {"change": change.kind, "name": change.name, "text": change.text}
        kind = "Change" if one.kind == DEPLOYMENT else "AdapterChange"
        line = json.dumps(answered(kind, {"at": at, one.field: one.title, **facts}))
    else:
        what = f"{change.name}: " if change.name else ""
        whose = f"{one}  " if len(every) > 1 else ""
        line = printable(f"{now.astimezone():%H:%M:%S}  {whose}{change.kind.lower()}  {what}{change.text}")
    click.echo(line)


def _end(text: str, code: int) -> NoReturn:
    """Say how it ended, on standard error: on standard output there are only changes."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=True)
    sys.exit(code)

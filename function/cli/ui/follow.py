"""Look at a fleet again and again, and keep the last look for the pages that follow it.

A control plane is listed at every look; files are read again when one of them was written. Where nothing is
different, nothing is computed. A look that fails is said on the page, and the last good one stays.

One lock guards everything that is computed: a page that asks `why` waits for a look that is under way.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.cli.bad_input import BadInput
from function.cli.ui.view import Look, happenings, look_at
from function.cli.worlds.changes import AddNodes, Drain, Replicas
from function.cli.worlds.inputs import FLEET, taken
from function.cli.worlds.settling import explained
from function.cli.worlds.simulate import settle
from function.cli.worlds.source import gather
from function.cli.worlds.whatif import forecast_both

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.cli.ui.view import Entries
    from function.cli.worlds.changes import Change
    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.simulate import Simulation
    from function.cli.worlds.source import Source

KEPT = 500
"""Happenings that are kept: a page shows those since it was opened."""
DIGITS = 7
"""Digits of a number that a page may ask with."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The state after a look, as pages get it."""

    number: int = 0
    entries: Entries = field(default_factory=dict)
    problem: str = ""
    """Why the last look failed; empty when it did not."""
    happened: int = 0
    """How many things happened since the start."""


class Follower:
    """Follows one source. `look` is called by one thread, the rest by any."""

    def __init__(self, source: Source) -> None:
        """Look at nothing yet."""
        self.revision = Revision()
        self._source = source
        self._computing = threading.Lock()
        self._news = threading.Condition()
        self._log: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._last = Look()
        self._signature: object = None
        self._read: tuple[Inputs, Simulation] | None = None

    def look(self) -> None:
        """Look once. Raises BadInput when the first look fails; later ones only say so on the page."""
        first = self._read is None
        try:
            look, problem = self._looked(quietly=not first), ""
        except BadInput as error:
            if first:
                raise
            look, problem = None, str(error)
        with self._news:
            before = self.revision
            if look is None and problem == before.problem:
                return
            happened = before.happened
            if look is not None and not first:
                for happening in happenings(self._last, look):
                    happened += 1
                    self._log.append((happened, {"at": round(time.time(), 3), **happening._asdict()}))
            entries = before.entries
            if look is not None:
                # An entry that says the same stays the same object: comparing looks is then cheap.
                entries = {
                    key: entries[key] if entries.get(key) == value else value
                    for key, value in look.entries.items()
                }
                self._last = look
            self.revision = Revision(before.number + 1, entries, problem, happened)
            self._news.notify_all()

    def _looked(self, *, quietly: bool) -> Look | None:
        """Read and describe the fleet; None where it is as it was."""
        signature = _signature(self._source)
        if signature is not None and signature == self._signature:
            return None
        manifests, origin = gather(self._source)
        if signature is None:
            signature = {kind: [one.content for one in ones] for kind, ones in manifests.by_kind.items()}
            if signature == self._signature:
                return None
        with self._computing:
            inputs = taken(manifests, origin, quietly=quietly, needs=FLEET)
            settled = settle(inputs.world)
            look = look_at(inputs, settled, origin.where)
            self._signature, self._read = signature, (inputs, settled)
            return look

    def wait(self, number: int, seconds: float) -> Revision:
        """Return the revision once it is another than this one, or when the time is over."""
        with self._news:
            self._news.wait_for(lambda: self.revision.number != number, seconds)
            return self.revision

    def since(self, happened: int) -> list[dict[str, Any]]:
        """What happened after so many things had, the oldest first."""
        with self._news:
            return [entry for number, entry in self._log if number > happened]

    def why(self, title: str) -> dict[str, Any]:
        """Explain a deployment, as `why -o json` does. Raises BadInput."""
        with self._computing:
            inputs, settled = self._state()
            [name] = inputs.titles([title])
            plan = next(plan for plan in settled.rounds[0] if plan.title == name)
            if not plan.forecast.readable:
                raise BadInput(plan.response.conditions[0].message)
            return {**explained(plan), "summary": plan.forecast.summary}

    def whatif(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Forecast one change, as `whatif -o json` does. Raises BadInput."""
        change = _change(asked)
        with self._computing:
            inputs, _ = self._state()
            answer, _ = forecast_both(inputs.manifests, (change,), inputs.origin, quietly=True)
            return answer.as_data

    def _state(self) -> tuple[Inputs, Simulation]:
        if self._read is None:
            raise BadInput("nothing was read yet")
        return self._read


def _signature(source: Source) -> object:
    """When the files were written, and how long they are; None for a control plane."""
    if source.target.context or source.target.kubeconfig or not source.files:
        return None
    return [(str(path), *_stamp(path)) for name in source.files for path in _files(Path(name))]


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*")) if path.is_dir() else [path]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def _change(asked: Mapping[str, str]) -> Change:
    """The change that a page asks about. Raises BadInput."""
    if "drain" in asked:
        return Drain(asked["drain"])
    if "pool" in asked:
        return AddNodes(asked.get("cluster", ""), asked["pool"], _number(asked, "nodes"))
    if "deployment" in asked:
        namespace, _, name = asked["deployment"].partition("/")
        replicas = _number(asked, "replicas")
        if replicas < 0:
            raise BadInput(f"replicas: expected 0 or more, found {replicas}")
        return Replicas(namespace, name, replicas)
    raise BadInput("expected drain=CLUSTER, cluster=, pool= and nodes=, or deployment= and replicas=")


def _number(asked: Mapping[str, str], name: str) -> int:
    text = asked.get(name, "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS):
        raise BadInput(f'{name}: expected a number, found "{text}"')
    return int(text)

"""What a release composed: requests about everything it made, observed, and what it answered to them.

One file for each release, `tests/upgrade/<release>.json.xz`, written by `python -m hack.record_release` and
never again: a later release is held to it. A case is whole, so that no generator has to stay as it was.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.objects import covers
from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.drive import Answer

Plain = dict[str, Any]

FOLDER = Path(__file__).parent
CALLS = 6
SUFFIX = ".json.xz"


@dataclass(frozen=True)
class Case:
    """One request of a running system, and the answer of the release that made it."""

    name: str
    composite: Plain
    observed: Mapping[str, Plain]
    required: Mapping[str, list[Plain]]
    input: Plain | None
    desired: Mapping[str, Plain | None] = field(default_factory=dict)
    """What the release desires by key; None where it is what is observed."""
    status: Plain = field(default_factory=dict)
    conditions: Mapping[str, tuple[bool, str, str]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of the composite."""
        return str(self.composite["kind"])

    @property
    def is_at_rest(self) -> bool:
        """Whether the release changed nothing any more: what the user asked for is what is observed."""
        return self.desired.keys() == self.observed.keys() and not any(self.desired.values())

    @property
    def asked(self) -> AnyRequest:
        """The same as a request."""
        return AnyRequest(self.composite, self.observed, self.required, self.input)

    def answer(self, **changes: Any) -> Answer:
        """Return what this tree answers, after fetching what it requires from what the release was given.

        What a later tree requires has other names and selectors than what the release did.
        """
        objects = {_identity(one): one for items in self.required.values() for one in items}
        asked = self.asked.but(**changes)
        for _ in range(CALLS):
            answer = asked.answer()
            fetched = {
                wanted["name"]: self.required.get(
                    wanted["name"], [one for one in objects.values() if _selects(wanted, one)]
                )
                for wanted in answer.requirements
            }
            if fetched.keys() <= asked.required.keys():
                return answer
            asked = asked.but(required={**asked.required, **fetched})
        raise AssertionError(f"{self.name}: what is required does not settle")

    def answered(self, answer: Answer) -> Case:
        """Return the case with what was answered."""
        desired = {
            key: None if key in self.observed and is_applied(resource, self.observed[key]) else resource
            for key, resource in answer.desired.items()
        }
        return replace(self, desired=desired, status=answer.status, conditions=answer.conditions)


def _identity(plain: Plain) -> tuple[str, ...]:
    metadata = plain["metadata"]
    return plain["kind"], metadata.get("namespace", ""), metadata["name"]


def _selects(wanted: Plain, plain: Plain) -> bool:
    kind, namespace, name = _identity(plain)
    labels = plain["metadata"].get("labels") or {}
    return (
        kind == wanted["kind"]
        and wanted["matchName"] in (None, name)
        and wanted["namespace"] in (None, namespace)
        and wanted["matchLabels"].items() <= labels.items()
    )


def is_applied(desired: Plain, observed: Plain) -> bool:
    """Whether a desired resource is what is observed. To a Service an API server adds addresses."""
    now, before = (
        {key: resource[key] for key in resource if key not in ("metadata", "status")}
        for resource in (desired, observed)
    )
    return covers(before, now) if desired["kind"] == "Service" else before == now


def releases() -> list[str]:
    """Return the releases that are recorded."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def load(release: str) -> list[Case]:
    """Return the cases of a release."""
    text = lzma.decompress((FOLDER / f"{release}{SUFFIX}").read_bytes())
    return [Case(**values) for values in json.loads(text)]


def save(release: str, cases: Iterable[Case]) -> Path:
    """Write the cases of a release."""
    text = json.dumps([asdict(case) for case in cases], sort_keys=True, separators=(",", ":"))
    path = FOLDER / f"{release}{SUFFIX}"
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path

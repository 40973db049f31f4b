"""Deployments whose template is edited, and their replicas as they are observed on the way."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api.replica import WAS_READY_ANNOTATION
from function.api.workload import serving_digest
from tests.support import build
from tests.support.cases import ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.drive import Answer

Plain = dict[str, Any]

OLD, NEW, NEWER = "vllm:1", "vllm:2", "vllm:3"


def deployment(
    replicas: int, image: str, placement: Plain | None = None, *, gpus: int = 8, **more: Any
) -> Plain:
    """A deployment of one engine that runs an image."""
    member = build.member(devices=[build.request("gpu", gpus)], image=image)
    return ask(replicas, engines=[build.engine(members=[member])], placement=placement, **more)


@dataclass(frozen=True)
class Seen:
    """One replica as it is observed."""

    on: str
    index: int
    image: str = OLD
    ready: bool | None = True
    serves: str | None = None
    """The image whose digest it publishes; None: it publishes none."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of its status or metadata, by section."""
    was_ready: bool = False
    """It is noted on it that it was Ready once."""

    def built(self) -> Plain:
        """The object."""
        made = build.replica(deployment(1, self.image), self.on, self.index, pools="p0", ready=self.ready)
        if self.serves is not None:
            other = build.replica(deployment(1, self.serves), self.on, self.index, pools="p0")
            made.setdefault("status", {})["servingDigest"] = serving_digest(other["spec"])
        if self.was_ready:
            made["metadata"].setdefault("annotations", {})[WAS_READY_ANNOTATION] = made["metadata"]["uid"]
        for section, fields in self.more.items():
            made.setdefault(section, {}).update(copy.deepcopy(fields))
        return made


def running(*seen: Seen) -> list[Plain]:
    return [item.built() for item in seen]


def images(answer: Answer) -> dict[str, str]:
    """The desired image of every replica."""
    return {
        key.removeprefix("replica-"): replica["spec"]["engines"][0]["members"][0]["template"]["spec"][
            "containers"
        ][0]["image"]
        for key, replica in answer.replicas.items()
    }

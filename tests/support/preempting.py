"""Deployments of priority classes on clusters that arbitrate: what tests of preemption begin with."""

from __future__ import annotations

from typing import Any

from tests.support import build
from tests.support.cases import ask, clusters

Plain = dict[str, Any]
CLASSES = [
    {"name": "production", "value": 1000, "preempts": True},
    {"name": "standard", "value": 100},
    {"name": "batch", "value": 10},
]
ON = {"overcommit": "Yield", "priorityClasses": CLASSES}
PREFIX = "modelplane.ai/"
LABEL, SPARE = f"{PREFIX}preempting", f"{PREFIX}spare"
LATE = "2026-03-02T00:00:00Z"


def arbitrating(*named: Plain, **nodes: int) -> list[Plain]:
    """Clusters that arbitrate; the first names some who give way."""
    fleet = clusters(**nodes)
    for cluster in fleet:
        cluster["status"]["givesWay"] = []
    fleet[0]["status"]["givesWay"] = [*named]
    return fleet


def of(name: str, class_name: str | None = "production", replicas: int = 1, **more: Any) -> Plain:
    made = ask(replicas, **more)
    made["metadata"] |= {"name": name, "uid": build.uid(name)}
    if class_name is not None:
        made["spec"].setdefault("placement", {})["priorityClassName"] = class_name
    return made


def running(
    parent: Plain, cluster: str, index: int = 0, value: int | None = 10, spare: str = "all", **more: Any
) -> Plain:
    """A replica, Ready unless said otherwise, with the notes of its deployment."""
    made = build.replica(parent, cluster, index, pools="p0", ready=more.pop("ready", True), **more)
    name = next((listed["name"] for listed in CLASSES if listed["value"] == value), "")
    if value is not None:
        noted = {"priority-class": name, "priority": str(value), "spare": spare}
        made["metadata"]["annotations"] = {PREFIX + key: text for key, text in noted.items() if text}
    return made


def waiting(parent: Plain, cluster: str, index: int = 0) -> Plain:
    """A replica that preempts."""
    made = running(parent, cluster, index, 1000, "0", ready=False)
    made["metadata"]["labels"][LABEL] = "true"
    made["metadata"]["creationTimestamp"] = LATE
    return made


CHAT = of("chat")
"""A deployment of the class that preempts."""

"""What an object carries because Crossplane and the API server store it: most of its bytes."""

from __future__ import annotations

import hashlib
from typing import Any

Plain = dict[str, Any]

API = "modelplane.ai/v1alpha1"
TIME = "2026-03-01T08:00:00Z"


def uid(*parts: object) -> str:
    """Return a uid made of `parts`."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def metadata(name: str, version: int, **more: Any) -> Plain:
    """Return the metadata of an object."""
    return {
        "name": name,
        "uid": uid(name, more.get("namespace", "")),
        "resourceVersion": str(version),
        "creationTimestamp": TIME,
        "generation": 1,
        "finalizers": ["composite.apiextensions.crossplane.io"],
        **more,
    }


def condition(kind: str, reason: str, *, status: bool = True) -> Plain:
    """Return a condition."""
    return {"type": kind, "status": str(status), "reason": reason, "lastTransitionTime": TIME}


def _fields(value: Any) -> Plain:
    """Return the fieldsV1 of a value: every field that somebody manages."""
    made: Plain = {}
    for key, item in value.items():
        if isinstance(item, dict):
            made[f"f:{key}"] = _fields(item)
        elif isinstance(item, list) and item and all(isinstance(one, dict) and "name" in one for one in item):
            made[f"f:{key}"] = {f'k:{{"name":"{one["name"]}"}}': {".": {}} | _fields(one) for one in item}
        else:
            made[f"f:{key}"] = {}
    return made


def managed(made: Plain, *parts: str) -> Plain:
    """Add the managedFields of an object whose `parts` have a manager each."""
    made["metadata"]["managedFields"] = [
        {
            "apiVersion": API,
            "fieldsType": "FieldsV1",
            "fieldsV1": _fields(
                {part: {key: item for key, item in made[part].items() if key != "managedFields"}}
            ),
            "manager": f"apiextensions.crossplane.io/composed/{uid(part)[:12]}",
            "operation": "Apply" if part == "spec" else "Update",
            "time": TIME,
        }
        | ({"subresource": "status"} if part == "status" else {})
        for part in parts
    ]
    return made


def machinery(name: str, composed: int) -> Plain:
    """Return what Crossplane itself keeps in a spec."""
    return {
        "compositionRef": {"name": "modelplane"},
        "compositionRevisionRef": {"name": f"modelplane-{uid(name)[:7]}"},
        "compositionUpdatePolicy": "Automatic",
        "resourceRefs": [
            {
                "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
                "kind": "Object",
                "name": f"{name}-{uid(name, n)[:6]}",
            }
            for n in range(composed)
        ],
    }

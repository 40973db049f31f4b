"""Digest what the pods of a replica run: equal digests serve the same."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Shape

SERVING: Shape = {
    "metadata": {"generation": None},
    "spec": None,
    "status": {
        "servingDigest": None,
        "conditions": {"type": None, "status": None, "observedGeneration": None},
    },
}
"""What it takes to tell whether the pods of a ModelReplica run what its spec says."""
DIGEST_LENGTH = 16
"""Hex digits."""


def serving_digest(spec: Mapping[str, Any]) -> str:
    """Return the digest of a ModelReplica's spec, as far as it decides what its pods run.

    How many copies there are is no part of it: a copy more does not restart the others.
    """
    engines = spec.get("engines")
    run = {
        "modelCacheRef": spec.get("modelCacheRef"),
        "serving": spec.get("serving"),
        "engines": [
            {key: engine[key] for key in engine if key != "copies"} if isinstance(engine, dict) else engine
            for engine in (engines if isinstance(engines, list) else ())
        ],
    }
    text = json.dumps(run, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

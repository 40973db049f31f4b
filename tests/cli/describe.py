"""A cluster to hold against the slices that a driver publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.support.slices import H200

if TYPE_CHECKING:
    from pathlib import Path


def published_memory(path: Path, memory: str) -> Path:
    """Write a cluster whose class claims so much memory of each GPU, and return its file."""
    entry = {"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "g", "count": 2, **H200}
    entry["capacity"] = {"memory": {"value": memory}}
    pools = [{"name": "h200", "className": "h200"}]
    spec = {"cluster": {"source": "Existing"}, "nodePools": pools}
    made = [
        {"kind": "InferenceClass", "metadata": {"name": "h200"}, "spec": {"devices": [entry]}},
        {"kind": "InferenceCluster", "metadata": {"name": "east"}, "spec": spec},
    ]
    path.write_text(
        yaml.safe_dump_all([{"apiVersion": "modelplane.ai/v1alpha1", **manifest} for manifest in made])
    )
    return path

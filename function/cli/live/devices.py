"""Read the devices of a cluster: ResourceSlices, from the cluster itself and not from its control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cli.bad_input import BadInput
from function.cli.live.resources import SLICES

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.live.connection import ControlPlane


def read_slices(cluster: ControlPlane) -> list[JsonObject]:
    """The ResourceSlices in the newest version that is served. Raises BadInput where there is none."""
    served = (cluster.served(resource) for resource in SLICES)
    slices = next((listed for listed in served if listed is not None), None)
    if slices is None:
        versions = ", ".join(resource.version for resource in SLICES)
        raise BadInput(
            f"{cluster.title} serves no {SLICES[0].name} ({versions}): Dynamic Resource Allocation is on by "
            "default from Kubernetes 1.34; is it the cluster with the devices?"
        )
    if not slices:
        raise BadInput(f"{cluster.title} has no ResourceSlice: does a DRA driver run on it?")
    return slices

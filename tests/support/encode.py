"""A request in bytes, its objects with their map entries in any order, as Crossplane writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.encode import struct_of
from function.wire import messages

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from tests.support.world import World

Plain = dict[str, Any]


def envelope(
    written: Callable[[Plain], bytes],
    composite: Plain,
    observed: Mapping[str, Plain],
    required: Mapping[str, Sequence[Plain]],
    given: Plain | None = None,
    desired: Mapping[str, Plain] | None = None,
) -> bytes:
    """Return a request whose objects are `written`."""
    message = messages.Request()
    message.meta.tag = "tested"
    message.observed.composite.resource = written(composite)
    for state, resources in ((message.observed, observed), (message.desired, desired or {})):
        for key, resource in resources.items():
            state.resources[key].resource = written(resource)
    for name, items in required.items():
        message.required_resources[name].SetInParent()
        for item in items:
            message.required_resources[name].items.add().resource = written(item)
    if given is not None:
        message.input = written(given)
    return bytes(message.SerializeToString())


def encoded(draw: random.Random, world: World) -> bytes:
    """Return the request of a world, every map in an order of its own."""
    return envelope(
        lambda item: struct_of(draw, item), world.deployment, world.observed, world.required, world.input
    )

"""Device equivalence classes: device lists that one deployment cannot tell apart.

A match depends on what the deployment's selectors and constraints read of a device, and on what every claim
takes (its name, driver, class, count). Nodes that differ in a driver version nobody asks for match alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.scheduler.matching.constraints import values_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.api import Device, Pool
    from function.scheduler.scheduling_input import SchedulingInput


MAX_COMPARED = 32
"""Devices x selectors up to which a list is looked at: a node has a few entries, a member a few selectors."""


class DeviceEquivalence:
    """Tells device lists apart as far as a deployment can. Matches on lists of one class are equal.

    They may hold the devices of the other list, which differ in what the deployment does not read.
    """

    def __init__(self, inputs: SchedulingInput) -> None:
        """Note what the deployment reads of a device."""
        self._selectors = inputs.selectors.devices
        named = {
            constraint.match_attribute
            for reference in inputs.deployment.members
            if reference.member.node_selector
            for constraint in reference.member.node_selector.constraints
        }
        self._attributes = tuple(sorted(named))

    def of(self, pool: Pool) -> Hashable:
        """Return what decides every match on a pool's devices; None where it publishes no list of them.

        A long list, or many selectors, would take longer than is saved: then nothing but the list itself is
        like it.
        """
        if pool.devices is None:
            return None
        if len(pool.devices) * len(self._selectors) > MAX_COMPARED:
            return pool.device_key
        return tuple([self._device(device) for device in pool.devices])

    def _device(self, device: Device) -> Hashable:
        subject = device.subject
        return (
            device.name,
            device.driver,
            device.claim,
            device.device_class_name,
            device.count,
            device.domains,
            *(selector.projection(subject) for selector in self._selectors),
            *(values_of(device, name) for name in self._attributes),
        )

"""DRA matchAttribute: one value common to the devices of all named requests.

Lists have it when they share at least one value; a device that lacks the attribute fails. Necessary, not
sufficient: an entry stands for several devices, and DRA admission on the workload cluster decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.api import Device, Member

Values = frozenset[tuple[str, object]]
PossibleValues = tuple[Values | None, ...]
"""What each constraint's requests may still share; None where none of them has a device yet."""
SharedAttribute = tuple[str, frozenset[int]]
"""A qualified attribute name and the positions of the requests that must share it."""


def values_of(device: Device, name: str) -> Values:
    """The values a device publishes under a qualified name; empty when it lacks the attribute.

    A name without a domain is in the domain of the driver, on either side.
    """
    if not name:
        return frozenset()
    qualified = name if "/" in name else f"{device.driver}/{name}"
    for published, holder in device.attributes.items():
        if (published if "/" in published else f"{device.driver}/{published}") == qualified:
            kind, value = next(iter(holder.items()))
            if kind == "list":
                kind, value = next(iter(value.items()))
                return frozenset((kind, item) for item in value)
            return frozenset({(kind, value)})
    return frozenset()


class Constraints:
    """The constraints of one member, followed while requests are assigned one after the other."""

    def __init__(self, rules: Sequence[SharedAttribute]) -> None:
        """Take the rules: attribute and request positions."""
        self._rules = tuple(rules)

    @classmethod
    def of(cls, member: Member) -> Constraints:
        """Read the constraints of a member. No request named means all of them.

        One that names a request the member does not have can never hold: no claim could carry it.
        """
        stated = member.node_selector.constraints if member.node_selector else ()
        names = [request.name for request in member.requests]
        return cls(
            [
                (
                    constraint.match_attribute if set(constraint.requests) <= set(names) else "",
                    frozenset(
                        at
                        for at, name in enumerate(names)
                        if not constraint.requests or name in constraint.requests
                    )
                    or frozenset(range(len(names))),
                )
                for constraint in stated
            ]
        )

    def start(self) -> PossibleValues:
        """Nothing assigned: any value is still possible."""
        return (None,) * len(self._rules)

    def narrow(self, values: PossibleValues, at: int, device: Device) -> PossibleValues | None:
        """Narrow the possible values by the device chosen for request `at`; None when none is left."""
        if not self._rules:
            return ()
        narrowed: list[Values | None] = []
        for (name, requests), possible in zip(self._rules, values, strict=True):
            if at not in requests:
                narrowed.append(possible)
                continue
            mine = values_of(device, name)
            both = mine if possible is None else mine & possible
            if not both:
                return None
            narrowed.append(both)
        return tuple(narrowed)

"""The environment of a selector: its one variable with fixed fields, for devices, clusters and nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cel.syntax import types
from function.cel.syntax.types import Type, map_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY_NAME = map_of(types.STRING, types.DYN)


@dataclass(frozen=True, slots=True)
class VariableField:
    """A field of the variable, and what reading it reads: the word for it in messages and references."""

    type: Type
    kind: str
    since: str = "1.31"

    @property
    def depth(self) -> int:
        """Return how many keys lead from the field to a single value."""
        depth, kind = 0, self.type
        while kind.name == "map":
            depth, kind = depth + 1, kind.args[1]
        return depth


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """The variable of one level of selectors."""

    variable: str
    type: Type
    fields: Mapping[str, VariableField]
    unknown: Type = types.DYN
    """The type of a value of which the check knows nothing: a whole selector may have it."""


DEVICE = Environment(
    "device",
    Type("kubernetes.DRADevice"),
    {
        "driver": VariableField(types.STRING, "driver"),
        "attributes": VariableField(map_of(types.STRING, _BY_NAME), "attribute"),
        "capacity": VariableField(map_of(types.STRING, map_of(types.STRING, types.QUANTITY)), "capacity"),
        "allowMultipleAllocations": VariableField(types.BOOL, "allowMultipleAllocations", "1.34"),
    },
)
_WITHOUT_LISTS = map_of(types.STRING, map_of(types.STRING, types.ANY))
DEVICE_WITHOUT_LISTS = Environment(
    DEVICE.variable,
    DEVICE.type,
    {**DEVICE.fields, "attributes": VariableField(_WITHOUT_LISTS, "attribute")},
    unknown=types.ANY,
)
"""The device of an API server whose gate DRAListTypeAttributes is off, as it is by default."""
CLUSTER = Environment(
    "cluster",
    Type("fleet.Cluster"),
    {
        "name": VariableField(types.STRING, "name"),
        "labels": VariableField(map_of(types.STRING, types.STRING), "label"),
        "attributes": VariableField(_BY_NAME, "attribute"),
    },
)
NODE = Environment(
    "node",
    Type("fleet.Node"),
    {
        "name": VariableField(types.STRING, "name"),
        "className": VariableField(types.STRING, "className"),
        "attributes": VariableField(_BY_NAME, "attribute"),
    },
)

TYPE_IDENTIFIERS: Mapping[str, Type] = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": types.INT,
    "uint": types.UINT,
    "string": types.STRING,
    "null_type": types.NULL,
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "type": types.type_of(types.DYN),
    "optional_type": types.optional_of(types.DYN),
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
    "net.IP": types.IP,
    "net.CIDR": types.CIDR,
}
"""Names that stand for a type, as in `type(x) == int`."""

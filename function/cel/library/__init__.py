"""The function libraries of the dialect, one file each, and the releases that differ in them.

`declared` has all functions by name, as Kubernetes' environment for device selectors has them. A `Dialect` is
that with everything else that one Kubernetes release does in its own way. A file has a library with its
functions, their declarations at the end; `charges` has what they cost, `declarations` how one is written.

To add a function: write it in the file of its library, declare it there with the release that brought it, and
add its cost to `charges` and, as the most it may cost, to `cost`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from function.boundary import frozen
from function.cel.library import (
    conversions,
    formats,
    lists,
    network,
    operators,
    quantity,
    strings,
    times,
    urls,
)
from function.cel.library.declarations import Overload

LIBRARIES = (
    operators.DECLARATIONS,
    conversions.DECLARATIONS,
    urls.DECLARATIONS,
    strings.REGEX,
    lists.DECLARATIONS,
    lists.OPTIONALS,
    quantity.DECLARATIONS,
    strings.DECLARATIONS,
    formats.DECLARATIONS,
    lists.SETS,
    network.DECLARATIONS,
    formats.NAMED_FORMATS,
    quantity.SEMVER,
    lists.INCLUDES,
    times.DECLARATIONS,
)
"""In the order in which Kubernetes registers them, and so that of a function's overloads: the first that fits
binds a type that nothing else binds."""


def declared(changed: Iterable[Overload] = ()) -> Mapping[str, tuple[Overload, ...]]:
    """Return all functions by name; those in `changed` replace every overload of their names."""
    named: dict[str, list[Overload]] = {}
    for library in LIBRARIES:
        for overload in library:
            named.setdefault(overload.name, []).append(overload)
    replaced: dict[str, list[Overload]] = {}
    for overload in changed:
        replaced.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in (named | replaced).items()}


# Differences between the Kubernetes releases whose selectors are read, as one table.
#
# A selector means what the API server of the workload cluster takes it for, and its allocator. 1.36 and
# 1.37 agree on every selector that was found in public; the rows are what was found between them by
# comparing with their own code.


@frozen(eq=False)
class Dialect:
    """The selectors of one Kubernetes release."""

    release: str
    functions: Mapping[str, tuple[Overload, ...]]
    quoted_fields: bool
    """Whether a field may be written in backticks: device.attributes["d"].`a-b`."""
    rooted_names_are_global: bool
    """Whether `.x` is never a name that a macro bound."""
    wrapper_results: bool
    """Whether the whole selector may be a google.protobuf.BoolValue."""
    optionals_keep_values: bool
    """Whether an optional keeps what it holds on its way through a name or a branch of `? :`."""
    alternatives_need_optionals: bool
    """Whether `or` and `orValue` of what is no optional are an error; before, they are that thing."""

    def without(self, function: str) -> Dialect:
        """Return this dialect where a function is not declared."""
        functions = {name: overloads for name, overloads in self.functions.items() if name != function}
        return replace(self, functions=functions)


_CHANGED = (
    *strings.LATER,
    *lists.POSITIONS,  # Behind those of texts: the first that fits binds a type that nothing else binds.
    *lists.LATER,  # lists.range of a negative number is an error.
    *conversions.LATER,  # There is no duration of an int.
    *quantity.LATER,  # add and sub leave the receiver alone.
    *lists.INCLUDES_LATER,  # includes is charged for each element.
)
"""The functions that 1.37 declares otherwise, each with all its overloads."""

DIALECTS: Mapping[str, Dialect] = {
    "1.36": Dialect(
        "1.36",
        declared(),
        quoted_fields=False,
        rooted_names_are_global=False,
        wrapper_results=False,
        optionals_keep_values=False,
        alternatives_need_optionals=False,
    ),
    "1.37": Dialect(
        "1.37",
        declared(_CHANGED),
        quoted_fields=True,
        rooted_names_are_global=True,
        wrapper_results=True,
        optionals_keep_values=True,
        alternatives_need_optionals=True,
    ),
}
DEFAULT = "1.36"
"""The release that selectors are read for where nobody says which."""

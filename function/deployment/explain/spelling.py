"""Suggest the spelling of a selector that does not compile, or reads what nobody publishes.

Nothing is proposed that was not compiled: advice that does not compile itself is worse than none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from function.cel import CompileError, compile_cluster, compile_device, compile_node
from function.cel.library.quantity import is_quantity
from function.deployment.explain.catalogue import Catalogue, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel import Reference, Selector
    from function.scheduler.fleet import Fleet
    from function.scheduler.selectors.compiled import InvalidSelector

_FLAT = re.compile(r"""\bdevice\.(attributes|capacity)\[(["'])([^"'/\]]+)/([A-Za-z_]\w*)\2\]""")
"""A name with its domain in one key: `device.attributes["gpu.nvidia.com/architecture"]`."""
_BARE = re.compile(r"""\bdevice\.(attributes|capacity)(?:\[(["'])([A-Za-z_]\w*)\2\]|\.([A-Za-z_]\w*))""")
"""A name without a domain: `device.attributes["architecture"]`, `device.attributes.architecture`."""

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe])(i?)b?", re.IGNORECASE)
_SELECTOR_KINDS: tuple[tuple[str, Callable[[str], Selector], str], ...] = (
    ("node", compile_node, "it selects node pools: write it under nodeSelector.selectors"),
    ("cluster", compile_cluster, "it selects clusters: write it under clusterSelector.cel"),
    ("device", compile_device, "it selects devices: write it under the selectors of a device request"),
)


def advice(invalid: InvalidSelector, fleet: Fleet) -> str:
    """What to write instead of a selector that does not compile; empty where nothing near compiles."""
    source = invalid.error.source
    for variable, compiled, text in _SELECTOR_KINDS:
        if f"undeclared reference to '{variable}'" in invalid.error.message and _compiles(compiled, source):
            return text
    return f"did you mean {corrected}?" if (corrected := _unflattened(source, fleet)[1]) else ""


def unflattened(source: str, fleet: Fleet) -> str:
    """A device selector with every flat or bare key written as domain and name; empty if that is no help."""
    return _unflattened(source, fleet)[0]


def _unflattened(source: str, fleet: Fleet) -> tuple[str, str]:
    """The corrected selector and the first name that was corrected, as it is to be written.

    A name without a domain is corrected where exactly one domain publishes it.
    """
    names: list[str] = []

    def flat(match: re.Match[str]) -> str:
        names.append(f'device.{match[1]}["{match[3]}"].{match[4]}')
        return names[-1]

    def bare(match: re.Match[str]) -> str:
        kind, name = ("attribute" if match[1] == "attributes" else "capacity"), match[3] or match[4]
        published = Catalogue.of(fleet).names
        domains = sorted(domain for other, domain, id_ in published if (other, id_) == (kind, name))
        if len(domains) != 1:
            return match[0]
        names.append(f'device.{match[1]}["{domains[0]}"].{name}')
        return names[-1]

    for pattern, corrected in ((_FLAT, flat), (_BARE, bare)):
        names.clear()
        text = pattern.sub(corrected, source)
        if names and _compiles(compile_device, text):
            return text, names[0]
    return "", ""


def respelt(source: str, read: Reference, intended: Reference) -> str:
    """A selector with a name that nobody publishes replaced by the one that is meant; empty if it cannot."""
    if intended.id is None or intended.kind != read.kind:
        return ""
    domain, name = re.escape(read.domain or ""), re.escape(read.id or "")
    key = rf"""\bdevice\.(?:attributes|capacity)\[(["']){domain}\1\]\s*(?:\.\s*{name}\b|\[(["']){name}\2\])"""
    text = re.sub(key, lambda _: written(intended), source)
    return text if text != source and _compiles(compile_device, text) else ""


def with_unit(literal: str) -> str:
    """A quantity with a unit of Kubernetes: `141G` for `141GB`, `80Gi` for `80gib`; empty for no slip."""
    match = _QUANTITY.fullmatch(literal.strip())
    if match is None or is_quantity(literal):
        return ""
    number, prefix, binary = match[1], match[2].upper(), match[3].lower()
    unit = "k" if prefix == "K" and not binary else f"{prefix}{binary}"
    return f"{number}{unit}"


def _compiles(compiled: Callable[[str], Selector], source: str) -> bool:
    try:
        compiled(source)
    except CompileError:
        return False
    return True

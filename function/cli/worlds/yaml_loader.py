"""Read YAML with PyYAML, adjusted to what Kubernetes reads, where `parsing` is in doubt or needs a position.

Kubernetes reads YAML 1.1 by way of JSON: keys are texts, a key stands once, times stay texts, NaN and
infinity do not exist. PyYAML differs in each of these. It is imported only here, as that takes longer than
to read a small fleet.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import yaml

from function.api.fault import shown
from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from function.cli.admission import FieldPath

ALIASED, ALIASED_PER_VALUE = 100_000, 10
"""Values that aliases may add to a document: this many, and this many for each value that is written out."""
_NO_FILE = re.compile(r'in "<\w+ string>", ')
"""How a parser names a text that it was given; the file is named before."""
_MERGE = "tag:yaml.org,2002:merge"
_TEXT, _MAP, _LIST = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"
_ALIAS = re.compile(r"\*(?<![^\s,\[{:?-]\*)[^\s,\[\]{}]")
"""An alias, perhaps; only with one can a document hold more values than are written."""


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Written in C where PyYAML has it.


class _Loader(_Base):  # type: ignore[misc]
    """YAML as Kubernetes reads it: times stay text, and a key given twice is an error, not a surprise."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def loaded(text: str) -> Iterator[object]:
    """Yield the documents of a text, each as soon as it is parsed. Raises BadInput.

    Aliases are counted before a document is built: a few lines can stand for more values than memory holds.
    """
    written = expanded = 0
    may_repeat = bool(_ALIAS.search(text))
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if may_repeat:
                sizes: dict[int, int] = {}
                expanded += _expanded(node, sizes)
                written += len(sizes)
                if expanded - written > ALIASED + ALIASED_PER_VALUE * written:  # Few bytes are little work.
                    counts = f"aliases expand {written} values to {expanded}"
                    raise BadInput(f"{counts}; write them out, or use several files")
            yield loader.construct_document(node)
    except yaml.YAMLError as error:
        raise BadInput(_explained(error, text)) from None


def _value(loader: Any, node: yaml.Node) -> Any:
    """Construct a node. Most are texts, maps and lists: those take no way around the loader's registry."""
    if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
        return node.value
    if node.tag == _MAP and isinstance(node, yaml.MappingNode):
        return _mapping(loader, node)
    if node.tag == _LIST and isinstance(node, yaml.SequenceNode):
        return [_value(loader, item) for item in node.value]
    return loader.construct_object(node, deep=True)


def _explained(error: yaml.YAMLError, text: str) -> str:
    """Explain a parser's message in one line, with its commonest cause."""
    message = _NO_FILE.sub("at ", " ".join(str(error).split()))
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    line = text.splitlines()[mark.line : mark.line + 1] if mark else []
    if mark and line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
        return f"line {mark.line + 1}: a tab indents it, YAML takes spaces only: {message}"
    if mark and "mapping values are not allowed" in message:
        return f"{message}: it stands deeper than the line before, or that one lacks a colon and a space"
    opened = error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if opened and "quoted scalar" in message and "unexpected end" in message:
        return f"line {opened.line + 1}: a quote is opened and not closed: {message}"
    return message


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a node holds, every alias counted as what it refers to. Raises BadInput for a cycle.

    An alias is the node it refers to, so a document is a graph: `sizes` gets an entry for each of its nodes,
    by identity, which is what is written out; the paths through it are what readers of the document go
    through.
    """
    size = sizes.get(id(node))
    if size is None:
        sizes[id(node)] = 0  # Under way.
        size = sizes[id(node)] = 1 + sum(_expanded(child, sizes) for child in _children(node))
    elif not size:
        raise BadInput(f"line {node.start_mark.line + 1}: a recursive node, an alias of what it stands in")
    return size


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    """The nodes below a node: keys and values of a map, items of a list."""
    if isinstance(node, yaml.MappingNode):
        return (child for pair in node.value for child in pair)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _mapping(loader: Any, node: yaml.Node) -> dict[str, Any]:
    """A map: what `<<` brings in gives way to what the map says itself, an earlier source to none."""
    if not isinstance(node, yaml.MappingNode):
        raise BadInput(f"line {node.start_mark.line + 1}: !!map takes a map")
    entries: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            for source in _sources(value_node):
                # Each source is built once, however often it is merged.
                merged = {**loader.construct_object(source, deep=True), **merged}
            continue
        key = _value(loader, key_node)
        where = f"line {key_node.start_mark.line + 1}"
        if not isinstance(key, str):
            raise BadInput(f"{where}: a key must be a string, found {key!r}")
        if key in entries:
            raise BadInput(f'{where}: the key "{key}" is given twice{_joined(key, key_node)}')
        entries[key] = _value(loader, value_node)
    return {**merged, **entries}


def _joined(key: str, node: yaml.Node) -> str:
    """The commonest reason for a key that is given twice: `cat a.yaml b.yaml`."""
    outermost = not node.start_mark.column and key in ("apiVersion", "kind")
    return "; is a line --- missing between two objects?" if outermost else ""


def _sources(node: yaml.Node) -> list[yaml.MappingNode]:
    """The maps behind `<<`: one, or a list of them."""
    listed = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for source in listed:
        if not isinstance(source, yaml.MappingNode):
            raise BadInput(f"line {source.start_mark.line + 1}: << takes a map, or a list of maps")
    return list(listed)


def _no_json(_: Any, node: yaml.Node) -> object:
    """Refuse a tag that JSON has no value for."""
    tag = node.tag.rpartition(":")[2]
    raise BadInput(
        f"line {node.start_mark.line + 1}: !!{tag} is nothing that JSON has: write it as plain YAML"
    )


def _scalar(construct: Callable[[Any, yaml.ScalarNode], Any], kind: str) -> Callable[[Any, Any], Any]:
    """Construct a scalar; one that its tag does not describe is refused, as is one that JSON has not."""

    def constructed(loader: Any, node: yaml.ScalarNode) -> Any:
        where = f"line {node.start_mark.line + 1}"
        try:
            value = construct(loader, node)
        except (ValueError, KeyError, IndexError):
            raise BadInput(f"{where}: expected {kind}, found {shown(node.value)}") from None
        if isinstance(value, float) and not isfinite(value):
            raise BadInput(f"{where}: {node.value} is no number of JSON")
        return value

    return constructed


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
for _tag, _kind in (("int", "a whole number"), ("float", "a number"), ("bool", "true or false")):
    _construct = getattr(yaml.constructor.SafeConstructor, f"construct_yaml_{_tag}")
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _scalar(_construct, _kind))
for _tag in ("binary", "set", "omap", "pairs", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _no_json)


# Positions: where a field of an object stands in the file, for a message.


@lru_cache(maxsize=4)
def _nodes(text: str) -> tuple[yaml.Node, ...]:
    """The nodes of a text that was parsed before; none where it is only JSON, not YAML.

    Few texts are kept: a tree takes many times the space.
    """
    loader = _Loader(text)
    nodes: list[yaml.Node] = []
    with suppress(yaml.YAMLError):
        while loader.check_node():
            nodes.append(loader.get_node())
    return tuple(nodes)


def mark_of(text: str, document: int, path: FieldPath) -> yaml.Mark | None:
    """Where the last step of a path is written in a document: the key of a map, the item of a list.

    Where a step is not written, the mark of the nearest one above it is returned: a required field that is
    missing belongs there. None where there is no such document.
    """
    nodes = _nodes(text)
    if document >= len(nodes):
        return None
    node = nodes[document]
    mark = node.start_mark
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == step]
            if not pairs:
                break
            mark, node = pairs[0][0].start_mark, pairs[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            mark = node.start_mark
        else:
            break
    return mark

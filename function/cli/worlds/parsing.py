"""Parse the text of a file, YAML or JSON, as Kubernetes does; refuse what would take the machine down.

Kubernetes reads YAML 1.1 by way of JSON: keys are texts, a key stands once, times stay texts, NaN and
infinity do not exist. PyYAML differs in each of these, so its loader is adjusted below. JSON is parsed as
JSON, and a large dump by a parser in Rust where both are sure to read the same (`read_quickly`).

Refused before it is parsed, or while: nesting deeper than any object has, aliases that stand for far more
values than are written, and integers that Python would take minutes to read. Each message has a line
where the parser knows one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from itertools import accumulate, filterfalse
from math import isfinite
from typing import TYPE_CHECKING, Any

import yaml

from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DEEPEST = 500
"""Levels of nesting a file may have; Kubernetes objects stay below 30."""
ALIASED, ALIASED_PER_VALUE = 100_000, 10
"""Values that aliases may add to a document: this many, and this many for each value that is written out."""
USUAL = 30
"""Levels that objects have."""
SHOWN = 60
"""Characters of a value that are shown."""

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_COMPACT = re.compile(rf"(?:[-?][ \t]+){{{DEEPEST}}}")
_NO_FILE = re.compile(r'in "<\w+ string>", ')
"""How a parser names a text that it was given; the file is named before."""
_LINE = re.compile(r"\bline (\d+)")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON escapes half a surrogate pair."""
_JSON_START = re.compile(r"\s*(?=\S)")
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


# Large dumps of YAML, read by a parser in Rust.
#
# `ryaml` has a translation of the same scanner and parser in C that PyYAML has, so that both take and refuse
# the same texts, and both refuse the same nesting. They differ in which plain scalars are numbers and truths
# (YAML 1.2 against 1.1), in tags, in merges, and in keys that are no texts. A text that may have any of these
# is left to PyYAML, as is one that is refused: its messages have lines.

LARGE = 100_000
"""Characters from which a text is read quickly where it can be. Smaller ones are read at once anyway."""
_DIGITS = r"[0-9][0-9_]*"
_NO_TEXT = r"(?:[-+]?[0-9][0-9.]*|(?i:true|false|null)|~)"
_UNLIKE = (
    r"[-+]?0[0-9_]+(?:\.[0-9_]*)?",  # Octal for 1.1, a text or decimal for 1.2.
    r"[-+]?0[xXoObB][0-9a-fA-F_]+",
    rf"[-+]?(?:{_DIGITS})?\.?[0-9]*_[0-9_.]*(?:[eE][-+]?[0-9]+)?",
    rf"[-+]?(?:{_DIGITS}\.?[0-9_]*|\.[0-9_]+)[eE][-+]?[0-9]+",  # 1e3 is a text for 1.1.
    rf"[-+]?{_DIGITS}(?::[0-9_]+)+(?:\.[0-9_]*)?",  # A time is a number of seconds for 1.1.
    r"[-+]?\.[0-9_]+|[-+]?[0-9]+\.|\+[0-9][0-9.]*|-0",
    r"[-+]?[0-9]{19,}(?:\.[0-9]*)?",
    r"[-+]?\.?(?i:inf|infinity|nan)|(?i:yes|no|on|off)|=|<<",
    rf"{_NO_TEXT}(?=:)|\?.*",  # Keys that are no texts, or no scalars.
    r"[&*][0-9A-Za-z_-].*",
)
_DOUBT = re.compile(rf"(?:.*[\"']:)?(?:{'|'.join(_UNLIKE)})(?:[:#].*)?")
"""A word of a text that the two readers may take differently. More is found: prose has a `no` too."""
_SHAPES = (
    re.compile(r":(?<![^\s\[{,]:)(?![^\s\]},])"),
    re.compile(r"(?:^|[-:?,\[{])[ \t]*!|^%", re.MULTILINE),
    re.compile(rf"(?:^|[{{,])[ \t]*{_NO_TEXT}[ \t]*(?:[,}}#]|$)", re.MULTILINE),
)
"""A key that is empty; a tag or a directive; what may be a key of {1, 2}."""
_PLAIN = re.compile(r"[ -]*[A-Za-z][\w./-]*:(?: [\w\"'/.-]*)?")
"""A line that has none of the shapes, as nearly all lines of a dump: a key, and a word at most."""
_LISTED = re.compile(r"(apiVersion: [\w./]+\nitems:\n)- ")
_DOCUMENTS = ("\n---", "\n...", "\r", "\x85", "\u2028", "\u2029")
"""How another document may begin, and line ends that it may begin after."""
_FLOW = str.maketrans(dict.fromkeys("[]{},", " "))


def read_quickly(text: str, lines: Iterable[str]) -> list[object] | None:
    """Read a text as `_loaded` would; None where that is in doubt, or where ryaml is not installed.

    `lines`: those of the text, each once.
    """
    try:
        from ryaml import loads_all  # type: ignore[attr-defined]  # noqa: PLC0415 - only for a large text
    except ModuleNotFoundError:
        return None
    words = dict.fromkeys("\n".join(lines).translate(_FLOW).split())
    unusual = "\n".join(filterfalse(_PLAIN.fullmatch, lines))
    if any(map(_DOUBT.fullmatch, words)) or any(shape.search(unusual) for shape in _SHAPES):
        return None
    try:
        documents = _listed_quickly(text, loads_all) or loads_all(text)
    except ValueError:  # Its own error among them.
        return None
    # A text of comments only: no document for the one, an empty one for the other.
    return documents if isinstance(documents, list) and None not in documents else None


def _listed_quickly(text: str, loads_all: Callable[[str], Any]) -> list[object] | None:
    """Read a list as kubectl prints it, item by item; None for another text. Raises ValueError for doubt.

    ryaml holds a whole text a second time before it makes objects of it: apart, the items take three quarters
    of the time and a third of the memory. A line that begins with `- ` begins an item, unless it stands in
    quotes or brackets: those are then not closed in the part before, which is refused.
    """
    begun = _LISTED.match(text)
    items, ended, below = text.rpartition("\nkind: ")
    if not (begun and ended) or any(mark in text for mark in _DOCUMENTS):
        return None
    [document] = loads_all(f"{begun[1]}kind: {below}")
    parts = items[begun.end() :].split("\n- ")
    document["items"] = [item for part in parts for [[item]] in [loads_all(f"- {part}\n")]]
    return [document]


def parse_documents(name: str, text: str) -> Iterator[object]:
    """Parse the documents of the file `name`. Raises BadInput.

    JSON is tried first where a text begins like it; what is no JSON may still be YAML.
    """
    try:
        _refuse_brackets(text)
        if text.lstrip().startswith("{"):  # JSON is YAML, but is read thirty times as fast.
            with suppress(json.JSONDecodeError):
                yield from _json_documents(text)
                return
        lines = dict.fromkeys(text.split("\n"))  # A dump repeats itself.
        _refuse_compact_lists(lines)
        quickly = read_quickly(text, lines) if len(text) > LARGE else None
        yield from _loaded(text) if quickly is None else quickly
    except yaml.YAMLError as error:
        raise BadInput(f"{name}: {_with_cause(_explained(error, text), text)}") from None
    except BadInput as error:
        raise BadInput(f"{name}: {_with_cause(str(error), text)}") from None
    except RecursionError:
        raise BadInput(f"{name}: nested too deeply") from None


def _json_documents(text: str) -> list[object]:
    """One object of JSON, or several after each other, as `jq -c` writes them. Raises JSONDecodeError."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_whole)
    documents, place = [], 0
    while match := _JSON_START.match(text, place):
        document, place = decoder.raw_decode(text, match.end())
        documents.append(document)
    if _HALF.search(text):  # JSON can escape half a surrogate pair, and no text can hold it. YAML has none.
        try:
            json.dumps(documents, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadInput("half a surrogate pair is no text") from None
    return documents


def _no_number(constant: str) -> object:
    """Refuse NaN and infinity: Python reads them in JSON, and no API server does."""
    raise BadInput(f"{constant} is no number of JSON")


def _whole(digits: str) -> int:
    """A whole number of JSON. Raises BadInput for one of more digits than Python reads."""
    try:
        return int(digits)
    except ValueError:  # Python reads no more than some thousand digits.
        raise BadInput(f"a number of {len(digits)} digits: {_short(digits)}") from None


_CAUSES = (
    ("{{", "it looks like a Helm template, which has to be rendered first (helm template)"),
    ("<<<<<<<", "a merge conflict is not resolved"),
    ("```", "a fence of Markdown is no YAML"),
    ("<html", "it looks like a web page: take the raw file"),
    ("\u00a0", "it has a no-break space, which is no space to YAML"),
    ("\ufeff", "it has the mark that files of Windows begin with, perhaps since two were joined"),
    ("\0", "it is no text, or UTF-16 without its mark: save the file as UTF-8"),
)
"""What stands where a fault is, and what that is a sign of."""


def _with_cause(message: str, text: str) -> str:
    """A message, with the cause where its line or one beside it shows one; without a line, the whole text."""
    number = _LINE.search(message)
    near = "\n".join(text.split("\n")[max(0, int(number[1]) - 2) : int(number[1]) + 1]) if number else text
    cause = next((cause for sign, cause in _CAUSES if sign in near), "")
    return f"{message}; {cause}" if cause else message


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


def compose_documents(text: str) -> Iterator[yaml.Node]:
    """Return the nodes of a text that was parsed before; none where it is only JSON, not YAML."""
    loader = _Loader(text)
    with suppress(yaml.YAMLError):
        while loader.check_node():
            yield loader.get_node()


def _loaded(text: str) -> Iterator[object]:
    """Yield the documents of a text, each as soon as it is parsed.

    Aliases are counted before a document is built: a few lines can stand for more values than memory holds.
    """
    loader = _Loader(text)
    written = expanded = 0
    may_repeat = bool(_ALIAS.search(text))
    try:
        while loader.check_node():
            node = loader.get_node()
            if may_repeat:
                sizes: dict[int, int] = {}
                expanded += _expanded(node, sizes)
                written += len(sizes)
                if expanded - written > ALIASED + ALIASED_PER_VALUE * written:  # Few bytes are little work.
                    text = f"aliases expand {written} values to {expanded}"
                    raise BadInput(f"{text}; write them out, or use several files")
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _value(loader: Any, node: yaml.Node) -> Any:
    """Construct a node. Most are texts, maps and lists: those take no way around the loader's registry."""
    if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
        return node.value
    if node.tag == _MAP and isinstance(node, yaml.MappingNode):
        return _mapping(loader, node)
    if node.tag == _LIST and isinstance(node, yaml.SequenceNode):
        return [_value(loader, item) for item in node.value]
    return loader.construct_object(node, deep=True)


def _refuse_brackets(text: str) -> None:
    """Refuse absurd nesting before the parser recurses into it: the one in C has no limit of its own."""
    brackets = text.encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    inner, levels = brackets, 0
    while inner and levels <= USUAL:  # Pairs leave from the inside, a level each time.
        inner, levels = inner.replace(b"{}", b"").replace(b"[]", b""), levels + 1
    # What is left has brackets in texts, or is deep: a step for each bracket tells.
    steps = (1 if bracket in b"[{" else -1 for bracket in (brackets if inner else b""))
    if max(accumulate(steps), default=0) > DEEPEST:
        raise BadInput("nested too deeply")


def _refuse_compact_lists(lines: Iterable[str]) -> None:
    """Refuse absurd nesting on one line, likewise: `- - - -`, which JSON has not."""
    if any(_COMPACT.search(line) for line in lines if len(line) >= 2 * DEEPEST):
        raise BadInput("nested too deeply")


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
            raise BadInput(f'{where}: expected {kind}, found "{_short(node.value)}"') from None
        if isinstance(value, float) and not isfinite(value):
            raise BadInput(f"{where}: {node.value} is no number of JSON")
        return value

    return constructed


def _short(text: str) -> str:
    """A value as a message shows it."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
for _tag, _kind in (("int", "a whole number"), ("float", "a number"), ("bool", "true or false")):
    _construct = getattr(yaml.constructor.SafeConstructor, f"construct_yaml_{_tag}")
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _scalar(_construct, _kind))
for _tag in ("binary", "set", "omap", "pairs", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _no_json)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map of JSON. Raises BadInput where a key stands twice: which of the two is meant?"""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        numbers = Counter(key for key, _ in pairs)
        key = next(key for key, number in numbers.items() if number > 1)
        raise BadInput(f'the key "{key}" is given twice')
    return unique

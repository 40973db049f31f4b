"""How a library declares its functions: a signature in words, what runs, what it costs, since when it exists.

`method("charAt", "string, int -> string", char_at)` declares `receiver.charAt(index)`. A signature lists the
types of the parameters, of a method the receiver first, and after the arrow that of the result:

    signature = [type {"," type}] "->" type
    type      = name ["<" type {"," type} ">"]

A single capital letter is a type parameter, the same one wherever it stands. Names are those of cel-go's
types; Kubernetes' own have a short form (`Quantity` for `kubernetes.Quantity`).

What runs is a Python function of the arguments, or raises EvaluationError. A cost is a number of units, or a
function of (result, arguments...) that returns it (`charges`). `since` is the Kubernetes release whose API
server first knows the overload, for lint.

The order of declarations matters. The check lets the first overload that fits bind a type that nothing else
binds, as cel-go does, so a library lists overloads in cel-go's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

from function.boundary import frozen
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Type, has_parameter, list_of, map_of
from function.cel.values import EvaluationError, Map, UInt, Value

# Protobuf's well-known types, the only message literals of the dialect. A selector has no use for them; they
# are here because the API server takes them, and cost a table.
#
# `google.protobuf.Int32Value{value: 1}` is 1, `google.protobuf.Value{string_value: "a"}` is "a". Any other
# message is an unknown name, as it is to the API server.

_OBJECT = map_of(nodes.STRING, nodes.DYN)
_ARRAY = list_of(nodes.DYN)


@frozen
class MessageType:
    """A message type: its name, the fields it may have, and its value when no field is given."""

    type: Type
    fields: Mapping[str, Type]
    zero: Value


def _wrapper(wrapped: Type, zero: Value) -> MessageType:
    """Declare a wrapper message: one field, and the plain value without it."""
    kind = Type("wrapper", (wrapped,))
    return MessageType(kind, {"value": kind}, zero)


MESSAGES: Mapping[str, MessageType] = {
    "google.protobuf.BoolValue": _wrapper(nodes.BOOL, zero=False),
    "google.protobuf.BytesValue": _wrapper(nodes.BYTES, b""),
    "google.protobuf.DoubleValue": _wrapper(nodes.DOUBLE, 0.0),
    "google.protobuf.FloatValue": _wrapper(nodes.DOUBLE, 0.0),
    "google.protobuf.Int32Value": _wrapper(nodes.INT, 0),
    "google.protobuf.Int64Value": _wrapper(nodes.INT, 0),
    "google.protobuf.StringValue": _wrapper(nodes.STRING, ""),
    "google.protobuf.UInt32Value": _wrapper(nodes.UINT, UInt(0)),
    "google.protobuf.UInt64Value": _wrapper(nodes.UINT, UInt(0)),
    "google.protobuf.ListValue": MessageType(_ARRAY, {"values": _ARRAY}, []),
    "google.protobuf.Struct": MessageType(_OBJECT, {"fields": _OBJECT}, Map({})),
    "google.protobuf.Value": MessageType(
        nodes.DYN,
        {
            "null_value": nodes.NULL,
            "number_value": nodes.DOUBLE,
            "string_value": nodes.STRING,
            "bool_value": nodes.BOOL,
            "struct_value": _OBJECT,
            "list_value": _ARRAY,
        },
        None,
    ),
}


CallCost: TypeAlias = "int | Callable[..., int]"

ALWAYS = "1.31"
"""The oldest Kubernetes release that the table of versions reaches back to."""

_ABBREVIATIONS = {
    "Quantity": nodes.QUANTITY,
    "Semver": nodes.SEMVER,
    "IP": nodes.IP,
    "CIDR": nodes.CIDR,
    "URL": nodes.URL,
    "Format": nodes.FORMAT,
}
_SYMBOL = re.compile(r"\s*([A-Za-z][\w.]*|[<>,]|->)")


@frozen(eq=False)
class Overload:
    """One signature of one function."""

    name: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    run: Callable[..., Value]
    cost: CallCost
    since: str
    generic: bool
    guarded: bool = True
    """Whether cel-go looks at the values' types before it runs it; else the function does so itself.

    Seen only through dyn: an unguarded function gets values that its signature does not allow."""


def function(  # noqa: PLR0913 - as many as an overload has
    name: str,
    signature: str,
    run: Callable[..., Value],
    *,
    cost: CallCost = 1,
    since: str = ALWAYS,
    guarded: bool = True,
    member: bool = False,
) -> Overload:
    """Declare `name(arguments)`; or, for a `member`, `receiver.name(arguments)`."""
    *parameters, result = parse_signature(signature)
    generic = any(map(has_parameter, (*parameters, result)))
    return Overload(name, member, tuple(parameters), result, run, cost, since, generic, guarded)


method = partial(function, member=True)
"""Declare `receiver.name(arguments)`; the receiver is the first of the signature."""


def both(
    name: str, signature: str, run: Callable[..., Value], *, cost: CallCost = 1, guarded: bool = True
) -> tuple[Overload, Overload]:
    """Declare a function that can be called in either style."""
    declared = method(name, signature, run, cost=cost, guarded=guarded)
    return replace(declared, member=False), declared


def parses(parse: Callable[..., Value]) -> Callable[..., bool]:
    """Return the test whether a text can be parsed: `isQuantity` of `quantity`, and so on."""

    def test(*given: Value) -> bool:
        """Tell whether the reader accepts: the text of its error is of no use here."""
        try:
            parse(*given)
        except EvaluationError:
            return False
        return True

    return test


@lru_cache(maxsize=1024)
def parse_signature(signature: str) -> tuple[Type, ...]:
    """Return the types of the parameters and, last, of the result."""
    parameters, _, result = signature.partition("->")
    return (*_types(parameters), *_types(result))


def _types(text: str) -> list[Type]:
    """Read a list of types with their parameters, by the grammar of the module.

    An explicit stack: each `<` opens a list of parameters, and its `>` closes the type before it.
    """
    stack: list[list[Type]] = [[]]
    names: list[str] = []
    for symbol in _SYMBOL.findall(text):
        if symbol == "<":
            names.append(stack[-1].pop().name)
            stack.append([])
        elif symbol == ">":
            arguments = tuple(stack.pop())
            stack[-1].append(Type(names.pop(), arguments))
        elif symbol != ",":
            stack[-1].append(_named(symbol))
    return stack[0]


def _named(symbol: str) -> Type:
    """Return `'A` for a single capital letter, else the type with that name or abbreviation."""
    if len(symbol) == 1 and symbol.isupper():
        return Type(f"'{symbol}")
    return _ABBREVIATIONS.get(symbol, Type(symbol))

"""Build the node of each rule of the grammar, with the macros resolved.

A builder takes what the symbols of its rule stand for, and where the rule began in the text. The table
`BUILDERS` at the end says which rule has which builder; a rule that is not in it passes its one symbol on.

Macros are resolved here, as cel-go's parser does (`parser/macro.go`, `ext/comprehensions.go`): a call with
the name and number of arguments of a macro *is* the macro, whatever it is called on. Later rooms see loops,
not calls, and need not know how one is written. The expansion of cel-go into folds over an accumulator is
not repeated: a loop stays one node, which is what makes it quick (`evaluator/generator`).

Two shapes of trees differ from a plain reading of the text, both as in cel-go:

- a chain of `&&` or of `||` is one node however long it is, so that a thousand terms do not nest;
- a run of `!` or of `-` counts once if odd and not at all if even.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from function.cel.syntax import lexer, nodes
from function.cel.syntax.lexer import Token, literal
from function.cel.syntax.nodes import Call, Identifier, Literal, Loop, Node, Select, Span
from function.cel.values import Mistake

# The macros: calls that bind names. A call with a macro's name and number of arguments is the macro.

ONE_NAME = frozenset(
    {("map", 3), *((name, 2) for name in ("all", "exists", "exists_one", "map", "filter", "sortBy"))}
)
TWO_NAMES = frozenset(
    {
        *((name, 3) for name in ("all", "exists", "exists_one", "existsOne")),
        *((name, n) for name in ("transformList", "transformMap", "transformMapEntry") for n in (3, 4)),
    }
)
"""Loops that bind one name and two: the macro and how many arguments it has."""
OPTIONAL = {"optMap": False, "optFlatMap": True}
READ = frozenset({"filter", "transformMap"})
"""Loops that read their first name themselves, whatever their steps say."""
ACCUMULATOR = "__result__"
"""The name that cel-go's own expansion of a loop binds: a selector that binds it too would not compile."""
BIND_ARGS = 3
OPTIONAL_ARGS = 2


def expand(call: Call) -> Node:
    """Return what a call stands for: a macro, or the call itself. Raises Mistake.

    `has` and `cel.bind` are told by what they are called on, loops and `optMap` by name and number of
    arguments alone. A call such as `x.filter(y)` that fits no macro stays a call, which the check then does
    not know.
    """
    if call.target is None:
        return _presence(call) if call.function == "has" and len(call.args) == 1 else call
    on_cel = isinstance(call.target, Identifier) and call.target.name == "cel"
    if on_cel and call.function == "bind" and len(call.args) == BIND_ARGS:
        bound, value, body = call.args
        if not isinstance(bound, Identifier):
            raise Mistake("cel.bind() variable names must be simple identifiers", bound.span.at)
        return nodes.Bind(call.span, _readable(bound), value, body)
    form = (call.function, len(call.args))
    if form in ONE_NAME:
        name = _variable(call.args[0], read=call.function in READ)
        return Loop(call.span, call.function, call.target, (name,), call.args[1:])
    if form in TWO_NAMES:
        kind = "exists_one" if call.function == "existsOne" else call.function
        one, other = _variable(call.args[0], read=call.function in READ), _variable(call.args[1])
        if one == other:
            raise Mistake(f"duplicate variable name: {one}", call.args[1].span.at)
        return Loop(call.span, kind, call.target, (one, other), call.args[2:])
    if call.function in OPTIONAL and len(call.args) == OPTIONAL_ARGS:
        name = _variable(call.args[0], read=True)
        return nodes.OptionalMap(call.span, call.target, name, call.args[1], OPTIONAL[call.function])
    return call


def _presence(call: Call) -> Node:
    """Return what `has(a.b)` is: the selection, as a test. Nothing but a selection can be tested."""
    field = call.args[0]
    if not isinstance(field, Select) or field.test:
        raise Mistake(
            "invalid argument to has() macro: it takes a field selection, such as a.b", field.span.at
        )
    return Select(call.span, field.operand, field.field, test=True)


def _variable(node: Node, *, read: bool = False) -> str:
    """Return the name that a macro binds; `read` where the macro itself reads it.

    A macro that reads its name builds an identifier of it in cel-go, which must then be one that can be read.
    """
    if not isinstance(node, Identifier):
        raise Mistake("argument must be a simple name", node.span.at)
    if node.name == ACCUMULATOR:
        raise Mistake("iteration variable overwrites accumulator variable", node.span.at)
    return _readable(node) if read else node.name


def _readable(node: Identifier) -> str:
    """Return a name that the macro itself reads: nobody can read one that begins with a dot."""
    if node.name.startswith("."):
        raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.span.at)
    return node.name


Symbols: TypeAlias = list[Any]
"""The values of the symbols of a rule: tokens, nodes, lists of parts."""

# The words of CEL's specification that are no names, though the dialect has no use for them.
_WORDS = (
    "as break const continue else for function if import let loop package namespace return var void while"
)
RESERVED = frozenset(_WORDS.split())
MARKERS = [
    *(f"relation_{name}" for name in ("lt", "le", "gt", "ge", "eq", "ne", "in")),
    *(f"addition_{name}" for name in ("add", "sub")),
    *(f"multiplication_{name}" for name in ("mul", "div", "mod")),
]
"""The rules of an operator and its left side."""


class Chain:
    """The terms of a chain of `&&` or `||` that is still growing; `whole` makes one node of them.

    The grammar is left-recursive, so a chain arrives term by term. A tuple copied for each term would make a
    chain of a thousand terms cost half a million copies.
    """

    __slots__ = ("at", "end", "function", "start", "terms")

    def __init__(self, function: str, at: int, start: int, terms: list[Node]) -> None:
        """Start with the terms so far; `end` moves on as terms arrive."""
        self.function = function
        self.at = at
        self.start = start
        self.end = start
        self.terms = terms


class Builder:
    """Builds the nodes of one text. `end` is where the last token that was taken ends."""

    __slots__ = ("end", "quoted_fields")

    def __init__(self, *, quoted_fields: bool) -> None:
        """`quoted_fields`: whether the release reads fields in backticks."""
        self.end = 0
        self.quoted_fields = quoted_fields

    def span(self, at: int, start: int) -> Span:
        """Return the span of a node that ends with the last token."""
        return Span(at, start, self.end)


def _ternary(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `? :`, whose error points at the question mark."""
    condition, mark, one, _, other = symbols
    args = (whole(condition), whole(one), whole(other))
    return Call(builder.span(mark.start, start), "_?_:_", None, args)


def _chain(builder: Builder, symbols: Symbols, start: int) -> Chain:
    """Add a term to a chain of `&&` or `||`, or begin one."""
    left, operator, right = symbols
    function = LOGIC[operator.kind]
    if type(left) is not Chain or left.function != function:
        left = Chain(function, operator.start, start, [whole(left)])
    left.terms.append(whole(right))
    left.end = builder.end
    return left


def _binary(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build an operator between two operands. Its left side came with the operator."""
    (left, operator), right = symbols
    return Call(builder.span(operator.start, start), BINARY[operator.kind], None, (left, right))


def _run_of_one(_builder: Builder, symbols: Symbols, start: int) -> tuple[str, int, int]:
    """Count a run of `!` or `-`: what it is, how many, and where it begins."""
    if len(symbols) == 1:
        return (UNARY[symbols[0].kind], 1, start)
    function, count, at = symbols[0]
    return (function, count + 1, at)


def _unary(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `!` and `-`; a run counts once if odd and not at all if even, as in cel-go."""
    (function, count, at), operand = symbols
    if count % 2 == 0:
        even: Node = operand
        return even
    return Call(builder.span(at, start), function, None, (operand,))


def _field(builder: Builder, symbols: Symbols, _start: int) -> str:
    """Return the name of a field. Backticks came with Kubernetes 1.37; before, they are no syntax."""
    (token,) = symbols
    if token.kind != lexer.QUOTED_IDENTIFIER:
        return str(token.text)
    if not builder.quoted_fields:
        raise Mistake("unsupported syntax: '`'", token.start)
    return str(token.text[1:-1])


def _select(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `a.b`, whose error points at the dot."""
    operand, dot, field = symbols
    return Select(builder.span(dot.start, start), operand, field)


def _optional_select(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `a.?b`, a call with the name of the field as a literal, as cel-go writes it."""
    operand, dot, _, field = symbols
    span = builder.span(dot.start, start)
    return Call(span, "_?._", None, (operand, Literal(span, field, nodes.STRING)))


def _index(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `a[k]`, or `a[?k]`, whose result is an optional."""
    operand, bracket, *mark, key, _ = symbols
    return Call(builder.span(bracket.start, start), "_[?_]" if mark else "_[_]", None, (operand, whole(key)))


def _method(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `a.f(x)`, or what it stands for if it is a macro."""
    target, _, name, opening, *rest = symbols
    args = tuple(rest[0]) if len(rest) > 1 else ()
    return expand(Call(builder.span(opening.start, start), str(name.text), target, args))


def _function(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `f(x)`, or `has(a.b)`, which is the only macro without a receiver."""
    name, opening, *rest = symbols
    args = tuple(rest[0]) if len(rest) > 1 else ()
    return expand(Call(builder.span(opening.start, start), _identifier(name), None, args))


def _rooted_function(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `.f(x)`, which is never a macro: cel-go looks for macros by the plain name only."""
    _, name, opening, *rest = symbols
    args = tuple(rest[0]) if len(rest) > 1 else ()
    return Call(builder.span(opening.start, start), _identifier(name), None, args)


def _name(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build a bare name, which may stand for a variable or for a type.

    The dot of `.a` stays part of the name, for the check decides what it means.
    """
    *dot, token = symbols
    return Identifier(builder.span(start, start), "." * len(dot) + _identifier(token))


def _literal(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build a constant. A sign belongs to it where the lexer says so."""
    (token,) = symbols
    return literal(token, builder.span(start, start))


def _item(_builder: Builder, symbols: Symbols, _start: int) -> nodes.Item:
    """Build an element of a list literal, or a key of a map literal; `?` marks it as optional."""
    return nodes.Item(whole(symbols[-1]), len(symbols) > 1)


def _entry(_builder: Builder, symbols: Symbols, _start: int) -> nodes.MapEntry:
    """Build an entry of a map literal from its key, which carries the mark, and its value."""
    (key, optional), _, value = symbols
    return nodes.MapEntry(key, whole(value), optional)


def _parts(_builder: Builder, symbols: Symbols, _start: int) -> Symbols:
    """Collect the arguments of a call, or the items, entries or fields of a literal."""
    if len(symbols) == 1:
        return [whole(symbols[0])]
    parts: Symbols = symbols[0]
    parts.append(whole(symbols[2]))
    return parts


def _list_literal(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `[a, b]`. A comma alone, or one at the end, adds nothing."""
    items = symbols[1] if type(symbols[1]) is list else ()
    return nodes.ListLiteral(builder.span(start, start), tuple(items))


def _map_literal(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `{a: b}`."""
    entries = symbols[1] if type(symbols[1]) is list else ()
    return nodes.MapLiteral(builder.span(start, start), tuple(entries))


def _initializer(_builder: Builder, symbols: Symbols, _start: int) -> tuple[str, Node, bool]:
    """Build a field of a message literal: its name, its value, whether it is `?field`."""
    *mark, field, _, value = symbols
    return (field, whole(value), bool(mark))


def _message(builder: Builder, symbols: Symbols, start: int) -> Node:
    """Build `a.b.C{...}`. What stands before the brace must be a name; the check knows which there are."""
    operand, brace, fields = symbols[:3]
    name = nodes.dotted(operand)
    if name is None:
        raise Mistake("Syntax error: a message needs a type name before its brace", brace.start)
    given = tuple(fields) if type(fields) is list else ()
    return nodes.MessageLiteral(builder.span(brace.start, start), name, given)


def whole(value: Any) -> Node:
    """Return the node that an expression stands for, now that it is whole."""
    if type(value) is Chain:
        span = Span(value.at, value.start, value.end)
        return Call(span, value.function, None, tuple(value.terms))
    node: Node = value
    return node


def _identifier(token: Token) -> str:
    """Return a name that is not reserved. Fields and methods may have reserved names; bare names may not."""
    if token.text in RESERVED:
        raise Mistake(f"reserved identifier: {token.text}", token.start)
    return token.text


LOGIC = {"OR": "_||_", "AND": "_&&_"}
UNARY = {"NOT": "!_", "MINUS": "-_"}
BINARY = {
    "LT": "_<_",
    "LE": "_<=_",
    "GT": "_>_",
    "GE": "_>=_",
    "EQ": "_==_",
    "NE": "_!=_",
    "IN": "@in",
    "PLUS": "_+_",
    "MINUS": "_-_",
    "STAR": "_*_",
    "SLASH": "_/_",
    "PERCENT": "_%_",
}
BUILDERS: dict[str, Callable[[Builder, Symbols, int], Any]] = {
    "expr": _ternary,
    "conditionalor": _chain,
    "conditionaland": _chain,
    "relation": _binary,
    "addition": _binary,
    "multiplication": _binary,
    # The left side of an operator and the operator: the rule above brings the right side.
    **dict.fromkeys(MARKERS, lambda _builder, symbols, _start: symbols),
    "unary": _unary,
    "unary_not": _run_of_one,
    "unary_neg": _run_of_one,
    "field": _field,
    "member_dot": _select,
    "member_optional_dot": _optional_select,
    "member_index": _index,
    "member_optional_index": _index,
    "member_dot_arg": _method,
    "member_object": _message,
    "ident": _name,
    "dot_ident": _name,
    "ident_arg": _function,
    "dot_ident_arg": _rooted_function,
    # A chain ends with its parentheses, so that `(a && b) && c` nests.
    "paren_expr": lambda _builder, symbols, _start: whole(symbols[1]),
    "literal": _literal,
    "exprlist": _parts,
    "item": _item,
    "items": _parts,
    "entry": _entry,
    "mapinits": _parts,
    "fieldinit": _initializer,
    "fieldinits": _parts,
    "list_lit": _list_literal,
    "map_lit": _map_literal,
}

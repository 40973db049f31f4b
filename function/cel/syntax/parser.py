"""Build nodes from tokens: the table of `grammar` runs once over the text, and each rule builds its node.

Nothing recurses, so no nesting is too deep for it; what is too deep for cel-go is refused at the end. A rule
that only passes on the one rule it consists of builds nothing, and a chain of such rules, of which the
grammar has nine for every operand, is taken in one step that is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from function.cel.errors import Mistake
from function.cel.syntax import lexer, macros
from function.cel.syntax.grammar import Reduction, Table, table
from function.cel.syntax.lexer import END, OPERANDS, Lexer, Token
from function.cel.syntax.literals import literal
from function.cel.syntax.nodes import (
    Call,
    Identifier,
    Item,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    Span,
    children,
    dotted,
)
from function.cel.syntax.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable

Symbols: TypeAlias = list[Any]
"""What the symbols of a rule stand for: tokens, nodes, lists of parts."""

MAX_BYTES = 10 * 1024
"""The API's limit on a selector."""
MAX_NESTING = 250
"""cel-go's limit on the depth of one grammar rule; parentheses, brackets and operators of one level count."""
TOO_DEEP = f"expression recursion limit exceeded: {MAX_NESTING}"

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
MARKERS = [
    "relation_lt",
    "relation_le",
    "relation_gt",
    "relation_ge",
    "relation_eq",
    "relation_ne",
    "relation_in",
    "addition_add",
    "addition_sub",
    "multiplication_mul",
    "multiplication_div",
    "multiplication_mod",
]
"""The rules of an operator and its left side."""
PASSING = frozenset(
    [
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
        "primary",
    ]
)
OPENING, CLOSING = frozenset({"LPAR", "LSQB", "LBRACE"}), frozenset({"RPAR", "RSQB", "RBRACE"})
SEPARATORS = frozenset({"AND", "OR", "QMARK", "COLON", "COMMA"})
BINDING = (
    frozenset({"DOT", "LSQB"}),
    frozenset({"STAR", "SLASH", "PERCENT"}),
    frozenset({"PLUS", "MINUS"}),
    frozenset({"LT", "LE", "GT", "GE", "EQ", "NE", "IN"}),
    SEPARATORS,
)
"""What follows an operand, from the tightest binding to the loosest. A chain of one nests on its left."""
BINDING_OF = {kind: rank for rank, kinds in enumerate(BINDING) for kind in kinds}

_settled: dict[tuple[int, int, str], int] = {}
"""The state that a chain of passing rules ends in: by the state below, the state and the next token."""


def parse(source: str, *, quoted_fields: bool = False) -> Node:
    """Return the tree of an expression; `quoted_fields` allows names in backticks. Raises Mistake."""
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise Mistake("Syntax error: half of a surrogate pair", error.start) from None
    if size > MAX_BYTES:
        raise Mistake(f"the expression is longer than {MAX_BYTES} bytes", 0)
    tokens = Lexer(source).tokens()
    if len(tokens) <= MAX_NESTING:
        return _Parser(quoted_fields=quoted_fields).run(tokens)
    _refuse_deep_tokens(tokens)
    root = _Parser(quoted_fields=quoted_fields).run(tokens)
    _refuse_deep_nodes(root)
    return root


def _refuse_deep_tokens(tokens: list[Token]) -> None:
    """Refuse deep brackets, and chains that nest on their left (`a.b[0]`, `1 + 1`), unparsed."""
    around, links, before = [], [0] * len(BINDING), ""
    for token in tokens:
        kind = token.kind
        if before in OPERANDS and kind in BINDING_OF:
            rank = BINDING_OF[kind]
            links[:rank] = [0] * rank
            links[rank] += kind not in SEPARATORS
            if links[rank] >= MAX_NESTING:
                raise Mistake(TOO_DEEP, token.start)
        if kind in OPENING:
            around.append(links)
            links = [0] * len(BINDING)
            if len(around) >= MAX_NESTING:
                raise Mistake(TOO_DEEP, token.start)
        elif kind in CLOSING and around:
            links = around.pop()
        before = kind


def _refuse_deep_nodes(root: Node) -> None:
    level, depth = [root], 1
    while level:
        if depth > MAX_NESTING:
            raise Mistake(TOO_DEEP, level[0].span.start)
        level = [child for node in level for child in children(node)]
        depth += 1


class _Chain:
    """The terms of a chain of `&&` or `||`, which make one node however many they are."""

    __slots__ = ("at", "end", "function", "start", "terms")

    def __init__(self, function: str, at: int, start: int, terms: list[Node]) -> None:
        self.function = function
        self.at = at
        self.start = start
        self.end = start
        self.terms = terms


class _Parser:
    """One run of the table over one text. `end` is where the last token that was taken ends."""

    __slots__ = ("end", "quoted_fields")

    def __init__(self, *, quoted_fields: bool) -> None:
        self.end = 0
        self.quoted_fields = quoted_fields

    def run(self, tokens: list[Token]) -> Node:
        """Return the node of the whole text. Raises Mistake."""
        actions, gotos, start, accepting = made = table()
        states, values, starts = [start], [], [0]
        for token in tokens:
            kind = token.kind
            while True:
                action = actions[states[-1]].get(kind)
                if isinstance(action, int):
                    states.append(action)
                    values.append(token)
                    starts.append(token.start)
                    self.end = token.end
                    break
                if action is None:
                    if kind == END and states[-1] == accepting:
                        return _node(values[0])
                    raise _unexpected(token)
                if action.is_unit and action.rule in PASSING:
                    states[-1] = _after_passing(made, states[-2], states[-1], kind)
                    continue
                length = action.length
                symbols = values[-length:]
                del values[-length:], states[-length:]
                if length > 1:
                    del starts[1 - length :]
                values.append(BUILDERS[action.rule](self, symbols, starts[-1]))
                states.append(gotos[states[-1]][action.rule])
        raise AssertionError("the last token is the end")

    def span(self, at: int, start: int) -> Span:
        """Return the span of a node that ends with the last token."""
        return Span(at, start, self.end)

    def ternary(self, symbols: Symbols, start: int) -> Node:
        condition, mark, one, _, other = symbols
        args = (_node(condition), _node(one), _node(other))
        return Call(self.span(mark.start, start), "_?_:_", None, args)

    def disjunction(self, symbols: Symbols, start: int) -> _Chain:
        return self.chain("_||_", symbols, start)

    def conjunction(self, symbols: Symbols, start: int) -> _Chain:
        return self.chain("_&&_", symbols, start)

    def chain(self, function: str, symbols: Symbols, start: int) -> _Chain:
        left, operator, right = symbols
        if type(left) is not _Chain or left.function != function:
            left = _Chain(function, operator.start, start, [_node(left)])
        left.terms.append(_node(right))
        left.end = self.end
        return left

    def marker(self, symbols: Symbols, _start: int) -> Symbols:
        """Keep the left side of an operator and the operator; the rule above brings the right side."""
        return symbols

    def binary(self, symbols: Symbols, start: int) -> Node:
        (left, operator), right = symbols
        return Call(self.span(operator.start, start), BINARY[operator.kind], None, (left, right))

    def run_of_one(self, symbols: Symbols, start: int) -> tuple[str, int, int]:
        """Count a run of `!` or `-`: what it is, how many, and where it begins."""
        if len(symbols) == 1:
            return (UNARY[symbols[0].kind], 1, start)
        function, count, at = symbols[0]
        return (function, count + 1, at)

    def unary(self, symbols: Symbols, start: int) -> Node:
        """Build `!` and `-`; a run counts once if odd and not at all if even, as in cel-go."""
        (function, count, at), operand = symbols
        if count % 2 == 0:
            even: Node = operand
            return even
        return Call(self.span(at, start), function, None, (operand,))

    def field(self, symbols: Symbols, _start: int) -> str:
        (token,) = symbols
        if token.kind != lexer.QUOTED_IDENTIFIER:
            return str(token.text)
        if not self.quoted_fields:
            raise Mistake("unsupported syntax: '`'", token.start)
        return str(token.text[1:-1])

    def select(self, symbols: Symbols, start: int) -> Node:
        operand, dot, field = symbols
        return Select(self.span(dot.start, start), operand, field)

    def optional_select(self, symbols: Symbols, start: int) -> Node:
        operand, dot, _, field = symbols
        span = self.span(dot.start, start)
        return Call(span, "_?._", None, (operand, Literal(span, field, STRING)))

    def index(self, symbols: Symbols, start: int) -> Node:
        operand, bracket, key, _ = symbols
        return Call(self.span(bracket.start, start), "_[_]", None, (operand, _node(key)))

    def optional_index(self, symbols: Symbols, start: int) -> Node:
        operand, bracket, _, key, _ = symbols
        return Call(self.span(bracket.start, start), "_[?_]", None, (operand, _node(key)))

    def method(self, symbols: Symbols, start: int) -> Node:
        target, _, name, opening, *rest = symbols
        args = tuple(rest[0]) if len(rest) > 1 else ()
        return macros.expand(Call(self.span(opening.start, start), str(name.text), target, args))

    def function(self, symbols: Symbols, start: int) -> Node:
        name, opening, *rest = symbols
        args = tuple(rest[0]) if len(rest) > 1 else ()
        return macros.expand(Call(self.span(opening.start, start), _identifier(name), None, args))

    def rooted_function(self, symbols: Symbols, start: int) -> Node:
        _, name, opening, *rest = symbols
        args = tuple(rest[0]) if len(rest) > 1 else ()
        return Call(self.span(opening.start, start), _identifier(name), None, args)

    def name(self, symbols: Symbols, start: int) -> Node:
        (token,) = symbols
        return Identifier(self.span(start, start), _identifier(token))

    def rooted_name(self, symbols: Symbols, start: int) -> Node:
        return Identifier(self.span(start, start), f".{_identifier(symbols[1])}")

    def literal(self, symbols: Symbols, start: int) -> Node:
        (token,) = symbols
        return literal(token, self.span(start, start))

    def parentheses(self, symbols: Symbols, _start: int) -> Node:
        return _node(symbols[1])

    def arguments(self, symbols: Symbols, _start: int) -> list[Node]:
        """Collect the arguments of a call."""
        if len(symbols) == 1:
            return [_node(symbols[0])]
        nodes: list[Node] = symbols[0]
        nodes.append(_node(symbols[2]))
        return nodes

    def item(self, symbols: Symbols, _start: int) -> Item:
        return Item(_node(symbols[-1]), len(symbols) > 1)

    def entry(self, symbols: Symbols, _start: int) -> MapEntry:
        (key, optional), _, value = symbols
        return MapEntry(key, _node(value), optional)

    def parts(self, symbols: Symbols, _start: int) -> Symbols:
        """Collect the items, entries or fields of a literal."""
        if len(symbols) == 1:
            return symbols
        parts: Symbols = symbols[0]
        parts.append(symbols[2])
        return parts

    def list_literal(self, symbols: Symbols, start: int) -> Node:
        items = symbols[1] if type(symbols[1]) is list else ()
        return ListLiteral(self.span(start, start), tuple(items))

    def map_literal(self, symbols: Symbols, start: int) -> Node:
        entries = symbols[1] if type(symbols[1]) is list else ()
        return MapLiteral(self.span(start, start), tuple(entries))

    def initializer(self, symbols: Symbols, _start: int) -> tuple[str, Node, bool]:
        *mark, field, _, value = symbols
        return (field, _node(value), bool(mark))

    def message(self, symbols: Symbols, start: int) -> Node:
        operand, brace, fields = symbols[:3]
        name = dotted(operand)
        if name is None:
            raise Mistake("Syntax error: a message needs a type name before its brace", brace.start)
        given = tuple(fields) if type(fields) is list else ()
        return MessageLiteral(self.span(brace.start, start), name, given)


def _after_passing(made: Table, below: int, state: int, kind: str) -> int:
    """Return the state after all rules that only pass on, from `state` above `below`."""
    settled = _settled.get((below, state, kind))
    if settled is None:
        settled = state
        action = made.actions[state].get(kind)
        while type(action) is Reduction and action.is_unit and action.rule in PASSING:
            settled = made.gotos[below][action.rule]
            action = made.actions[settled].get(kind)
        _settled[below, state, kind] = settled
    return settled


def _node(value: Any) -> Node:
    """Return the node that an expression stands for, now that it is whole."""
    if type(value) is _Chain:
        span = Span(value.at, value.start, value.end)
        return Call(span, value.function, None, tuple(value.terms))
    whole: Node = value
    return whole


def _identifier(token: Token) -> str:
    if token.text in RESERVED:
        raise Mistake(f"reserved identifier: {token.text}", token.start)
    return token.text


def _unexpected(token: Token) -> Mistake:
    if token.kind == END:
        return Mistake("Syntax error: the expression ends too early", token.start)
    return Mistake(f"Syntax error: unexpected {token.text!r}", token.start)


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
BUILDERS: dict[str, Callable[[_Parser, Symbols, int], Any]] = {
    "expr": _Parser.ternary,
    "conditionalor": _Parser.disjunction,
    "conditionaland": _Parser.conjunction,
    "relation": _Parser.binary,
    "addition": _Parser.binary,
    "multiplication": _Parser.binary,
    **dict.fromkeys(MARKERS, _Parser.marker),
    "unary": _Parser.unary,
    "unary_not": _Parser.run_of_one,
    "unary_neg": _Parser.run_of_one,
    "field": _Parser.field,
    "member_dot": _Parser.select,
    "member_optional_dot": _Parser.optional_select,
    "member_index": _Parser.index,
    "member_optional_index": _Parser.optional_index,
    "member_dot_arg": _Parser.method,
    "member_object": _Parser.message,
    "ident": _Parser.name,
    "dot_ident": _Parser.rooted_name,
    "ident_arg": _Parser.function,
    "dot_ident_arg": _Parser.rooted_function,
    "paren_expr": _Parser.parentheses,
    "literal": _Parser.literal,
    "exprlist": _Parser.arguments,
    "item": _Parser.item,
    "items": _Parser.parts,
    "entry": _Parser.entry,
    "mapinits": _Parser.parts,
    "fieldinit": _Parser.initializer,
    "fieldinits": _Parser.parts,
    "list_lit": _Parser.list_literal,
    "map_lit": _Parser.map_literal,
}

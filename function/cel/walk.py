"""The walk over the parse tree: from the parser's rules to nodes.

It does not recurse, so no nesting is too deep for it; what is too deep for cel-go is refused here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeAlias

import lark

from function.cel import macros
from function.cel.descent import descend, each
from function.cel.errors import Mistake
from function.cel.literals import literal, word
from function.cel.nodes import (
    Call,
    Entry,
    Item,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Name,
    Node,
    Select,
    Span,
    dotted,
)
from function.cel.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable

Tree: TypeAlias = Any
"""A `lark.Tree`; what its children are depends on its rule."""

Place: TypeAlias = tuple[Tree, int]
"""A tree and how deep it stands."""
NodeSteps: TypeAlias = Generator[Place, Node, Node]

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
NOT_A_FIELD = frozenset({"true", "false", "null", "in"})
CHAINS = {"conditionalor": ("_||_", "||"), "conditionaland": ("_&&_", "&&")}
OPERATORS = {
    "relation_lt": ("_<_", "<"),
    "relation_le": ("_<=_", "<="),
    "relation_gt": ("_>_", ">"),
    "relation_ge": ("_>=_", ">="),
    "relation_eq": ("_==_", "=="),
    "relation_ne": ("_!=_", "!="),
    "relation_in": ("@in", "in"),
    "addition_add": ("_+_", "+"),
    "addition_sub": ("_-_", "-"),
    "multiplication_mul": ("_*_", "*"),
    "multiplication_div": ("_/_", "/"),
    "multiplication_mod": ("_%_", "%"),
}
UNARY = {"unary_not": "!_", "unary_neg": "-_"}
WRAPPERS = frozenset(
    {"expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member"}
    | {"primary", "paren_expr"}
)


def walk(source: str, tree: Tree) -> Node:
    """Return the node of a whole parse tree. Raises Mistake."""
    root: Node = descend(_Walk(source).rule, (tree, 1))
    return root


class _Walk:
    """One walk over one parse tree."""

    def __init__(self, source: str) -> None:
        self.source = source

    def rule(self, wanted: Place) -> Node | NodeSteps:
        """Return the node of a tree, or the steps to it."""
        tree, depth = wanted
        while len(tree.children) == 1 and tree.data in WRAPPERS and isinstance(tree.children[0], lark.Tree):
            tree = tree.children[0]
        if depth > MAX_NESTING:
            raise Mistake(TOO_DEEP, tree.meta.start_pos)
        return BUILDERS[tree.data](self, tree, depth + 1)

    def span(self, tree: Tree, at: int | None = None) -> Span:
        start = tree.meta.start_pos
        return Span(start if at is None else at, start, tree.meta.end_pos)

    def after(self, tree: Tree, symbol: str) -> int:
        """Return where `symbol` stands after `tree`."""
        end = tree.end_pos if isinstance(tree, lark.Token) else tree.meta.end_pos
        return self.source.find(symbol, end or 0)

    def ternary(self, tree: Tree, depth: int) -> NodeSteps:
        at = self.after(tree.children[0], "?")
        return Call(self.span(tree, at), "_?_:_", None, (yield from _nodes(tree.children, depth)))

    def chain(self, tree: Tree, depth: int) -> NodeSteps:
        """Build one n-ary node of a whole chain of `&&` or `||`."""
        rule, terms, current = tree.data, [], tree
        while current.data == rule and len(current.children) == 2:  # noqa: PLR2004 - left and right
            terms.append(current.children[1])
            current = current.children[0]
        function, symbol = CHAINS[rule]
        terms.append(current)
        return Call(
            self.span(tree, self.after(current, symbol)),
            function,
            None,
            (yield from _nodes(terms[::-1], depth)),
        )

    def operator(self, tree: Tree, depth: int) -> NodeSteps:
        """Build the left-deep nodes of a chain of binary operators of one level."""
        steps, current = [], tree
        while current.data == tree.data and len(current.children) == 2:  # noqa: PLR2004 - left and right
            marker, right = current.children
            current = marker.children[0]
            steps.append((*OPERATORS[marker.data], current, right))
        depth += len(steps) - 1
        made = yield current, depth
        for function, symbol, left, right in reversed(steps):
            at = self.after(left, symbol)
            span = Span(at, tree.meta.start_pos, right.meta.end_pos)
            made = Call(span, function, None, (made, (yield right, depth)))
            depth -= 1
        return made

    def unary(self, tree: Tree, depth: int) -> NodeSteps:
        """Build `!` and `-`; a run of one of them counts once if odd and not at all if even, as in cel-go."""
        runs: list[tuple[str, Tree, int]] = []
        current = tree
        while current.data == "unary" and len(current.children) == 2:  # noqa: PLR2004 - operator and operand
            function = UNARY[current.children[0].data]
            if runs and runs[-1][0] == function:
                runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
            else:
                runs.append((function, current, 1))
            current = current.children[1]
        made = yield current, depth + len(runs) - 1
        for function, at, count in reversed(runs):
            if count % 2:
                made = Call(self.span(at), function, None, (made,))
        return made

    def field(self, token: lark.Token) -> str:
        if token.value in NOT_A_FIELD:
            raise Mistake(f"Syntax error: {token.value!r} cannot be a field name", token.start_pos or 0)
        return str(token.value)

    def select(self, tree: Tree, depth: int) -> NodeSteps:
        operand, name = tree.children
        return Select(self.span(tree, self.after(operand, ".")), (yield operand, depth), self.field(name))

    def optional_select(self, tree: Tree, depth: int) -> NodeSteps:
        operand, name = tree.children
        span = self.span(tree, self.after(operand, "."))
        return Call(span, "_?._", None, ((yield operand, depth), Literal(span, self.field(name), STRING)))

    def index(self, tree: Tree, depth: int) -> NodeSteps:
        function = "_[_]" if tree.data == "member_index" else "_[?_]"
        return Call(
            self.span(tree, self.after(tree.children[0], "[")),
            function,
            None,
            (yield from _nodes(tree.children, depth)),
        )

    def method(self, tree: Tree, depth: int) -> NodeSteps:
        target, name, *rest = tree.children
        span = self.span(tree, self.after(name, "("))
        function = self.field(name)
        return macros.expand(
            Call(
                span,
                function,
                (yield target, depth),
                (yield from _nodes(rest[0].children if rest else [], depth)),
            )
        )

    def function(self, tree: Tree, depth: int) -> NodeSteps:
        name, *rest = tree.children
        self.identifier(name)
        return macros.expand(
            Call(
                self.span(tree, self.after(name, "(")),
                self.field(name),
                None,
                (yield from _nodes(rest[0].children if rest else [], depth)),
            )
        )

    def identifier(self, token: lark.Token) -> str:
        if token.value in RESERVED:
            raise Mistake(f"reserved identifier: {token.value}", token.start_pos or 0)
        return str(token.value)

    def name(self, tree: Tree, _depth: int) -> Node:
        token, span = tree.children[0], self.span(tree)
        return word(token.value, span) or Name(span, self.identifier(token))

    def rooted_name(self, tree: Tree, _depth: int) -> Node:
        return Name(self.span(tree), self.field(tree.children[0]))

    def literal(self, tree: Tree, _depth: int) -> Node:
        return literal(tree.children[0], self.span(tree))

    def list_literal(self, tree: Tree, depth: int) -> NodeSteps:
        parts = [row[-1] for row in _unchained(tree.children, 2)]
        values = yield from _nodes([part.children[-1] for part in parts], depth)
        items = zip(values, (len(part.children) > 1 for part in parts), strict=True)
        return ListLiteral(self.span(tree), tuple(Item(value, optional) for value, optional in items))

    def map_literal(self, tree: Tree, depth: int) -> NodeSteps:
        entries = []
        for *_, key, value in _unchained(tree.children, 3):
            optional = len(key.children) == 2  # noqa: PLR2004 - the mark and the key
            entries.append(Entry((yield key.children[-1], depth), (yield value, depth), optional))
        return MapLiteral(self.span(tree), tuple(entries))

    def message(self, tree: Tree, depth: int) -> NodeSteps:
        operand, *rest = tree.children
        rows = _unchained(rest, 3)
        values = yield from _nodes([row[-1] for row in rows], depth)
        name = dotted((yield operand, depth))
        span = self.span(tree, self.after(operand, "{"))
        if name is None:
            raise Mistake("Syntax error: a message needs a type name before its brace", span.at)
        return Message(span, name, tuple(zip([str(row[-2]) for row in rows], values, strict=True)))


def _nodes(trees: list[Tree], depth: int) -> Generator[Place, Node, tuple[Node, ...]]:
    return tuple((yield from each((tree, depth) for tree in trees)))


def _unchained(children: list[Tree], width: int) -> list[list[Tree]]:
    """Return the rows of a left-recursive list rule, first row first, without recursion."""
    rows: list[list[Tree]] = []
    current = children[0] if children else None
    while current is not None:
        rows.append(current.children)
        current = current.children[0] if len(current.children) == width else None
    return rows[::-1]


BUILDERS: dict[str, Callable[[_Walk, Tree, int], Node | NodeSteps]] = {
    "expr": _Walk.ternary,
    "conditionalor": _Walk.chain,
    "conditionaland": _Walk.chain,
    "relation": _Walk.operator,
    "addition": _Walk.operator,
    "multiplication": _Walk.operator,
    "unary": _Walk.unary,
    "member_dot": _Walk.select,
    "member_optional_dot": _Walk.optional_select,
    "member_index": _Walk.index,
    "member_optional_index": _Walk.index,
    "member_dot_arg": _Walk.method,
    "member_object": _Walk.message,
    "ident": _Walk.name,
    "dot_ident": _Walk.rooted_name,
    "ident_arg": _Walk.function,
    "dot_ident_arg": _Walk.function,
    "literal": _Walk.literal,
    "list_lit": _Walk.list_literal,
    "map_lit": _Walk.map_literal,
}

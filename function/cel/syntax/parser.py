"""Parse a selector: the table of `grammar` runs once over the tokens, and `builders` makes the nodes.

Nothing recurses, so no nesting is too deep for it; what is too deep for cel-go is refused at the end. A rule
that only passes on the one rule it consists of builds nothing, and a chain of such rules, of which the
grammar has nine for every operand, is taken in one step that is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

from function.cel.syntax.builders import BUILDERS, Builder, whole
from function.cel.syntax.grammar import table
from function.cel.syntax.lexer import END, OPERANDS, Lexer, Token
from function.cel.syntax.nodes import Node, children
from function.cel.values import Mistake

# Walk down a tree without recursion: however deep a selector nests, Python's stack does not grow.
#
# A rule is a generator: it yields what it wants to know about (a child), is sent the answer, and returns
# its own.

Wanted = TypeVar("Wanted")

DescentRule: TypeAlias = Callable[[Wanted], Any]
"""From what is wanted to its answer, or to the steps that yield what they want and return the answer."""


def descend(rule: DescentRule[Wanted], root: Wanted) -> Any:
    """Return the answer of the rule for the root, answering what each step yields on the way."""
    answer = rule(root)
    if not isinstance(answer, GeneratorType):
        return answer
    stack: list[Generator[Wanted, Any, Any]] = [answer]
    answer = None
    while stack:
        try:
            wanted = stack[-1].send(answer)
        except StopIteration as done:
            stack.pop()
            answer = done.value
            continue
        answer = rule(wanted)
        if isinstance(answer, GeneratorType):
            stack.append(answer)
            answer = None
    return answer


def collect(items: Iterable[Wanted]) -> Generator[Wanted, Any, list[Any]]:
    """Ask for all items and return the answers, with `yield from`."""
    answers = []
    for item in items:
        answer = yield item
        answers.append(answer)
    return answers


MAX_BYTES = 10 * 1024
"""The API's limit on a selector."""
MAX_NESTING = 250
"""cel-go's limit on the depth of one grammar rule; parentheses, brackets and operators of one level count."""
TOO_DEEP = f"expression recursion limit exceeded: {MAX_NESTING}"

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
        return _run(tokens, Builder(quoted_fields=quoted_fields))
    _refuse_deep_tokens(tokens)
    root = _run(tokens, Builder(quoted_fields=quoted_fields))
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


def _run(tokens: list[Token], builder: Builder) -> Node:
    """Return the node of the whole text. Raises Mistake."""
    made = table()
    actions, gotos = made.actions, made.gotos
    states, values, starts = [made.start], [], [0]
    for token in tokens:
        kind = token.kind
        while True:
            action = actions[states[-1]].get(kind)
            if isinstance(action, int):
                states.append(action)
                values.append(token)
                starts.append(token.start)
                builder.end = token.end
                break
            if action is None:
                if kind == END and states[-1] == made.accepting:
                    return whole(values[0])
                raise _unexpected(token)
            if action.passes:
                states[-1] = made.passed(states[-2], states[-1], kind)
                continue
            length = action.length
            symbols = values[-length:]
            del values[-length:], states[-length:]
            if length > 1:
                del starts[1 - length :]
            values.append(BUILDERS[action.rule](builder, symbols, starts[-1]))
            states.append(gotos[states[-1]][action.rule])
    raise AssertionError("the last token is the end")


def _unexpected(token: Token) -> Mistake:
    if token.kind == END:
        return Mistake("Syntax error: the expression ends too early", token.start)
    return Mistake(f"Syntax error: unexpected {token.text!r}", token.start)

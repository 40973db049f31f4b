"""Parse a selector: the grammar of cel-python, run by a loop that does not recurse.

Why a parser of our own runs another's grammar: cel-python has one parser per process, and making it raises
the recursion limit of the process. Its grammar is right but for what cel-go has added since (optional syntax,
trailing commas), which `hack/cel_table.py` adds. lark makes the LALR(1) table of it ahead of time; `_run`
runs the table over the tokens, and `builders` makes the nodes.

Nothing recurses, so no nesting is too deep for it; what is too deep for cel-go (`MAX_NESTING`) is refused,
by tokens before anything is built and by nodes at the end. A rule that only passes on the one rule it
consists of builds nothing, and a chain of such rules, of which the grammar has nine for every operand, is
taken in one step that is remembered.

`descend` walks down a tree the same way, without recursion, for every room that needs a walk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from pathlib import Path
from types import GeneratorType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from function.cel.syntax.builders import BUILDERS, Builder, whole
from function.cel.syntax.lexer import END, OPERANDS, Lexer, Token
from function.cel.syntax.nodes import Node, children
from function.cel.values import Mistake

# The table: LALR(1), of cel-python's grammar with the rules changed where cel-go's differ.
#
# It is data, written by `python -m hack.cel_table` and held against the grammar by a test: making it takes
# longer than most commands, and longer than a server's first call.

TABLE = Path(__file__).with_name("table.json")


class Reduction(NamedTuple):
    """The end of a rule in the table: the rule's name and the number of symbols it replaces."""

    rule: str
    length: int
    passes: bool
    """Whether the rule only passes on the one rule it consists of, and nothing is to be built."""


class Table(NamedTuple):
    """The parser's table: for each state, by the next token, a state to shift to or a rule to reduce."""

    actions: list[dict[str, int | Reduction]]
    gotos: list[dict[str, int]]
    start: int
    accepting: int
    settled: dict[tuple[int, int, str], int]
    """Results of `passed`: by the state below, the state and the next token."""

    def passed(self, below: int, state: int, kind: str) -> int:
        """Return the state after all rules that only pass on, from `state` above `below`.

        Remembered: every operand ends nine such rules, and each time in the same few states.
        """
        settled = self.settled.get((below, state, kind))
        if settled is None:
            settled = state
            action = self.actions[state].get(kind)
            while type(action) is Reduction and action.passes:
                settled = self.gotos[below][action.rule]
                action = self.actions[settled].get(kind)
            self.settled[below, state, kind] = settled
        return settled


@lru_cache(maxsize=1)
def table() -> Table:
    """Return the table of the dialect, read once. A negative action reduces the rule of that place."""
    plain = json.loads(TABLE.read_text(encoding="utf-8"))
    rules = [Reduction(*rule) for rule in plain["rules"]]
    return Table(
        [{kind: n if n >= 0 else rules[~n] for kind, n in row.items()} for row in plain["actions"]],
        plain["gotos"],
        plain["start"],
        plain["accepting"],
        {},
    )


# Walk down a tree without recursion: however deep a selector nests, Python's stack does not grow.
#
# A rule is a generator: it yields what it wants to know about (a child), is sent the answer, and returns
# its own.

Wanted = TypeVar("Wanted")

DescentRule: TypeAlias = Callable[[Wanted], Any]
"""From what is wanted to its answer, or to the steps that yield what they want and return the answer."""


def descend(rule: DescentRule[Wanted], root: Wanted) -> Any:
    """Return the answer of the rule for the root, answering what each step yields on the way.

    A stack of generators in place of Python's own: `answer` is what the generator on top waits for. A rule
    that needs nothing from below returns its answer at once and costs no generator.
    """
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
"""Tokens after an operand, from the tightest binding to the loosest. A chain of one nests on its left."""
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
    """Refuse deep brackets, and chains that nest on their left (`a.b[0]`, `1 + 1`), unparsed.

    cel-go counts each level of its recursive grammar, and a chain of one operator nests as deep as it is
    long. `links` holds how long the chain at each binding is; an operator that binds less tightly ends the
    tighter chains before it, and a bracket begins anew.
    """
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
    """Refuse what nests deeper than cel-go's parser goes, however it is written."""
    level, depth = [root], 1
    while level:
        if depth > MAX_NESTING:
            raise Mistake(TOO_DEEP, level[0].span.start)
        level = [child for node in level for child in children(node)]
        depth += 1


def _run(tokens: list[Token], builder: Builder) -> Node:
    """Return the node of the whole text. Raises Mistake.

    The usual loop of an LR parser: shift a token, or reduce the symbols of a rule to one. `states`, `values`
    and `starts` are its stack in three parts: where the table is, what each symbol stands for, where it
    begins in the text.
    """
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
                if kind == END:
                    raise Mistake("Syntax error: the expression ends too early", token.start)
                raise Mistake(f"Syntax error: unexpected {token.text!r}", token.start)
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

"""Parse a selector: the grammar of cel-python, run by a loop that does not recurse.

Why a parser of our own runs another's grammar: cel-python has one parser per process, and making it raises
the recursion limit of the process. Its grammar is right but for what cel-go has added since (optional syntax,
trailing commas), which `PATCHES` adds. lark makes the LALR(1) table of it, once for the process; `_run` runs
the table over the tokens, and `builders` makes the nodes.

Nothing recurses, so no nesting is too deep for it; what is too deep for cel-go (`MAX_NESTING`) is refused,
by tokens before anything is built and by nodes at the end. A rule that only passes on the one rule it
consists of builds nothing, and a chain of such rules, of which the grammar has nine for every operand, is
taken in one step that is remembered.

`descend` walks down a tree the same way, without recursion, for every room that needs a walk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from types import GeneratorType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import lark

from function.cel.syntax.builders import BUILDERS, Builder, whole
from function.cel.syntax.lexer import END, OPERANDS, OPERATORS, Lexer, Token
from function.cel.syntax.nodes import Node, children
from function.cel.values import Mistake

# The grammar: cel-python's own, read from its package, with the rules changed where cel-go's differ.
#
# Each change names the rule it replaces and must find it exactly once, so that another cel-python fails here,
# loudly, and not in a selector. lark makes the LALR(1) table of it, once for the process; `parser` runs the
# table. Nothing here touches cel-python's own parser, which is one per process.


PATCHES = (
    (  # Optional field and index.
        "| member_object | primary",
        "| member_object | member_optional_dot | member_optional_index | primary",
    ),
    (
        'member_dot     : member "." IDENT',
        'member_dot     : member "." field\nfield          : IDENT | QUOTED_IDENT',
    ),
    (
        'member_index   : member "[" expr "]"',
        (
            'member_index   : member "[" expr "]"\n'
            'member_optional_dot : member "." "?" field\n'
            'member_optional_index : member "[" "?" expr "]"'
        ),
    ),
    (  # A run of one operator is one rule, and no rule mixes the two.
        "unary          : member\n               | unary_not unary\n               | unary_neg unary",
        "unary          : member | unary_not member | unary_neg member",
    ),
    ('unary_not      : "!"', 'unary_not      : "!" | unary_not "!"'),
    ('unary_neg      : "-"', 'unary_neg      : "-" | unary_neg "-"'),
    (  # Trailing commas and optional elements. Left recursion keeps the comma LALR(1).
        'list_lit       : "[" [exprlist] "]"',
        (
            'list_lit       : "[" "]" | "[" "," "]" | "[" items "]" | "[" items "," "]"\n'
            'items          : item | items "," item\n'
            'item           : expr | "?" expr'
        ),
    ),
    ('exprlist       : expr ("," expr)*', 'exprlist       : expr | exprlist "," expr'),
    (
        'map_lit        : "{" [mapinits] "}"',
        'map_lit        : "{" "}" | "{" "," "}" | "{" mapinits "}" | "{" mapinits "," "}"',
    ),
    (
        'mapinits       : expr ":" expr ("," expr ":" expr)*',
        'mapinits       : entry | mapinits "," entry\nentry          : item ":" expr',
    ),
    (
        'fieldinits     : IDENT ":" expr ("," IDENT ":" expr)*',
        (
            'fieldinits     : fieldinit | fieldinits "," fieldinit\n'
            'fieldinit      : field ":" expr | "?" field ":" expr'
        ),
    ),
    (
        'member_object  : member "{" [fieldinits] "}"',
        (
            'member_object  : member "{" "}" | member "{" "," "}"'
            ' | member "{" fieldinits "}" | member "{" fieldinits "," "}"'
        ),
    ),
)
_TERMINALS_START = "// Terminals. Order of some definitions altered to help lark."
_DECLARED = """
%declare IDENT QUOTED_IDENT INT_LIT UINT_LIT FLOAT_LIT STRING_LIT MLSTRING_LIT BYTES_LIT BOOL_LIT NULL_LIT
"""
"""The terminals that the lexer tells apart itself; its strings are all STRING_LIT."""


def packaged_grammar() -> str:
    """Return cel-python's grammar as it ships."""
    return Path(str(distribution("cel-python").locate_file("celpy/cel.lark"))).read_text(encoding="utf-8")


def patched(grammar: str) -> str:
    """Return the grammar of the dialect. Raises RuntimeError unless each rule to change is there once."""
    rules, separator, _ = grammar.partition(_TERMINALS_START)
    if not separator:
        raise RuntimeError("cel-python's grammar changed: its terminals are not where they were")
    for old, new in PATCHES:
        if rules.count(old) != 1:
            raise RuntimeError(f"cel-python's grammar changed: {old!r} is there {rules.count(old)} times")
        rules = rules.replace(old, new)
    named = "".join(f'\n{name}: "{text}"' for text, name in [*OPERATORS.items(), ("in", "IN")])
    return rules + named + _DECLARED


PASSING = frozenset(
    {"expr", "conditionalor", "conditionaland", "relation", "addition"}
    | {"multiplication", "unary", "member", "primary"}
)
"""The rules that one operand passes through, from an expression down to what has no operator."""


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
    """What `passed` found: by the state below, the state and the next token."""

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
    """Return the table of the dialect, built once: the server pays for it before its first request."""
    built = lark.Lark(
        patched(packaged_grammar()), parser="lalr", lexer="basic", start="expr", maybe_placeholders=False
    )
    made = built.parser.parser._parse_table  # noqa: SLF001 - lark has no other way to it
    (start,) = made.start_states.values()
    (accepting,) = made.end_states.values()
    reductions: dict[lark.grammar.Rule, Reduction] = {}
    actions: list[dict[str, int | Reduction]] = []
    gotos: list[dict[str, int]] = []
    for state in range(len(made.states)):
        row: dict[str, int | Reduction] = {}
        goto: dict[str, int] = {}
        for symbol, (action, argument) in made.states[state].items():
            if action is not lark.parsers.lalr_analysis.Shift:
                # The end of a rule. One object stands for a rule in all states, so that rows share it.
                symbols, name = argument.expansion, str(argument.origin.name)
                passes = len(symbols) == 1 and not symbols[0].is_term and name in PASSING
                row[symbol] = reductions.setdefault(argument, Reduction(name, len(symbols), passes))
            elif symbol == END or symbol.isupper():
                row[symbol] = argument
            else:
                goto[symbol] = argument
        actions.append(row)
        gotos.append(goto)
    return Table(actions, gotos, start, accepting, {})


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

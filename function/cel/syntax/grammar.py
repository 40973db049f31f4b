"""The grammar: cel-python's own, read from its package, with the rules changed where cel-go's differ.

Each change names the rule it replaces and must find it exactly once, so that another cel-python fails here,
loudly, and not in a selector. lark makes the LALR(1) table of it, once for the process; `parser` runs the
table. Nothing here touches cel-python's own parser, which is one per process.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import lark

from function.cel.syntax.lexer import END, OPERATORS

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
    """Return the table of the dialect, built once."""
    built = lark.Lark(
        patched(packaged_grammar()), parser="lalr", lexer="basic", start="expr", maybe_placeholders=False
    )
    return _translated(built.parser.parser._parse_table)  # noqa: SLF001 - lark has no other way to it


def _translated(made: lark.parsers.lalr_analysis.IntParseTable) -> Table:
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
                row[symbol] = reductions.setdefault(argument, _reduction(argument))
            elif symbol == END or symbol.isupper():
                row[symbol] = argument
            else:
                goto[symbol] = argument
        actions.append(row)
        gotos.append(goto)
    return Table(actions, gotos, start, accepting, {})


def _reduction(rule: lark.grammar.Rule) -> Reduction:
    symbols = rule.expansion
    name = str(rule.origin.name)
    passes = len(symbols) == 1 and not symbols[0].is_term and name in PASSING
    return Reduction(name, len(symbols), passes)

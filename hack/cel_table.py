"""Write the parser's table anew: `python -m hack.cel_table`.

The grammar is cel-python's own, read from its package, with the rules changed where cel-go's differ. Each
change names the rule it replaces and must find it exactly once, so that another cel-python fails here, and
in a test, loudly. lark makes the LALR(1) table of it; `function/cel/syntax/parser.py` runs the table.

States are numbered in the order in which they are reached from the start, so that one grammar has one file.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import lark

from function.cel.syntax.lexer import END, OPERATORS
from function.cel.syntax.parser import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def table() -> str:
    """Return the table: rules, and for each state what follows each symbol, one on a line."""
    built = lark.Lark(
        patched(packaged_grammar()), parser="lalr", lexer="basic", start="expr", maybe_placeholders=False
    )
    made = built.parser.parser._parse_table  # noqa: SLF001 - lark has no other way to it
    (first,), (last,) = made.start_states.values(), made.end_states.values()
    states, rules = [first], dict[tuple[str, int, bool], int]()
    actions, gotos = list[dict[str, int]](), list[dict[str, int]]()
    for state in states:  # Grows on the way.
        row, goto = dict[str, int](), dict[str, int]()
        for symbol, (action, argument) in sorted(made.states[state].items()):
            if action is not lark.parsers.lalr_analysis.Shift:
                row[symbol] = ~rules.setdefault(_reduction(argument), len(rules))
                continue
            if argument not in states:
                states.append(argument)
            holder = row if symbol == END or symbol.isupper() else goto
            holder[symbol] = states.index(argument)
        actions.append(row)
        gotos.append(goto)
    parts = {"rules": rules, "actions": actions, "gotos": gotos}
    blocks = ",\n".join(f'"{name}": [\n{_lines(rows)}\n]' for name, rows in parts.items())
    return f'{{\n"start": 0,\n"accepting": {states.index(last)},\n{blocks}\n}}\n'


def _lines(rows: Iterable[object]) -> str:
    return ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)


def _reduction(rule: lark.grammar.Rule) -> tuple[str, int, bool]:
    symbols, name = rule.expansion, str(rule.origin.name)
    return name, len(symbols), len(symbols) == 1 and not symbols[0].is_term and name in PASSING


def main() -> int:
    """Write the table."""
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

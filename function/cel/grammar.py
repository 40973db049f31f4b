"""The grammar: cel-python's own, read from its package, with the rules changed where cel-go's differ.

Each change names the rule it replaces and must find it exactly once, so that another cel-python fails here,
loudly, and not in a selector. The parser is private to this package: cel-python's own is one per process.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path

import lark

PATCHES = (
    (  # Optional field and index.
        "| member_object | primary",
        "| member_object | member_optional_dot | member_optional_index | primary",
    ),
    (
        'member_index   : member "[" expr "]"',
        (
            'member_index   : member "[" expr "]"\n'
            'member_optional_dot : member "." "?" IDENT\n'
            'member_optional_index : member "[" "?" expr "]"'
        ),
    ),
    (  # Trailing commas and optional elements. Left recursion keeps the comma LALR(1).
        'list_lit       : "[" [exprlist] "]"',
        (
            'list_lit       : "[" "]" | "[" "," "]" | "[" items "]" | "[" items "," "]"\n'
            'items          : item | items "," item\n'
            "item           : expr | optional_mark expr\n"
            'optional_mark  : "?"'
        ),
    ),
    (
        'map_lit        : "{" [mapinits] "}"',
        'map_lit        : "{" "}" | "{" "," "}" | "{" mapinits "}" | "{" mapinits "," "}"',
    ),
    (
        'mapinits       : expr ":" expr ("," expr ":" expr)*',
        'mapinits       : item ":" expr | mapinits "," item ":" expr',
    ),
    (
        'fieldinits     : IDENT ":" expr ("," IDENT ":" expr)*',
        'fieldinits     : IDENT ":" expr | fieldinits "," IDENT ":" expr',
    ),
    (
        'member_object  : member "{" [fieldinits] "}"',
        'member_object  : member "{" [fieldinits] "}" | member "{" fieldinits "," "}"',
    ),
    *(  # A rule of one child is that child: the tree is a tenth of the size.
        (f"\n{rule:<15}:", f"\n?{rule:<14}:")
        for rule in (
            "expr",
            "conditionalor",
            "conditionaland",
            "relation",
            "addition",
            "multiplication",
            "unary",
            "member",
            "primary",
        )
    ),
    (  # true, false and null are names that the tree builder turns into literals.
        " | BYTES_LIT\n               | BOOL_LIT | NULL_LIT",
        " | BYTES_LIT",
    ),
)

_ESCAPE = r"\\[abfnrtv\"'\\?`]|\\[0-3][0-7][0-7]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"

TERMINALS = r"""
MLSTRING_LIT.5 : /[rR]\"\"\"(.|\n|\r)*?\"\"\"/ | /[rR]'''(.|\n|\r)*?'''/
               | /\"\"\"(ESCAPE|[^\\])*?\"\"\"/ | /'''(ESCAPE|[^\\])*?'''/
STRING_LIT.4   : /[rR]"[^"\n\r]*"/ | /[rR]'[^'\n\r]*'/ | /"(ESCAPE|[^"\n\r\\])*"/ | /'(ESCAPE|[^'\n\r\\])*'/
BYTES_LIT.6    : /[bB]/ MLSTRING_LIT | /[bB]/ STRING_LIT
FLOAT_LIT.3    : /-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|-?[0-9]+[eE][+-]?[0-9]+|-?\.[0-9]+([eE][+-]?[0-9]+)?/
UINT_LIT.2     : /-?0x[0-9a-fA-F]+[uU]|-?[0-9]+[uU]/
INT_LIT.1      : /-?0x[0-9a-fA-F]+|-?[0-9]+/
IDENT          : /[_a-zA-Z][_a-zA-Z0-9]*/
WHITESPACE     : /[\t\n\f\r ]+/
COMMENT        : /\/\/[^\n]*/
%ignore WHITESPACE
%ignore COMMENT
""".replace("ESCAPE", _ESCAPE.replace("/", r"\/"))

_TERMINALS_START = "// Terminals. Order of some definitions altered to help lark."


def packaged_grammar() -> str:
    """Return cel-python's grammar as it ships."""
    return Path(str(distribution("cel-python").locate_file("celpy/cel.lark"))).read_text(encoding="utf-8")


def patched(grammar: str) -> str:
    """Return the grammar of the dialect. Raises RuntimeError unless each rule to change is there once."""
    rules, found, _ = grammar.partition(_TERMINALS_START)
    if not found:
        raise RuntimeError("cel-python's grammar changed: its terminals are not where they were")
    for old, new in PATCHES:
        if rules.count(old) != 1:
            raise RuntimeError(f"cel-python's grammar changed: {old!r} is there {rules.count(old)} times")
        rules = rules.replace(old, new)
    return rules + TERMINALS


@lru_cache(maxsize=1)
def parser() -> lark.Lark:
    """Return the parser of the dialect, built once."""
    return lark.Lark(
        patched(packaged_grammar()),
        parser="lalr",
        start="expr",
        propagate_positions=True,
        maybe_placeholders=False,
    )

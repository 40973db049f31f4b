"""The CEL dialect of Kubernetes DRA: a selector that selects a device in Kubernetes selects it here.

`syntax` makes a tree of a text, with the grammar of cel-python. `checker` finds its types and what it reads.
`evaluator` makes closures of it and runs them on a `subject`: a device, a cluster or a node pool. `library`
has the functions, what they charge in the units of Kubernetes, and what differs between releases; `cost`
estimates the most that a selector may charge.
`compile_device` goes all that way to a `Selector`, `bind_device` makes a device a `Subject`, and
`Selector.evaluate` says match, no match, error or cost.
"""

from function.cel.checker.references import (
    Comparison,
    Reference,
    ReleaseRequirement,
    published,
    respelt_operators,
    suggest,
)
from function.cel.library import DIALECTS
from function.cel.selector import (
    Conjunct,
    Outcome,
    OutcomeMemo,
    Selector,
    compile_cluster,
    compile_device,
    compile_node,
)
from function.cel.subject import Subject, bind_cluster, bind_device, bind_node
from function.cel.values import CompileError

__all__ = [
    "DIALECTS",
    "Comparison",
    "CompileError",
    "Conjunct",
    "Outcome",
    "OutcomeMemo",
    "Reference",
    "ReleaseRequirement",
    "Selector",
    "Subject",
    "bind_cluster",
    "bind_device",
    "bind_node",
    "compile_cluster",
    "compile_device",
    "compile_node",
    "published",
    "respelt_operators",
    "suggest",
]

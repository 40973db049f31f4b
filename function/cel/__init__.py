"""The CEL dialect of Kubernetes DRA: a selector that selects a device in Kubernetes selects it here.

Why an implementation of our own: no engine for Python has the dialect. cel-python lacks optional syntax,
types, the libraries that Kubernetes adds and its bound on cost, and disagrees with Kubernetes on one selector
in six of those that were compared. A replica that is placed on a false match never gets its devices.

    text -> syntax (tree) -> checker (types, overloads, what is read) -> evaluator (closures) -> Selector
    device, cluster, node pool -> Subject;  Selector.evaluate(Subject) -> match, no match, error or cost

`syntax` makes a tree of a text, with the grammar of cel-python. `checker` finds its types and what it reads.
`evaluator` makes closures of it and runs them on a `subject`: a device, a cluster or a node pool. `library`
has the functions, what they charge in the units of Kubernetes, and what differs between releases; `cost`
estimates the most that a selector may charge.

Truth is the Go code that a workload cluster runs: cel-go, the API server's libraries, and the allocator's
`dynamic-resource-allocation/cel`. Where a rule follows one of their files, the file is named. Thousands of
cases with Go's own answers hold it (`tests/cel`); where the Go code has a fault, so has this.

Limits: protobuf messages but for the well-known types, and named time zones, are refused with a clear error.
`docs/selectors.md` is the dialect as a user needs it.
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
    compile_selector,
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
    "compile_selector",
    "published",
    "respelt_operators",
    "suggest",
]

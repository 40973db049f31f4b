"""The DRA dialect of CEL, exactly: a selector that selects a device in Kubernetes selects it here.

cel-python parses (`grammar`, `syntax`, `macros`); the static check (`check`, `types`) and the closures
that evaluate (`generate`, `calls`, `paths`) are ours; `library` has the functions. `compile_device` turns
a text into a `Selector`, `bind_device` a device into a `Subject`, `Selector.evaluate` says match, no
match, error or cost.
"""

from function.cel.comparisons import Comparison
from function.cel.dialects import DIALECTS
from function.cel.errors import CompileError
from function.cel.evaluations import Evaluations
from function.cel.references import Reference, published
from function.cel.selector import Conjunct, Outcome, Selector, compile_cluster, compile_device, compile_node
from function.cel.subject import Subject, bind_cluster, bind_device, bind_node
from function.cel.suggest import suggest
from function.cel.versions import Requirement

__all__ = [
    "DIALECTS",
    "Comparison",
    "CompileError",
    "Conjunct",
    "Evaluations",
    "Outcome",
    "Reference",
    "Requirement",
    "Selector",
    "Subject",
    "bind_cluster",
    "bind_device",
    "bind_node",
    "compile_cluster",
    "compile_device",
    "compile_node",
    "published",
    "suggest",
]

"""`x-kubernetes-validations`, evaluated by our own CEL; a rule that has no value is a bad rule."""

from __future__ import annotations

from typing import Any

from function.cli.admission.structural import outcome


def holds(rule: str, value: Any, old: Any = None) -> bool:
    """Whether the rule is true of the value."""
    holding = outcome(rule, value, old)
    assert holding.kind in ("match", "nomatch"), f"{rule}: {holding.message}"
    return holding.matched

"""The errors of a selector: a mistake in its text, an error while it runs, too much work."""

from __future__ import annotations

CARET_WINDOW = 120
"""How many characters of a long line are shown around the caret."""


class Mistake(Exception):
    """A mistake in the text of a selector, at a character offset."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class CompileError(Exception):
    """The API server would refuse this selector. `line` and `column` count from 1, in characters."""

    def __init__(self, message: str, source: str, at: int) -> None:
        before = source[:at]
        self.message = message
        self.source = source
        self.line = before.count("\n") + 1
        self.column = at - (before.rfind("\n") + 1) + 1
        super().__init__(f"{self.line}:{self.column}: {message}")

    def caret(self) -> str:
        """Return the source line and, under it, a caret at the place; a long line is cut around it."""
        text = self.source.split("\n")[self.line - 1].rstrip("\r")
        start = max(0, self.column - 1 - CARET_WINDOW // 2) if len(text) > CARET_WINDOW else 0
        shown = text[start : start + CARET_WINDOW]
        pad = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1 - start])
        return f"{shown}\n{pad}^"


class EvaluationError(Exception):
    """The expression has no value on this subject. `&&` and `||` absorb it, the ternary does not."""


class CostExceeded(Exception):
    """The evaluation did more work than Kubernetes allows. Nothing absorbs it."""


class Aborted(Exception):
    """Go's code fails as a whole, which is an error of the evaluation that nothing absorbs."""


def no_overload(what: str = "") -> EvaluationError:
    """Return the error of an operation that does not exist for the types it met."""
    return EvaluationError(f"no such overload: {what}" if what else "no such overload")

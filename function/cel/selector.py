"""A compiled selector: what it reads, what it says about a subject, and its terms one by one.

A text goes through `syntax.parser`, `checker.check` and `evaluator.generator`, and becomes a `Selector`. That
takes some tenths of a millisecond, so a selector is compiled once for all who have it at a time (`_kept`); an
evaluation takes some microseconds, and is made once for all subjects of which the selector reads the same
(`OutcomeMemo`).

Outcomes are four (`Outcome.kind`): match, no match, error and cost. To Kubernetes an error aborts the
allocation of the claim. Here it selects nothing on that device, and is not a silent "no match": the scheduler
reports it, because a claim with this selector would stay unallocated on the workload cluster.

A release decides what a text means. The subject's release is asked first, since one fleet has clusters of
several: a selector is compiled for its own release and, when it meets another, for that one too (`_reading`).
Where another release refuses it, that is the outcome on every subject of such a cluster.

`Conjunct` is one term of a selector's top-level `&&`, evaluated alone: hints find out which term rejects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import field
from functools import cached_property, partial
from weakref import WeakValueDictionary

from function.boundary import frozen
from function.cel import values
from function.cel.checker import state
from function.cel.checker.check import check
from function.cel.checker.references import (
    Comparison,
    Projection,
    Reference,
    ReleaseRequirement,
    comparison,
    paths,
    references,
    requirements,
)
from function.cel.checker.state import Checked, Environment
from function.cel.cost import estimate
from function.cel.evaluator.calls import Frame, Run
from function.cel.evaluator.generator import generate
from function.cel.library import DEFAULT, DIALECTS, Dialect
from function.cel.library.charges import LIMIT, STEPS
from function.cel.library.quantity import FORM_MATTERS
from function.cel.subject import ReadPath, Subject
from function.cel.syntax.nodes import Call, Node, children
from function.cel.syntax.parser import parse
from function.cel.values import BUDGET, Aborted, CompileError, CostExceeded, EvaluationError, Mistake

LONG, RECENT, RECENT_LONG = 512, 256, 12
"""Selectors kept compiled though nobody has them, and of those longer than `LONG` characters."""
COMPILED = 70
"""Bytes that a compiled selector takes for each of its characters, at most."""


@frozen
class Outcome:
    """The outcome of a selector: `match`, `nomatch`, `error` or `cost`, with a message for the last two."""

    kind: str
    message: str = ""
    dear: bool = field(default=False, compare=False)
    """Whether finding it out drew on units that evaluations share: then it holds for one call only."""

    @property
    def matched(self) -> bool:
        """Tell whether the subject is selected."""
        return self.kind == "match"


MATCH = Outcome("match")
NO_MATCH = Outcome("nomatch")


def _too_much(limit: int) -> Outcome:
    """Return the outcome of an evaluation that Kubernetes would have stopped."""
    return Outcome("cost", f"the evaluation costs more than {limit} units")


class Program:
    """An expression, or one term of it, ready to run. Immutable; any number of threads may run it at once."""

    def __init__(self, source: str, checked: Checked, root: Node) -> None:
        """Compile one expression, or one term of a checked one.

        Its own copies of quantities are made only where it can tell their forms apart (`_forms_matter`).
        """
        self.source = source
        self._whole, self._index = source, -1
        """The text of the whole selector, and the place of a term in it: what another release compiles."""
        self.release = checked.dialect.release
        self.checked = checked
        self._root = root
        self._forms = _forms_matter(root)
        code = generate(checked, root, forms=self._forms)
        self._run: Run = code.run
        self._cost = code.cost
        """Units that it surely costs."""
        self._slots = [None] * (checked.size - values.FIRST_SLOT)
        self._others: dict[str, Program] = {}
        """The same text as other releases read it: they live as long as this one."""

    @cached_property
    def _paths(self) -> frozenset[ReadPath]:
        """Find the paths that are read, on first use: only memos and hints need them."""
        return paths(self.checked, self._root)

    @cached_property
    def reads(self) -> tuple[Reference, ...]:
        """The references that are read by a name that is written out, sorted by it."""
        return tuple(sorted(references(self.checked.environment, self._paths), key=str))

    @cached_property
    def _projection(self) -> Projection:
        """Compute once what tells two subjects apart for this expression."""
        return Projection(self.checked.environment, self._paths)

    def evaluate(self, subject: Subject, limit: int = LIMIT) -> Outcome:  # noqa: PLR0911 - one for each outcome
        """Return what the expression says about a subject, within so many units. Never raises.

        A smaller limit changes no outcome but to `cost`. What surely is charged is taken off before anything
        runs; an error that comes after the budget is spent is cost, because Kubernetes stops there.
        """
        if subject.problem:
            return Outcome("error", subject.problem)
        if subject.release not in ("", self.release):
            reading = self._reading(subject.release)
            return reading if isinstance(reading, Outcome) else reading.evaluate(subject, limit)
        if self._cost > limit:
            return _too_much(limit)
        frame = self._frame(subject, limit)
        try:
            value = self._run(frame)
        except CostExceeded:
            return _too_much(limit)
        except RecursionError:
            return Outcome("error", "the caller left no room on the stack")
        except UnicodeEncodeError:
            return Outcome("error", "a value holds half of a surrogate pair, which is no text")
        except (EvaluationError, Aborted) as error:
            return _too_much(limit) if frame[BUDGET] < 0 else Outcome("error", str(error))
        if frame[BUDGET] < 0:
            return _too_much(limit)
        if value is True:
            return MATCH
        return (
            NO_MATCH
            if value is False
            else Outcome("error", f"the result is a {values.type_name(value)}, not a bool")
        )

    def cost(self, subject: Subject) -> int:
        """Return the units that an evaluation costs, also where it ends in an error."""
        frame = self._frame(subject)
        with suppress(EvaluationError, Aborted, CostExceeded):
            self._run(frame)
        return LIMIT - int(frame[BUDGET])

    def _frame(self, subject: Subject, limit: int = LIMIT) -> Frame:
        """Return a fresh frame: the subject, what is left of the budget and of the steps, the slots."""
        owned = subject.owned() if self._forms else subject
        return [owned, limit - self._cost, min(STEPS, limit), *self._slots]

    def projection(self, subject: Subject) -> Hashable:
        """Return what of the subject decides the outcome; equal projections have equal outcomes."""
        if subject.release in ("", self.release):
            return self._projection.of(subject)
        reading = self._reading(subject.release)
        return (subject.release, None if isinstance(reading, Outcome) else reading.projection(subject))

    def _reading(self, release: str) -> Program | Outcome:
        """Return the same text as another release reads it, or what that says of every subject."""
        try:
            if release not in self._others:  # Each release has its own tree of the whole.
                whole = _kept(self._whole, self.checked.environment, release)
                self._others[release] = whole if self._index < 0 else whole.conjuncts[self._index]
            return self._others[release]
        except CompileError as error:
            return Outcome("error", f"Kubernetes {release} refuses this selector: {error}")


class Conjunct(Program):
    """One of the terms that a selector joins with `&&`."""

    def __init__(self, whole: Selector, index: int, root: Node) -> None:
        """Take one term of a selector, with the text that stands for it alone."""
        super().__init__(whole.source[root.span.start : root.span.end].strip(), whole.checked, root)
        # Not the selector itself, which has its terms: a cycle would stay until the collector comes by.
        self._whole, self._index = whole.source, index

    @property
    def comparison(self) -> Comparison | None:
        """The comparison of something published with a literal that the term is, if it is one."""
        return comparison(self.checked, self._root, self._whole)


class Selector(Program):
    """A whole selector."""

    @property
    def size(self) -> int:
        """Bytes that it takes, about, with what other releases make of it."""
        return COMPILED * (len(self.source) + 50) * (1 + len(DIALECTS))

    @cached_property
    def conjuncts(self) -> tuple[Conjunct, ...]:
        """The terms of the top-level `&&`, in order; the whole if there is none."""
        return tuple(Conjunct(self, index, node) for index, node in enumerate(_terms(self._root)))

    @cached_property
    def requirements(self) -> tuple[ReleaseRequirement, ...]:
        """The words that not every supported Kubernetes release knows, with the release that brought them."""
        return requirements(self.checked)

    @cached_property
    def gated(self) -> str:
        """Why an API server refuses this by default, whose gate DRAListTypeAttributes is off; empty if not.

        Matching takes lists of attributes and `includes` as they are meant: who writes them has the gate on.
        """
        if self.checked.environment is not state.DEVICE:
            return ""
        try:
            check(self.checked.root, state.DEVICE_WITHOUT_LISTS, self.checked.dialect.without("includes"))
        except Mistake as mistake:
            return mistake.message
        return ""

    def estimate(self) -> int | None:
        """Return the most units that the API server expects this to cost; above LIMIT it may refuse.

        Advice, not a verdict. None for selectors over anything but a device, which no API server sees.
        """
        return estimate(self.checked) if self.checked.environment is state.DEVICE else None

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return the terms that compare something published with a literal, in order."""
        compared = (comparison(self.checked, term, self.source) for term in _terms(self._root))
        return tuple(term for term in compared if term is not None)


def _terms(root: Node) -> list[Node]:
    """Return the terms of a conjunction, also those of conjunctions in parentheses."""
    terms: list[Node] = []
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, Call) and node.function == "_&&_":
            todo += reversed(node.args)
        else:
            terms.append(node)
    return terms


def _forms_matter(root: Node) -> bool:
    """Tell whether an expression can tell the forms of a quantity apart, so that it needs its own copies."""
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, Call) and node.function in FORM_MATTERS:
            return True
        todo += children(node)
    return False


def compiled(source: str, level: Environment, dialect: Dialect = DIALECTS[DEFAULT]) -> Selector:
    """Return the selector of a text. Raises CompileError, with the place."""
    try:
        root = parse(source, quoted_fields=dialect.quoted_fields)
        return Selector(source, check(root, level, dialect), root)
    except Mistake as mistake:
        raise CompileError(mistake.message, source, mistake.at) from None
    except RecursionError:
        raise CompileError("the caller left no room on the stack", source, 0) from None


_compiled: WeakValueDictionary[tuple[str, Environment, str], Selector] = WeakValueDictionary()
_recent: deque[Selector] = deque(maxlen=RECENT)
_recent_long: deque[Selector] = deque(maxlen=RECENT_LONG)


def _kept(source: str, level: Environment, release: str) -> Selector:
    """Return what `compiled` does: compiled once for all who have it at a time, and for the next few.

    A deployment keeps its selectors, and what they take is charged with it (`Selector.size`). Only a few
    are kept for nobody: a hint tries the same one on many subjects.
    """
    key = (source, level, release)
    selector = _compiled.get(key)
    if selector is None:
        selector = _compiled[key] = compiled(source, level, DIALECTS[release])
        (_recent if len(source) <= LONG else _recent_long).append(selector)
    return selector


_LEVELS = {level.variable: level for level in (state.DEVICE, state.CLUSTER, state.NODE)}


def compile_selector(variable: str, source: str, release: str = DEFAULT) -> Selector:
    """Return the selector of a text over `device`, `cluster` or `node`, as a Kubernetes release reads it.

    No API server reads those over clusters and nodes, so no release has another reading of them. Raises
    CompileError, with the place.
    """
    level = _LEVELS[variable]
    return _kept(source, level, release if level is state.DEVICE else DEFAULT)


compile_device = partial(compile_selector, "device")
compile_cluster = partial(compile_selector, "cluster")
compile_node = partial(compile_selector, "node")


class OutcomeMemo:
    """A memory of outcomes and two counters. For one request and one thread.

    Each selector is evaluated once for all subjects of which it reads the same: a thousand devices of one
    model differ in their index and bus address, and no real selector reads those.
    """

    def __init__(self, evaluate: Callable[[Program, Subject], Outcome] | None = None) -> None:
        """`evaluate` runs a program on a subject where the memo has no outcome.

        The scheduler hands in one that draws on a budget of the whole call.
        """
        self.evaluated = 0
        self.reused = 0
        self._evaluate = evaluate or Program.evaluate
        self._outcomes: dict[tuple[Program, Hashable], Outcome] = {}

    def outcome(self, selector: Program, subject: Subject) -> Outcome:
        """Return what the selector says about the subject, evaluating it only if nobody has asked yet."""
        key = (selector, selector.projection(subject))
        outcome = self._outcomes.get(key)
        if outcome is not None:
            self.reused += 1
            return outcome
        self.evaluated += 1
        outcome = self._outcomes[key] = self._evaluate(selector, subject)
        return outcome

"""Calls: logic that absorbs errors, the lazy ones, and everything that computes its arguments first.

The room has two files: this one for calls and what they stand on, `generator` for all other nodes. Begin
there.

In order:

- `Build`, `Code` and `constant` are what every rule takes and makes;
- reading the variable in one look-up, and what Kubernetes does to an optional on its way through a name;
- choosing the overload that runs: at compile time where the types are certain, else by looking at the values;
- folding: what is settled before anything runs;
- the calls themselves. `call_code` says which kind one is.

What is charged, and in which order things are computed, follows cel-go's `interpreter/planner.go`,
`interpretable.go`, `attributes.go` and `decorators.go`, named at the branches. A closure's body is the hot
path of a placement: closures are written out for the common numbers of arguments, and a comprehension in one
would be another frame.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from function.cel.checker.state import Checked
from function.cel.library import formats, network, operators, quantity, strings, urls
from function.cel.library.charges import AFTER, absorbed, dispatched, looked, spend
from function.cel.library.declarations import CallCost, Overload
from function.cel.library.operators import KEYS, contains, equal, optional_element
from function.cel.syntax import nodes
from function.cel.syntax.nodes import BOOL, DYN, Call, Identifier, Node, Select, Type, operands, written
from function.cel.syntax.parser import collect
from function.cel.values import (
    BUDGET,
    SUBJECT,
    Aborted,
    Duration,
    EvaluationError,
    Map,
    Mistake,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    no_overload,
    type_name,
)


class Build(NamedTuple):
    """One expression to generate."""

    checked: Checked
    forms: bool
    """Whether it can tell the forms of a quantity apart, so that every evaluation needs its own copies."""

    def owning(self, overload: Overload) -> Callable[..., Value]:
        """Return what runs an overload; where forms matter a parsed quantity is the evaluation's own."""
        run = overload.run
        if self.forms and overload.name == "quantity":
            return lambda text: run(text).copy()
        return run


Frame: TypeAlias = list[Value]
Run: TypeAlias = Callable[[Frame], Value]

UNKNOWN: Any = object()


class Code(NamedTuple):
    """The result of compiling a node: the code, its certain cost, and its value where that is known.

    `certain` is the type that the value surely has, dyn where nothing is sure. The check alone makes no type
    certain: it lets the first overload of cel-go bind a parameter that nothing else binds, whatever the value
    is, and lets null pass for many types.
    """

    run: Run
    cost: int = 0
    constant: Value = UNKNOWN
    certain: Type = DYN

    @property
    def is_constant(self) -> bool:
        """Tell whether the value is known before any evaluation."""
        return self.constant is not UNKNOWN


CodeSteps: TypeAlias = Generator[Node, Code, Code]


def constant(value: Value, certain: Type = DYN) -> Code:
    """Return the code of a known value."""
    return Code(lambda _frame: value, 0, value, certain)


def is_path(node: Node) -> bool:
    """Tell whether Kubernetes reads the node as a path (an `Attribute` of cel-go).

    Its value arrives as it is.
    """
    if isinstance(node, Identifier | Select):
        return True
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._", "_?_:_")


def relative(operand: Node) -> int:
    """Return the unit that Kubernetes charges for reaching into something computed (`relativeAttribute`)."""
    if isinstance(operand, Identifier | Select):
        return 0
    if isinstance(operand, Call) and operand.function in ("_[_]", "_[?_]", "_?._"):
        return 0
    return 1


# Read the variable in one look-up: `device.attributes["gpu.nvidia.com"].architecture` is one, not four.

_MISSING = object()


def path_code(checked: Checked, node: Node) -> Run | None:
    """Return what reads a single value of the variable in one step, or None if it is no such path."""
    path = checked.value_path(node)
    if path is None:
        return None

    def run(frame: Frame) -> Value:
        value = frame[SUBJECT].values.get(path, _MISSING)
        if value is _MISSING:
            raise frame[SUBJECT].lacks(path)
        return value

    return run


def present(operand: Value, field: str) -> bool:
    """Return `has(operand.field)`: false for what has no fields, an error for a list.

    An unknown domain of a device is there, as an empty map: `find` counts the default.
    """
    kind = type(operand)
    if kind is Map:
        return operand.find(field) is not None
    if kind is Optional:
        return bool(operand.present) and present(operand.value, field)
    if kind is list:
        raise EvaluationError("unsupported index type 'string' in list")
    return False


# Drop what Kubernetes drops of an optional when it passes a name or a branch of `? :`.
#
# cel-go takes the optional apart there, down to a value of Go, and puts it together again. On the way
# optionals in optionals become one, a type becomes its name, and a value of Kubernetes' own types cannot be
# put together again: the optional is there, and an error to whoever reads it. A map forgets what it has for
# keys that are not there. Kubernetes 1.37 mends all that.

_FOREIGN = frozenset({quantity.Quantity, quantity.Semver, network.Ip, network.Cidr, urls.Url})
_MAYBE = frozenset({"optional", "dyn"})


def passed(value: Value) -> Value:
    """Return what comes out on the other side."""
    if type(value) is not Optional or not value.present or value.fails:
        return value
    held = value.value
    while type(held) is Optional:
        if held.fails:
            return held
        held = held.value if held.present else None
    if type(held) is TypeValue:
        held = held.name
    if type(held) in _FOREIGN:
        return Optional(fails=f"unsupported conversion of an optional {type_name(held)}")
    if type(held) is Map and held.default is not None:
        held = Map(held.entries, of_texts=held.of_texts)
    return Optional(held)


def qualified(checked: Checked, operand: Node, run: Run) -> Run:
    """Return what runs the operand of a selection or index; a computed optional is taken apart there too."""
    return run if is_path(operand) else passing(run, checked, operand)


def passing(run: Run, checked: Checked, node: Node) -> Run:
    """Return what runs a node and passes its value on; itself for what is certainly no optional."""
    if checked.dialect.optionals_keep_values or checked.types[node].name not in _MAYBE:
        return run

    def through(frame: Frame) -> Value:
        value = run(frame)
        return passed(value) if type(value) is Optional else value

    return through


# Choose the overload that runs: at compile time from the types, at run time from the values of dyn.

CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "timestamp": Timestamp,
    "duration": Duration,
    "list": list,
    "map": Map,
    "optional": Optional,
    "type": TypeValue,
    nodes.QUANTITY.name: quantity.Quantity,
    nodes.SEMVER.name: quantity.Semver,
    nodes.IP.name: network.Ip,
    nodes.CIDR.name: network.Cidr,
    nodes.URL.name: urls.Url,
    nodes.FORMAT.name: formats.Format,
}
"""The class that values of a type have; any may come for a type that is not here."""


def direct(overloads: tuple[Overload, ...], kinds: Sequence[Type]) -> Overload | None:
    """Return the overload that surely admits values of these types, or None.

    A type says only what is certain of the value, whatever the check inferred: dyn where nothing is.
    """
    if len(overloads) > 1:
        return None
    only = overloads[0]
    return only if not only.guarded or all(map(_covers, only.parameters, kinds)) else None


def _covers(parameter: Type, certain: Type) -> bool:
    """Tell whether a value that certainly has a type passes cel-go's look at it for a parameter."""
    if parameter.name not in CLASSES:
        return True
    if parameter.name not in ELEMENTS:
        return parameter.name == certain.name
    return parameter.name == certain.name and all(map(_covers, parameter.args, certain.args))


ELEMENTS = frozenset({"list", "map"})
"""Types whose elements cel-go looks at, but at the first only, before it runs an overload."""


def admission(parameters: tuple[Type, ...]) -> Callable[[list[Value]], bool]:
    """Return the test whether values may be given for these parameters.

    cel-go's `matchesRuntimeSignature`: of a list it looks at the first element, of a map at the first entry,
    and at nothing deeper.
    """
    wanted = [(at, test) for at, test in enumerate(map(_test, parameters)) if test is not None]
    if len(wanted) == 1:
        ((position, only),) = wanted
        return lambda values: only(values[position])

    def admits(values: list[Value]) -> bool:
        return all(test(values[at]) for at, test in wanted)

    return admits


def _test(kind: Type) -> Callable[[Value], bool] | None:
    """Return the test whether a value may be given for a type; None if every value may."""
    cls = CLASSES.get(kind.name)
    if cls is None:
        return None
    if cls is list and (element := _test(kind.args[0])) is not None:
        return lambda value: type(value) is list and (not value or element(value[0]))
    if cls is Map and any(key_and_value := [_test(arg) for arg in kind.args]):
        return lambda value: type(value) is Map and _first_fits(value, key_and_value)
    return lambda value: type(value) is cls


def _first_fits(value: Map, tests: list[Callable[[Value], bool] | None]) -> bool:
    """Tell whether the first entry of a map passes, as cel-go looks at no other."""
    first = next(iter(value.entries.values()), None)
    return first is None or all(test is None or test(part) for test, part in zip(tests, first, strict=True))


# Fold constants at compile time: conversions, literal quantities, sets of literals. cel-go does the first and
# the last as well (`OptConstantFold` in `decorators.go`), so a bad constant is a mistake of the text; a bad
# literal quantity is not folded there, and stays an error of the evaluation.

CONVERSIONS = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
PATTERNS = frozenset({"matches", "find", "findAll"})
LITERALS = frozenset({"quantity", "semver"})
_SETTABLE = frozenset({bool, float, int, UInt, str})
_UNHASHABLE = frozenset({"bytes", "kubernetes.Semver"})
"""Values that make cel-go's look-up in a set of literals fail."""


def folded(build: Build, node: Call, overloads: tuple[Overload, ...], codes: list[Code]) -> Code | None:
    """Return the code of a call that can be settled now, or None. Raises Mistake for a bad constant.

    A literal pattern is only checked here: matching finds it compiled (`strings.compiled`).
    """
    name = node.function
    if name in CONVERSIONS and len(codes) == 1 and codes[0].is_constant:
        return constant(_converted(node, overloads, codes[0].constant))
    if name in LITERALS and all(code.is_constant for code in codes):
        return _literal(build, overloads, codes)
    if name == "@in" and type(codes[1].constant) is list:
        return _membership(codes[0], codes[1].constant)
    if name in PATTERNS and len(codes) > 1 and codes[1].is_constant:
        _check_pattern(node, codes[1].constant)
    return None


def _converted(node: Call, overloads: tuple[Overload, ...], value: Value) -> Value:
    """Convert a constant now: what cannot be converted is refused with the text."""
    for overload in overloads:
        if admission(overload.parameters)([value]):
            try:
                return overload.run(value)
            except EvaluationError as error:
                at = (node.args or (node,))[0].span.at
                raise Mistake(f"invalid {node.function} argument: {error}", at) from None
    raise Mistake(f"no such overload: {node.function}({type_name(value)})", node.span.at)


def _literal(build: Build, overloads: tuple[Overload, ...], codes: list[Code]) -> Code | None:
    """Parse a literal quantity or version once. A bad one stays a runtime error, as in Kubernetes."""
    values = [code.constant for code in codes]
    (overload,) = overloads
    if not admission(overload.parameters)(values):
        return None
    try:
        value = overload.run(*values)
    except EvaluationError:
        return None
    units = overload.cost if isinstance(overload.cost, int) else overload.cost(value, *values)
    if build.forms and overload.name == "quantity":
        return Code(lambda _frame: value.copy(), units, certain=overload.result)
    return Code(lambda _frame: value, units, certain=overload.result)


def _membership(code: Code, elements: list[Value]) -> Code | None:
    """Settle `x in [literals]`: cel-go makes a set of the literals, and does not even look at x for none.

    `maybeOptimizeSetMembership` in `decorators.go`. The look-up is charged nothing there, and so here.
    """
    if not elements:
        return constant(value=False, certain=BOOL)
    if not all(type(element) in _SETTABLE for element in elements):
        return None
    run, texts = code.run, frozenset(element for element in elements if type(element) is str)

    def test(frame: Frame) -> Value:
        """Ask the set for texts; for other types ask as Go does, which cannot hash every value."""
        value = run(frame)
        if type(value) is str:
            return value in texts
        if type_name(value) in _UNHASHABLE:
            raise Aborted(f"a {type_name(value)} cannot be looked up in a list of literals")
        return contains(value, elements)

    return Code(test, code.cost, certain=BOOL)


def _check_pattern(node: Call, pattern: Value) -> None:
    """Refuse a literal regular expression that does not compile (`MatchesRegexOptimization` in cel-go)."""
    if type(pattern) is not str:
        return
    try:
        strings.compiled(pattern)
    except EvaluationError as error:
        at = node.args[-1 if node.target is None else 0]
        raise Mistake(f"invalid {node.function} argument: {error}", at.span.at) from None


DECIDING = frozenset({"_==_", "_!=_", "@in"})
"""Operators that say true or false of anything."""
LAZY = frozenset({"or", "orValue"})
INDEXES = frozenset({"_[_]", "_[?_]"})
COMPILED_PATTERN = 1000
"""Units for compiling a regular expression that is computed."""
UNSURE: dict[str, CallCost] = {"@in": looked, "_[_]": 1, "_[?_]": 1}
"""Costs of operators whose overload only shows at run time, where the length does not tell."""
OPERATORS = operators.GENERIC.keys()
"""Functions whose overloads all run the same: they tell the types apart themselves."""


def call_code(build: Build, node: Call) -> CodeSteps:
    """Return the code of a call."""
    if node.function in ("_&&_", "_||_"):
        return _logic(node)
    if node.function == "_?_:_":
        return _choice(build, node)
    if node.function == "_?._":
        return _optional_select(build, node)
    if node.function == "_[_]":
        fused = path_code(build.checked, node)
        if fused is not None:
            return _fused(node, fused, build.checked.types[node])
    if node.function in LAZY and node.target is not None:
        return _alternative(build, node)
    return _eager(build, node)


def _fused(node: Call, run: Run, certain: Type) -> CodeSteps:
    """Charge for each step of a path that is read in one.

    The operand is compiled for its cost alone; what it runs is never called.
    """
    operand = yield node.args[0]
    return Code(run, operand.cost + 1, certain=certain)


def _logic(node: Call) -> CodeSteps:
    """Build `&&` or `||`: the first decisive term wins, an error loses against it wherever it stands.

    The first term is charged with whatever runs before it, the others where they run.
    """
    first, *rest = yield from collect(node.args)
    decisive = node.function == "_||_"
    terms = [(first.run, 0), *((code.run, code.cost) for code in rest)]
    return Code(lambda frame: decided(frame, terms, decisive), first.cost, certain=BOOL)


def decided(frame: Frame, terms: Iterable[tuple[Run, int]], decisive: bool) -> bool:  # noqa: FBT001 - it is the value
    """Return what terms decide together, each with the units it costs: the decisive one if any is.

    An error loses against a decisive term and wins against all others (`evalAnd`, `evalOr`). Of several
    errors the first is reported. `Aborted` and `CostExceeded` are no EvaluationError: nothing absorbs them.
    """
    error: EvaluationError | None = None
    for term, units in terms:
        frame[BUDGET] -= units
        try:
            value = term(frame)
        except EvaluationError as raised:
            absorbed(frame)
            error = error or raised
            continue
        if value is decisive:
            return bool(decisive)
        if type(value) is not bool:
            error = error or no_overload(f"{type_name(value)} is not a bool")
    if error is not None:
        raise error
    return not decisive


def _choice(build: Build, node: Call) -> CodeSteps:
    """Build `? :` (`conditionalAttribute`): one branch runs, and an error of the condition is the result."""
    condition, one, other = yield from collect(node.args)
    test = condition.run
    yes, no = (
        code.run if is_path(branch) else passing(code.run, build.checked, branch)
        for code, branch in zip((one, other), node.args[1:], strict=True)
    )
    yes_cost, no_cost = _branch_cost(one, node.args[1]), _branch_cost(other, node.args[2])

    def run(frame: Frame) -> Value:
        value = test(frame)
        if value is True:
            frame[BUDGET] -= yes_cost
            return yes(frame)
        if value is False:
            frame[BUDGET] -= no_cost
            return no(frame)
        raise no_overload(f"{type_name(value)} is not a bool")

    return Code(run, condition.cost)


def _branch_cost(code: Code, node: Node) -> int:
    """Return the cost of a branch: Kubernetes does not charge for the name that begins a path there."""
    path = isinstance(node, Identifier | Select) or (isinstance(node, Call) and node.function == "_[_]")
    return max(code.cost - 1, 0) if path else code.cost


def _optional_select(build: Build, node: Call) -> CodeSteps:
    """Build `a.?b`, which is charged a unit only where something is there."""
    operand, field = node.args
    code = yield operand
    run, name = qualified(build.checked, operand, code.run), written(field)

    def select(frame: Frame) -> Value:
        optional = optional_element(run(frame), name)
        if optional.present:
            frame[BUDGET] -= 1
        return optional

    return Code(select, code.cost + relative(operand))


def _alternative(build: Build, node: Call) -> CodeSteps:
    """Build `or` and `orValue`: the alternative runs only if the optional is empty.

    Up to Kubernetes 1.36 a receiver that is no optional is returned as it is; later it is an error.
    """
    strict = build.checked.dialect.alternatives_need_optionals
    optional, alternative = yield from collect(operands(node))
    first, second, units = optional.run, alternative.run, alternative.cost
    whole = node.function == "or"

    def run(frame: Frame) -> Value:
        value = first(frame)
        if type(value) is not Optional:
            if strict:
                raise no_overload(f"{type_name(value)}.{node.function}")
            return value
        if value.present:
            return value if whole else value.value
        frame[BUDGET] -= units
        return second(frame)

    return Code(run, optional.cost)


def _eager(build: Build, node: Call) -> CodeSteps:
    """Build a call that computes all of its arguments first, in order; an error of one is the result.

    Four ways, from the cheapest at run time: settled now; the one overload that is certain, with a fixed cost
    that is charged beforehand; the same with a cost that depends on the values; found by looking at the
    values.
    """
    nodes = node.args if node in build.checked.global_calls else operands(node)
    codes = yield from collect(nodes)
    overloads = build.checked.overloads[node]
    settled = folded(build, node, overloads, codes)
    if settled is not None:
        return settled
    units = sum(code.cost for code in codes)
    if node.function in PATTERNS and len(codes) > 1 and not codes[1].is_constant:
        units += COMPILED_PATTERN
    if node.function in INDEXES:
        index = codes[1]
        if index.is_constant and type(index.constant) not in KEYS:  # It can be neither a key nor a position.
            raise Mistake(f"invalid qualifier type: {type_name(index.constant)}", node.args[1].span.at)
        units += relative(nodes[0]) - isinstance(nodes[1], Identifier | Select)
    if node.function == "_==_" and isinstance(codes[1].constant, str):
        return Code(_equals_text(codes[0].run, codes[1].constant), units, certain=BOOL)
    kinds = [code.certain for code in codes]
    certain = _result(node.function, overloads, kinds)
    runs = [code.run for code in codes]
    if node.function in INDEXES:
        runs[0] = qualified(build.checked, nodes[0], runs[0])
    one = direct(overloads, kinds)
    if one is None and node.function in OPERATORS:
        return _operator(node.function, overloads, runs, units)._replace(certain=certain)
    if one is None:
        return Code(_dispatched(node.function, overloads, runs), units, certain=certain)
    run = build.owning(one)
    if isinstance(one.cost, int):
        compares = len(codes) == 2 and codes[1].is_constant  # noqa: PLR2004 - such as x > 0
        run = _with_constant(run, runs[0], codes[1].constant) if compares else _applied(run, runs)
        return Code(run, units + one.cost, certain=certain)
    return Code(_metered(run, one.cost, runs), units, certain=certain)


def _operator(name: str, overloads: tuple[Overload, ...], runs: list[Run], units: int) -> Code:
    """Build an operator on values whose types only show at run time.

    One function serves all of its overloads, so nothing has to be found. Kubernetes charges such a call one
    unit, because it does not know the overload either; what is long costs more here.
    """
    run, cost = (
        operators.GENERIC[name],
        overloads[0].cost if len(overloads) == 1 else UNSURE.get(name, dispatched),
    )
    if isinstance(cost, int):
        return Code(_applied(run, runs), units + cost)
    return Code(_metered(run, cost, runs), units)


def _result(name: str, overloads: tuple[Overload, ...], kinds: list[Type]) -> Type:
    """Return what is certain of the type of a call's result.

    What is certain lets the next call up run without looking. A generic overload promises nothing: its
    parameter may have been bound by the order of declarations and not by the value.
    """
    result = overloads[0].result
    if overloads[0].generic or any(overload.result != result for overload in overloads[1:]):
        return BOOL if name in DECIDING else DYN
    if name in OPERATORS and result != BOOL and kinds.count(result) != len(kinds):
        return DYN
    return result


def _equals_text(run: Run, text: str) -> Run:
    """Build `x == "literal"`, the commonest test of all."""
    length = len(text)

    def compare(frame: Frame) -> Value:
        """Charge a tenth of the shorter text, and compare other types by the general rule."""
        value = run(frame)
        if type(value) is str:
            frame[BUDGET] -= -(-min(len(value), length) // 10)
            return value == text
        frame[BUDGET] -= 1
        return equal(value, text)

    return compare


def _with_constant(call: Callable[..., Value], one: Run, value: Value) -> Run:
    return lambda frame: call(one(frame), value)


def _applied(call: Callable[..., Value], runs: list[Run]) -> Run:
    """Return what computes the arguments and calls."""
    if len(runs) == 1:
        (only,) = runs
        return lambda frame: call(only(frame))
    if len(runs) == 2:  # noqa: PLR2004 - the common numbers of arguments are written out, for speed
        one, two = runs
        return lambda frame: call(one(frame), two(frame))

    def run(frame: Frame) -> Value:
        values = []
        for part in runs:
            values.append(part(frame))  # noqa: PERF401 - a comprehension would be one more frame
        return call(*values)

    return run


def _metered(call: Callable[..., Value], units: Callable[..., int], runs: list[Run]) -> Run:
    """Return what computes the arguments, charges for what they are and calls."""
    charged = _charged(call, units)

    def run(frame: Frame) -> Value:
        values = []
        for part in runs:
            values.append(part(frame))  # noqa: PERF401 - a comprehension would be one more frame
        return charged(frame, values)

    return run


def _charged(call: Callable[..., Value], units: CallCost) -> Callable[[Frame, list[Value]], Value]:
    """Return what charges for a call and then makes it; after it where only the result tells the cost."""

    def fixed(frame: Frame, values: list[Value]) -> Value:
        spend(frame, int(units))  # type: ignore[arg-type]
        return call(*values)

    def before(frame: Frame, values: list[Value]) -> Value:
        spend(frame, units(None, *values))  # type: ignore[operator]
        return call(*values)

    def after(frame: Frame, values: list[Value]) -> Value:
        result = call(*values)
        spend(frame, units(result, *values))  # type: ignore[operator]
        return result

    if isinstance(units, int):
        return fixed
    return after if units in AFTER else before


def _dispatched(name: str, overloads: tuple[Overload, ...], runs: list[Run]) -> Run:
    """Return what computes the arguments and then finds the overload for what they turned out to be.

    cel-go does the same where the check left several (`evalVarArgs` and its like): the first that admits the
    values runs, so declarations stand in its order.
    """
    choices = [
        (admission(overload.parameters if overload.guarded else ()), _charged(overload.run, overload.cost))
        for overload in overloads
    ]

    def run(frame: Frame) -> Value:
        values = []
        for part in runs:
            values.append(part(frame))  # noqa: PERF401 - a comprehension would be one more frame
        for admits, charged in choices:
            if admits(values):
                return charged(frame, values)
        raise no_overload(f"{name}({', '.join(map(type_name, values))})")

    return run

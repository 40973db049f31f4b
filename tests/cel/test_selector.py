"""A selector as a value: what it reads, its terms, what to relax, and that nobody evaluates twice."""
# ruff: noqa: ANN001, E501, PERF401 - a case is one line

import threading
from collections.abc import Callable
from typing import Any

import pytest

from function.cel import (
    CompileError,
    OutcomeMemo,
    Reference,
    ReleaseRequirement,
    Subject,
    bind_cluster,
    bind_node,
    compile_cluster,
    compile_device,
    compile_node,
    published,
    selector as selector_module,
    suggest,
)
from function.cel.checker import state
from function.cel.selector import RECENT_LONG, compiled
from function.cel.syntax.parser import TABLE
from function.cel.values import EvaluationError
from hack import cel_table
from tests.cel.devices import B200, H100, H200, L4, MIXED, bound, says

GPU = "gpu.nvidia.com"
A = f'device.attributes["{GPU}"]'
C = f'device.capacity["{GPU}"]'

READS = [
    ("true", set()),
    ("device.driver == 'a'", {Reference("driver")}),
    (f"{A}.architecture == 'Hopper'", {Reference("attribute", GPU, "architecture")}),
    (f"{A}['architecture'].startsWith('H')", {Reference("attribute", GPU, "architecture")}),
    (f"has({A}.x)", {Reference("attribute", GPU, "x")}),
    (f"{A}.?x.orValue(true)", {Reference("attribute", GPU, "x")}),
    (f"{A}[?'x'].hasValue()", {Reference("attribute", GPU, "x")}),
    (f"{A}.x.y", {Reference("attribute", GPU, "x")}),
    (f"{C}.memory == {C}.other", {Reference("capacity", GPU, "memory"), Reference("capacity", GPU, "other")}),
    (f"'x' in {A}", {Reference("attribute", GPU)}),
    ("device.attributes.size() == 1", {Reference("attribute")}),
    ("device.attributes[device.driver].x", {Reference("attribute"), Reference("driver")}),
    (f"{A}.exists(k, k == 'x')", {Reference("attribute", GPU)}),
    (f"cel.bind(a, {A}, a.x)", {Reference("attribute", GPU)}),
    ("cel.bind(device, {'driver': 1}, device.driver == 1)", set()),
    ("[1].all(device, device == 1)", set()),
    ("device.allowMultipleAllocations", {Reference("allowMultipleAllocations")}),
    ("{1: device.driver}[1] == ''", {Reference("driver")}),
    ("optional.of(device.driver).optMap(x, x == '').value()", {Reference("driver")}),
    ("google.protobuf.StringValue{value: device.driver} == ''", {Reference("driver")}),
    (
        "device == device",
        {
            Reference("driver"),
            Reference("attribute"),
            Reference("capacity"),
            Reference("allowMultipleAllocations"),
        },
    ),
]


@pytest.mark.parametrize(("expression", "expected"), READS)
def test_what_a_selector_reads(expression: str, expected: set[Reference]) -> None:
    assert set(compile_device(expression).reads) == expected


PUBLISHED = [
    (Reference("driver"), "d"),
    (Reference("attribute", "d", "i"), "42"),
    (Reference("attribute", "d", "yes"), "true"),
    (Reference("attribute", "d", "v"), "1.2.3"),
    (Reference("attribute", "d", "ints"), "[3, 1, 2]"),
    (Reference("attribute", "d", "bools"), "[false, true]"),
    (Reference("capacity", "d", "q"), "80Gi"),
    (Reference("attribute", "d", "gone"), None),
    (Reference("attribute", "d"), None),
    (Reference("allowMultipleAllocations"), "false"),
]


@pytest.mark.parametrize(("reference", "expected"), PUBLISHED)
def test_what_a_device_publishes_under_a_reference(reference: Reference, expected: str | None) -> None:
    assert published(bound(MIXED), reference) == expected


def test_what_a_cluster_publishes_under_a_reference() -> None:
    assert published(the_cluster(), Reference("label", None, "region")) == "us-east-1"
    assert published(the_cluster(), Reference("attribute", None, "modelplane.ai/cost")) == "3"


def test_references_print_as_people_write_them() -> None:
    assert str(Reference("attribute", GPU, "architecture")) == f"{GPU}/architecture"
    assert str(Reference("driver")) == "driver"


def test_conjuncts_are_the_terms_as_written() -> None:
    selector = compile_device(
        f"{A}.architecture == 'Hopper' &&\n ({A}.index > 1 && has({A}.x)) && (true || false)"
    )
    terms = selector.conjuncts
    assert [term.source for term in terms] == [
        f"{A}.architecture == 'Hopper'",
        f"{A}.index > 1",
        f"has({A}.x)",
        "true || false",
    ]
    assert [term.evaluate(bound(H200)).kind for term in terms] == ["match", "match", "nomatch", "match"]
    assert set(terms[0].reads) == {Reference("attribute", GPU, "architecture")}
    assert selector.conjuncts is terms


def test_a_selector_without_terms_is_its_own() -> None:
    (term,) = compile_device("true || false").conjuncts
    assert term.source == "true || false"


def test_a_term_under_bind_is_not_taken_apart() -> None:
    assert len(compile_device("cel.bind(x, true, x && x)").conjuncts) == 1


COMPARISONS = [
    (f"{A}.architecture == 'Hopper'", f"{GPU}/architecture", "==", "Hopper", "string"),
    (f"'Hopper' != {A}.architecture", f"{GPU}/architecture", "!=", "Hopper", "string"),
    (f"{A}.index >= 3", f"{GPU}/index", ">=", "3", "int"),
    (f"3 < {A}.index", f"{GPU}/index", ">", "3", "int"),
    (f"3 >= {A}.index", f"{GPU}/index", "<=", "3", "int"),
    (f"{A}.share <= 1.5", f"{GPU}/share", "<=", "1.5", "double"),
    (f"{A}.rdma == true", f"{GPU}/rdma", "==", "true", "bool"),
    (f'{C}.memory.compareTo(quantity("80Gi")) >= 0', f"{GPU}/memory", ">=", "80Gi", "quantity"),
    (f'0 <= {C}.memory.compareTo(quantity("80Gi"))', f"{GPU}/memory", ">=", "80Gi", "quantity"),
    (f'quantity("80Gi").compareTo({C}.memory) <= 0', f"{GPU}/memory", ">=", "80Gi", "quantity"),
    (f'{C}.memory.isGreaterThan(quantity("80Gi"))', f"{GPU}/memory", ">", "80Gi", "quantity"),
    (f'quantity("80Gi").isLessThan({C}.memory)', f"{GPU}/memory", ">", "80Gi", "quantity"),
    (f'{C}.memory == quantity("80Gi")', f"{GPU}/memory", "==", "80Gi", "quantity"),
    (f'{A}.driverVersion.isLessThan(semver("550.0.0"))', f"{GPU}/driverVersion", "<", "550.0.0", "semver"),
    (f'{A}.driverVersion.compareTo(semver("v550", true)) > 0', f"{GPU}/driverVersion", ">", "v550", "semver"),
    ("device.driver == 'a'", "driver", "==", "a", "string"),
]


@pytest.mark.parametrize(("expression", "name", "operator", "literal", "kind"), COMPARISONS)
def test_terms_that_compare_with_a_literal(
    expression: str, name: str, operator: str, literal: str, kind: str
) -> None:
    (comparison,) = compile_device(f"true && {expression}").comparisons()
    assert (str(comparison.reference), comparison.operator, comparison.literal, comparison.kind) == (
        name,
        operator,
        literal,
        kind,
    )
    assert comparison.relaxed(literal).replace('"', "'") == f"true && {expression}".replace('"', "'")


NO_COMPARISON = [
    "true",
    f"{A}.architecture == device.driver",
    f"{A}.architecture == null",
    f"{A}.architecture.startsWith('H')",
    f"{C}.memory.compareTo({C}.other) >= 0",
    f'{C}.memory.compareTo(quantity("1")) >= 1',
    f'{C}.memory.add(1).compareTo(quantity("1")) >= 0',
    f"{C}.memory.isGreaterThan(quantity(device.driver))",
    f"{A} == {{}}",
    "1 == 2",
    f"!({A}.index == 1)",
]


@pytest.mark.parametrize("expression", NO_COMPARISON)
def test_terms_that_do_not(expression: str) -> None:
    assert compile_device(expression).comparisons() == ()


def test_relaxing_writes_the_selector_with_another_literal() -> None:
    text = f"{A}.type == 'gpu' && {C}.memory.compareTo(quantity('80Gi')) >= 0 && {A}.index < 4"
    selector = compile_device(text)
    kind, memory, index = selector.comparisons()
    assert memory.relaxed("81559Mi") == text.replace("'80Gi'", '"81559Mi"')
    assert index.relaxed("8") == text.replace("< 4", "< 8")
    assert kind.relaxed('a"\\b') == text.replace("'gpu'", r'"a\"\\b"')
    assert selector.evaluate(bound(H100)).kind == "nomatch"
    assert compile_device(memory.relaxed("81559Mi")).evaluate(bound(H100)).kind == "match"


SUGGESTIONS = [
    ("architcture", "architecture"),
    ("Architecture", "architecture"),
    ("memroy", "memory"),
    ("driverversion", "driverVersion"),
    ("zzz", ""),
    ("memory", ""),
    ("mem", ""),
    ("", ""),
    ("typ", "type"),
    ("indx", "index"),
]


@pytest.mark.parametrize(("name", "expected"), SUGGESTIONS)
def test_the_nearest_name(name: str, expected: str) -> None:
    assert suggest(name, ["architecture", "memory", "driverVersion", "type", "index"]) == expected


def test_ties_go_to_the_first_by_name() -> None:
    assert suggest("ac", ["bc", "aa", "ad"]) == "aa"
    assert suggest("ac", []) == ""


REQUIREMENTS = [
    (f"{A}.x == 1", ()),
    ("[1].all(i, v, true)", (ReleaseRequirement("all() with two variables", "1.32"),)),
    ("[1].transformList(i, v, v) == []", (ReleaseRequirement("transformList() with two variables", "1.32"),)),
    ('isSemver("v1", true) && isSemver("1.0.0")', (ReleaseRequirement("isSemver()", "1.33"),)),
    ("[1].first().hasValue()", (ReleaseRequirement("first()", "1.33"),)),
    ("device.allowMultipleAllocations", (ReleaseRequirement("device.allowMultipleAllocations", "1.34"),)),
    ("[1].sort() == [1]", (ReleaseRequirement("sort()", "1.34"),)),
    ("[1].sortBy(x, x) == [1]", (ReleaseRequirement("sortBy()", "1.34"),)),
    (
        f"{A}.x.includes(1) && [1].reverse() == []",
        (ReleaseRequirement("includes()", "1.36"), ReleaseRequirement("reverse()", "1.34")),
    ),
    (f"{A}.x.exists(v, v == 1)", (ReleaseRequirement("lists as attributes", "1.36"),)),
]


@pytest.mark.parametrize(("expression", "expected"), REQUIREMENTS)
def test_since_which_release_a_selector_compiles(
    expression: str, expected: tuple[ReleaseRequirement, ...]
) -> None:
    assert compile_device(expression).requirements == expected


def test_a_pair_is_evaluated_once() -> None:
    evaluations = OutcomeMemo()
    selector, other = (
        compile_device(f"{A}.architecture == 'Hopper'"),
        compile_device(f"{A}.architecture == 'Ada'"),
    )
    assert evaluations.outcome(selector, bound(H200)).kind == "match"
    assert evaluations.outcome(selector, bound(L4)).kind == "nomatch"
    assert (evaluations.evaluated, evaluations.reused) == (2, 0)
    assert evaluations.outcome(selector, bound(H200)).kind == "match"
    assert evaluations.outcome(other, bound(H200)).kind == "nomatch"
    assert (evaluations.evaluated, evaluations.reused) == (3, 1)


def test_what_a_selector_does_not_read_does_not_defeat_reuse() -> None:
    evaluations = OutcomeMemo()
    selector = compile_device(f"{A}.architecture == 'Hopper' && {C}.memory.isGreaterThan(quantity('1Gi'))")
    for uuid in range(50):
        device = H200 | {"attributes": H200["attributes"] | {"uuid": {"string": f"GPU-{uuid}"}}}
        assert evaluations.outcome(selector, bound(device)).kind == "match"
    assert (evaluations.evaluated, evaluations.reused) == (1, 49)


EXPRESSIONS = [
    f"{A}.architecture == 'Hopper'",
    f"{C}.memory.isGreaterThan(quantity('100Gi'))",
    f"{C}.memory.isInteger() && {C}.memory.asInteger() > 1",
    f"'minor' in {A}",
    f"has({A}.minor)",
    f"{A}.exists(k, k == 'minor')",
    "device.attributes.size() == 2",
    "device.driver == 'gpu.nvidia.com' || device == device",
    f"{A}.?minor.orValue(7) == 7",
    "device.allowMultipleAllocations",
    f"{A}[device.driver] == 1",
    "true",
]


def test_equal_projections_have_equal_outcomes() -> None:
    """Memory of outcomes never changes an answer: with it and without it, over devices that differ a little."""
    variants = [
        H200,
        H100,
        L4,
        B200,
        H200 | {"driver": "x"},
        H200 | {"capacity": {}},
        H200 | {"allow_multiple": True},
    ]
    variants += [
        H200 | {"attributes": {k: v for k, v in H200["attributes"].items() if k != gone}}
        for gone in H200["attributes"]
    ]
    variants += [
        H200 | {"attributes": {"version": {"version": "bad"}}},
        H200 | {"attributes": {"other": {"version": "bad"}}},
    ]
    evaluations = OutcomeMemo()
    for expression in EXPRESSIONS:
        selector = compile_device(expression)
        for device in variants:
            assert evaluations.outcome(selector, bound(device)) == selector.evaluate(bound(device)), (
                expression
            )
    assert evaluations.reused > 0


def test_outcomes_know_whether_they_match() -> None:
    assert compile_device("true").evaluate(bound(H200)).matched
    assert not compile_device("false").evaluate(bound(H200)).matched


def test_two_threads_give_the_answers_of_one() -> None:
    expressions = [
        *EXPRESSIONS,
        "[3, 1, 2].map(x, x * 2).exists(x, x == 4) && cel.bind(y, device.driver, y != '')",
    ]
    selectors = [compile_device(expression) for expression in expressions]
    subjects = [bound(device) for device in (H200, H100, L4, B200, MIXED)]
    alone = [selector.evaluate(subject) for selector in selectors for subject in subjects]
    answers: list[list[object]] = []

    def work() -> None:
        for _ in range(60):
            answers.append([selector.evaluate(subject) for selector in selectors for subject in subjects])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 120
    assert all(answer == alone for answer in answers)


def at_the_end_of_the_stack(work: Callable[[], Any]) -> Any:
    """Return what the work does where it has just enough room not to fail."""
    try:
        return at_the_end_of_the_stack(work)
    except RecursionError:
        return work()


def test_a_caller_that_leaves_no_room_on_the_stack_is_told_so() -> None:
    text = "[1].all(x, x == 1) && cel.bind(y, 2, [y].all(z, z == 2))"
    selector = compiled(text, state.DEVICE)
    subject = bound(H200)
    with pytest.raises(CompileError, match=r"^1:1: the caller left no room on the stack$"):
        at_the_end_of_the_stack(lambda: compiled(text, state.DEVICE))
    result = at_the_end_of_the_stack(lambda: selector.evaluate(subject))
    assert (result.kind, result.message) == ("error", "the caller left no room on the stack")


def long(number: int) -> str:
    return " || ".join([f"device.driver == 'a{number}'"] * 30)


@pytest.mark.parametrize(
    ("compile_", "source"),
    [
        (compile_device, "device.driver == 'a'"),
        (compile_cluster, "cluster.name == 'a'"),
        (compile_node, "node.name == 'a'"),
    ],
)
def test_a_selector_is_compiled_once(compile_: Any, source: str) -> None:
    assert compile_(source) is compile_(source)


def test_a_selector_stays_compiled_as_long_as_somebody_has_it_and_a_little_longer() -> None:
    kept, number = compile_device(long(0)), id(compile_device(long(1)))
    assert id(compile_device(long(1))) == number
    for other in range(2, 2 + RECENT_LONG):
        compile_device(long(other))
    assert compile_device(long(0)) is kept
    assert [one.source for one in selector_module._recent_long] == [
        long(other) for other in range(2, 2 + RECENT_LONG)
    ]
    assert long(1) not in {source for source, *_ in selector_module._compiled}


def the_cluster() -> Subject:
    return bind_cluster(
        name="use1",
        labels={"region": "us-east-1", "modelplane.ai/tier": "gold"},
        attributes={
            "modelplane.ai/compliance": {"strings": ["soc2-type2", "hipaa"]},
            "modelplane.ai/cost": {"int": 3},
            "version": {"version": "1.34.1"},
        },
    )


def the_node() -> Subject:
    return bind_node(
        name="h100-pool",
        class_name="h100x8",
        attributes={"modelplane.ai/networking": {"string": "ib-quantum-2"}},
    )


LEVELS = [
    (compile_cluster, the_cluster, "cluster.name == 'use1' && cluster.labels.region == 'us-east-1'", "match"),
    (compile_cluster, the_cluster, "cluster.labels['modelplane.ai/tier'] == 'gold'", "match"),
    (compile_cluster, the_cluster, "'soc2-type2' in cluster.attributes['modelplane.ai/compliance']", "match"),
    (compile_cluster, the_cluster, "cluster.attributes['modelplane.ai/cost'] < 3", "nomatch"),
    (compile_cluster, the_cluster, "cluster.attributes['version'].isGreaterThan(semver('1.34.0'))", "match"),
    (compile_cluster, the_cluster, "cluster.attributes['gone'] == 1", "error"),
    (compile_cluster, the_cluster, "cluster.labels['gone'] == ''", "error"),
    (compile_cluster, the_cluster, "has(cluster.labels.gone) || 'gone' in cluster.attributes", "nomatch"),
    (compile_cluster, the_cluster, "cluster.labels.size() == 2 && cluster.attributes.size() == 3", "match"),
    (compile_node, the_node, "node.name == 'h100-pool' && node.className == 'h100x8'", "match"),
    (compile_node, the_node, "node.attributes['modelplane.ai/networking'].startsWith('ib-')", "match"),
    (compile_node, the_node, "node.attributes['gone'] == 1", "error"),
    (
        compile_node,
        the_node,
        "node.?name.value() == 'h100-pool' && node.?className.value() == 'h100x8'",
        "match",
    ),
    (compile_node, the_node, "node.?attributes.value().size() == 1", "match"),
    (
        compile_cluster,
        the_cluster,
        "cluster.?name.value() == 'use1' && cluster.?labels.value().size() == 2",
        "match",
    ),
]


@pytest.mark.parametrize(("compile_", "subject", "expression", "expected"), LEVELS)
def test_clusters_and_nodes(compile_, subject, expression: str, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert compile_(expression).evaluate(subject()).kind == expected


def test_each_level_has_its_own_variable() -> None:
    for compile_, text in (
        (compile_cluster, "device.driver == ''"),
        (compile_node, "node.labels.x == ''"),
        (compile_device, "node.name == ''"),
    ):
        with pytest.raises(CompileError):
            compile_(text)


def test_what_a_node_publishes_under_a_reference() -> None:
    assert published(the_node(), Reference("name")) == "h100-pool"
    assert published(the_node(), Reference("className")) == "h100x8"
    assert published(the_node(), Reference("attribute", None, "modelplane.ai/networking")) == "ib-quantum-2"
    assert published(the_cluster(), Reference("name")) == "use1"


def test_what_nodes_lack_and_read() -> None:
    selector = compile_node(
        "node.attributes['a'] == 1 && node.className == 'h100x8' && node.name == 'h100-pool'"
    )
    assert selector.evaluate(the_node()).message == "no such key: a (the node has no attribute a)"
    assert set(selector.reads) == {
        Reference("attribute", None, "a"),
        Reference("className"),
        Reference("name"),
    }


def test_subjects_of_two_levels_differ() -> None:
    cluster = bind_cluster(name="x", labels={}, attributes={})
    assert cluster != bind_node(name="x", class_name="", attributes={})
    assert cluster == bind_cluster(name="x", labels={}, attributes={})
    assert bind_node(name="x", class_name="a", attributes={}) != bind_node(
        name="x", class_name="b", attributes={}
    )
    assert bind_cluster(name="x", labels={"a": "b"}, attributes={}) != cluster


def test_what_clusters_lack_and_read() -> None:
    selector = compile_cluster("cluster.attributes['a.b/c'] == 1 && cluster.labels.x == 'y'")
    assert (
        selector.evaluate(the_cluster()).message == "no such key: a.b/c (the cluster has no attribute a.b/c)"
    )
    assert set(selector.reads) == {Reference("attribute", None, "a.b/c"), Reference("label", None, "x")}


def test_a_bad_attribute_of_a_cluster_makes_every_evaluation_an_error() -> None:
    bad = bind_cluster(name="x", labels={}, attributes={"v": {"version": "1"}})
    assert compile_cluster("true").evaluate(bad).kind == "error"
    assert bind_node(name="x", class_name="y", attributes={"z": {}}).problem.startswith("attribute z: ")


def test_the_table_is_that_of_the_grammar() -> None:
    assert TABLE.read_text(encoding="utf-8") == cel_table.table(), "python -m hack.cel_table"


def test_another_grammar_fails_loudly() -> None:
    grammar = cel_table.packaged_grammar()
    assert cel_table.patched(grammar)
    for old, _ in cel_table.PATCHES:
        with pytest.raises(RuntimeError, match="grammar changed"):
            cel_table.patched(grammar.replace(old, "changed", 1))
    with pytest.raises(RuntimeError, match="terminals"):
        cel_table.patched("expr : IDENT")


def test_the_limits_of_a_text() -> None:
    longest = '"' + "a" * 10_235 + '"==""'
    assert len(longest) == 10_241
    with pytest.raises(CompileError, match="longer than 10240 bytes"):
        compile_device(longest)
    assert says(longest[:1] + longest[2:]) == "nomatch"
    assert says("'" + "é" * 5_117 + "'==''") == "nomatch"
    assert says("'" + "é" * 5_118 + "'==''") == "compile", "bytes, not characters"


NESTING = [
    ("parentheses", lambda n: "(" * n + "true" + ")" * n, 249),
    ("lists", lambda n: "[" * n + "1" + "]" * n + " == []", 248),
    ("ternaries", lambda n: "true ? true : " * n + "true", 249),
    ("sums", lambda n: "1 + " * n + "1 > 0", 248),
    ("methods", lambda n: "device.driver" + ".trim()" * n + " == ''", 247),
    ("loops", lambda n: "[1].all(x, " * n + "true" + ")" * n, 248),
    ("not of both", lambda n: "!(true && " * n + "true" + ")" * n, 124),
]


@pytest.mark.parametrize(("reason", "text", "most"), NESTING, ids=[case[0] for case in NESTING])
def test_nesting_compiles_up_to_the_limit_and_is_refused_beyond(reason: str, text, most: int) -> None:  # type: ignore[no-untyped-def]
    assert says(text(most)) in ("match", "nomatch"), reason
    with pytest.raises(CompileError, match="recursion limit exceeded: 250"):
        compile_device(text(most + 1))


def test_chains_are_no_nesting() -> None:
    assert says(" && ".join(["true"] * 1000)) == "match"
    assert says(" || ".join(["false"] * 1000)) == "nomatch"
    assert says("!" * 10_000 + "true") == "match"
    assert says("-" * 10_000 + "1 == 1") == "match"


@pytest.mark.parametrize("opening", ["(", "[", "{", "!", "-", "f(", "'(", "a.", "a?"])
def test_depth_beyond_reason_is_a_compile_error(opening: str) -> None:
    with pytest.raises(CompileError):
        compile_device((opening * 5000)[:10_240])


def test_brackets_in_texts_and_comments_do_not_nest() -> None:
    assert says("'" + "(" * 500 + "' == ''") == "nomatch"
    assert says('"""' + "[" * 500 + '""" == "" // ' + "{" * 500) == "nomatch"
    assert says("r'\\' == '' || '\\'((((' == ''") == "nomatch"


def test_a_deep_selector_runs_on_any_thread() -> None:
    kinds: list[str] = []
    thread = threading.Thread(
        target=lambda: kinds.append(says("[1].map(x, " * 240 + "x" + ")" * 240 + " != []"))
    )
    thread.start()
    thread.join()
    assert kinds == ["match"]


def test_an_exhausted_stack_is_an_answer_too() -> None:
    selector, subject = compile_device("[1].map(x, " * 200 + "x" + ")" * 200 + " != []"), bound(H200)

    def deeper(levels: int) -> str:
        return selector.evaluate(subject).kind if levels == 0 else deeper(levels - 1)

    assert deeper(0) == "match"
    assert deeper(850) == "error"


def test_a_value_that_is_no_text_is_an_error_and_never_raises() -> None:
    subject = bound(MIXED | {"attributes": {"kind": {"string": "half \ud800"}}})
    for call in ('matches("h")', 'find("h") == "h"', 'findAll("h") == ["h"]'):
        selector = compile_device(f'device.attributes["{MIXED["driver"]}"].kind.{call}')
        assert selector.evaluate(subject).kind == "error"


def test_errors_are_of_one_family() -> None:
    assert issubclass(EvaluationError, Exception)
    assert not issubclass(CompileError, EvaluationError)

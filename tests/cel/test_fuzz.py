"""The invariant: whatever the text, compiling ends in a selector or in a CompileError that points into the
text, and evaluating ends in match, nomatch, error or cost; nothing else, and within the limit of work.
"""

import os
import random
import string

from function.cel import CompileError, Selector, bind_device, compile_device, environment
from function.cel.cost import LIMIT
from function.cel.selector import compiled
from tests.support.scale import count

CASES = int(os.environ.get("FUZZ_CASES") or count(300, 20_000, 200_000))
SEED = int(os.environ.get("FUZZ_SEED", "1"))

DEVICE = bind_device(
    driver="gpu.nvidia.com",
    attributes={
        "architecture": {"string": "Hopper"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "550.54.15"},
        "links": {"strings": ["nvlink", "pcie"]},
        "ports": {"ints": [1, 2, 3]},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    capacity={"memory": {"value": "80Gi"}, "multiprocessors": {"value": "132"}, "share": {"value": "0.5"}},
)
LEAVES = """
    true false null 1 -1 0 3u 1.5 "a" "Hopper" b"x" [] {} 9223372036854775807 x y device device.driver
    device.attributes device.capacity device.attributes["gpu.nvidia.com"] device.allowMultipleAllocations
    device.attributes["gpu.nvidia.com"].architecture device.attributes["gpu.nvidia.com"].index
    device.attributes["gpu.nvidia.com"].driverVersion device.attributes["gpu.nvidia.com"].links
    device.attributes["gpu.nvidia.com"].ports device.attributes["none"].none
    device.capacity["gpu.nvidia.com"].memory device.capacity["gpu.nvidia.com"].share quantity("1Gi")
    quantity("x") quantity("0.5") semver("1.2.3") semver("v1",true) optional.none() optional.of(1)
    ip("10.0.0.1") cidr("10.0.0.0/8") url("https://a.b/c?d=e") duration("1h")
    timestamp("2024-01-01T00:00:00Z") format.dns1123Label()
""".split()  # noqa: SIM905 - a list of them would be six times as long
BINARY = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&&", "||", "in"]
METHODS = """
    size() contains({}) startsWith({}) matches({}) split({}) replace({},{}) substring({}) charAt({})
    indexOf({}) lowerAscii() trim() join() join({}) format([{}]) isSorted() sum() max() min() slice({},{})
    flatten() sort() distinct() reverse() first() last() hasValue() value() orValue({}) or({}) compareTo({})
    isGreaterThan({}) isLessThan({}) add({}) sub({}) asInteger() isInteger() asApproximateFloat() major()
    includes({}) find({}) findAll({}) family() ip() masked() containsIP({}) getHost() getQuery() validate({})
    getHours() getFullYear() unwrapOpt() all(x,{}) exists(x,{}) exists_one(x,{}) map(x,{}) map(x,{},{})
    filter(x,{}) all(x,y,{}) transformList(x,y,{}) transformMap(x,y,{}) transformMapEntry(x,y,{})
    sortBy(x,{}) optMap(x,{}) optFlatMap(x,{})
""".split()  # noqa: SIM905 - as above
CALLS = """
    size({}) string({}) int({}) uint({}) double({}) bool({}) bytes({}) dyn({}) type({}) duration({})
    timestamp({}) quantity({}) isQuantity({}) semver({}) isSemver({},{}) sign({}) has({}.x) lists.range({})
    sets.contains({},{}) sets.equivalent({},{}) sets.intersects({},{}) optional.of({}) strings.quote({})
    optional.ofNonZeroValue({}) cel.bind(x,{},{}) ip({}) isIP({}) cidr({}) url({}) isURL({})
    format.named({}) [{},{}] [{}] {{{}:{}}} [?{}] ({}?{}:{}) !{} -{} ({}) {}[{}] {}[?{}] {}.x {}.?x
    google.protobuf.Int32Value{{value:{}}}
""".split()  # noqa: SIM905 - as above
ALPHABET = string.printable + "é☃😀\x00\ud800"


NESTS = [
    ("(", ")"),
    ("[", "]"),
    ("!", ""),
    ("-", ""),
    ("{1:", "}"),
    ("size(", ")"),
    ("true ? true : ", ""),
    ("1 + ", ""),
    ("[1].all(x, ", ")"),
    ("", ".a"),
    ("", "[0]"),
    ("cel.bind(x, 1, ", ")"),
    ("true && ", ""),
    ("!(true || ", ")"),
]
OUTCOMES = ("match", "nomatch", "error", "cost")


def grammar_made(pick: random.Random, depth: int) -> str:
    if depth <= 0 or pick.random() < 0.15:
        return pick.choice(LEAVES)

    def part() -> str:
        return grammar_made(pick, depth - 1 - pick.randrange(2))

    shape = pick.random()
    if shape < 0.35:
        return f"({part()} {pick.choice(BINARY)} {part()})"
    form = pick.choice(METHODS if shape < 0.7 else CALLS)
    made = form.format(*[part() for _ in range(3)])
    return f"{part()}.{made}" if shape < 0.7 else made


def boolean(pick: random.Random) -> str:
    """An expression that has a chance to compile: comparisons of dyn values, joined."""
    terms = [
        f"dyn({grammar_made(pick, pick.randrange(4))}) {pick.choice(['==', '!='])} {pick.choice(LEAVES)}"
        for _ in range(2)
    ]
    return f" {pick.choice(['&&', '||'])} ".join(terms)


def mutated(pick: random.Random, text: str) -> str:
    characters = list(text)
    for _ in range(pick.randrange(1, 5)):
        at = pick.randrange(len(characters) + 1)
        action = pick.random()
        if action < 0.4:
            characters.insert(at, pick.choice(ALPHABET))
        elif action < 0.7 and characters:
            del characters[at % len(characters)]
        else:
            characters[at:at] = characters[max(0, at - 5) : at] * pick.randrange(1, 4)
    return "".join(characters)


def deep(pick: random.Random) -> str:
    count = pick.choice([10, 249, 250, 1000, 5000])
    before, after = pick.choice(NESTS)
    return (before * count + pick.choice(["true", "1", "x"]) + after * count)[:10_240]


def noise(pick: random.Random) -> str:
    return "".join(pick.choice(ALPHABET) for _ in range(pick.choice([1, 5, 40, 400, 10_240])))


def case(pick: random.Random) -> str:
    kind = pick.random()
    if kind < 0.1:
        return noise(pick)
    if kind < 0.15:
        return deep(pick)
    if kind < 0.4:
        return mutated(pick, boolean(pick))
    return boolean(pick) if kind < 0.8 else grammar_made(pick, 6)


def settle(source: str) -> str:
    try:
        selector = compiled(source, environment.DEVICE)
    except CompileError as error:
        refused = error
    else:
        return evaluated(selector, source)
    lines = source.split("\n")
    assert 1 <= refused.line <= len(lines), source
    assert 1 <= refused.column <= len(lines[refused.line - 1]) + 1, source
    assert refused.message, source
    assert refused.caret().endswith("^"), source
    return "compile"


def evaluated(selector: Selector, source: str) -> str:
    outcome = selector.evaluate(DEVICE)
    assert outcome.kind in OUTCOMES, source
    assert (outcome.message == "") == (outcome.kind in ("match", "nomatch")), source
    assert 0 <= (selector.estimate() or 0) < 2**64, source
    assert outcome.kind == "cost" or selector.cost(DEVICE) <= LIMIT, source
    for conjunct in selector.conjuncts():
        assert conjunct.evaluate(DEVICE).kind in OUTCOMES, source
    return outcome.kind


def test_whatever_the_text_it_ends_in_an_outcome() -> None:
    pick = random.Random(SEED)
    seen = {settle(case(pick)) for _ in range(CASES)}
    assert {"compile", "match", "nomatch", "error"} <= seen, "the generator no longer reaches every outcome"


def test_the_same_text_compiles_once() -> None:
    assert compile_device("device.driver == 'a'") is compile_device("device.driver == 'a'")

"""Random texts of the CEL dialect: made by its grammar, broken, deep, and noise."""

import random
import string

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

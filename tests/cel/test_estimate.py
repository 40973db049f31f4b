"""What the API server expects a selector to cost: the rules one by one, then the recorded estimates."""

import json
import os
from pathlib import Path

import pytest

from function.cel import CompileError, compile_cluster, compile_device
from function.cel.library.charges import LIMIT

FILE = os.environ.get("CEL_VECTORS", "")
D = 'device.attributes["d"]'
ESTIMATES = [
    ("a literal is free", "true", 0),
    ("a path costs its steps", f"{D}.yes", 4),
    ("presence the way there", f"has({D}.s)", 3),
    ("a value has 64 characters, a literal fewer", f'{D}.s == "fish"', 5),
    ("two values are compared as a whole", f"{D}.s == {D}.t", 15),
    ("both sides of and", f"{D}.yes && {D}.yes", 8),
    ("the dearer branch", f"true ? 1 == 1 : {D}.yes", 4),
    ("split reads twice, in walks the parts", f'"a" in {D}.s.split(";")', 81),
    ("includes is fixed", '"a".includes("a")', 48),
    ("sets meet pairwise", "sets.contains([1, 2], [1])", 23),
    ("sorting meets everything twice", "[3, 1, 2].sort() == [1, 2, 3]", 50),
    ("slices know their literals", "[1, 2, 3].slice(0, 2) == [1, 2]", 34),
    ("quantities compare for one", 'quantity("1") == quantity("1")', 3),
    ("blocks", "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8'))", 9),
    ("and their texts", "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 10),
    ("an address in a block", "cidr('192.168.0.0/24').containsIP('192.168.0.1')", 8),
    ("a tenth of a text to parse, rounded up", "ip.isCanonical('127.0.0.1')", 2),
    ("canonical: the text and its print", "ip.isCanonical('2001:db8::68')", 3),
    ("a text to parse", f"semver({D}.s).major() == 1", 13),
    ("an URL", 'url("https://example.com:80/p?q=1").getHost() == "example.com:80"', 6),
    ("its parts have any size", "url('/a').getHost() == url('/b').getHost()", 1844674407370955268),
    ("a named format by its pattern", '!format.dns1123Label().validate("ABC_").hasValue()', 35),
    ("branches are as long as the longer", f'(true ? "a" : {D}.s) == {D}.t', 15),
    ("with the dearer condition", f"{D}.yes ? true : false", 4),
    ("and and or are one long", f"({D}.yes || {D}.no) == {D}.yes", 13),
    ("in a map one", "'a' in {'a': 1}", 31),
    ("in a list its elements", "1 in [1, 2, 3]", 13),
    ("in a list attribute the most it has", f"1 in {D}.l", 68),
    ("domains", '"a" in device.attributes', 3),
    ("names of domains have 63 characters", "device.attributes.map(d, d).size() == 2", 431),
    ("and there are 32 of them", "device.attributes.exists_one(x, x == 'a')", 132),
    ("lists join their sizes", "[1] + [2] == [1, 2]", 32),
    ("for one, however long", "lists.range(30) + lists.range(30) == [1]", 94),
    ("texts join a tenth of both", '(device.driver + "3").contains("")', 9),
    ("short ones at least one", "'' + '' == ''", 1),
    ("bytes as well", "b'12345678901' + b'a' == b''", 2),
    ("numbers one", "(40 + 2) == 42", 2),
    ("order of texts: the shorter", "device.driver < 'a'", 3),
    ("of numbers one", "1 < 2", 1),
    ("contains: tenths of both", f'{D}.s.contains("12345678901")', 18),
    ("startsWith: the prefix", f'{D}.s.startsWith("12345678901")', 6),
    ("matches: a tenth of the text by a quarter of the pattern", f'{D}.s.matches("12345")', 18),
    ("a pattern that is published", f"{D}.s.matches({D}.t)", 120),
    ("what a match finds is as long as the text", f'{D}.s.find("a") == {D}.t', 22),
    ("findAll finds as many", '"abcabc".findAll("b.", 1) == ["bc"]', 12),
    ("case", f'{D}.s.lowerAscii() == "a"', 12),
    ("substring", '"tacocat".substring(4) == "cat"', 2),
    ("a conversion of a text walks it", f'string({D}.s) == "a"', 12),
    ("of a number does not", "string(1.0) == '1'", 2),
    ("bytes of a text are as long", "bytes('123456789012') == bytes('123456789012')", 6),
    ("dyn is as long", "dyn('123456789012') == dyn('123456789012')", 4),
    ("replace twice the text", '"hello hello".replace("", "_") == "_h_e_l_l_o_ _h_e_l_l_o_"', 6),
    ("by nothing shorter", 'isQuantity(device.driver.replace("a", ""))', 22),
    ("by what is longer", 'isQuantity(device.driver.replace("a", "bcd"))', 34),
    ("of what is published", 'isQuantity(device.driver.replace(device.driver, "3"))', 30),
    ("before each character", 'isQuantity(device.driver.replace("", "bcd"))', 41),
    ("joining nothing", "[].join('-') == ''", 10),
    ("texts in a list have any size", "['x', 'y'].join('-') == 'x-y'", 1844674407370955275),
    ("joining none, then walking", '[].join("-").endsWith("fish")', 11),
    ("joining those of a split", f'{D}.s.split(";").join("-").size() == 1', 1844674407370955283),
    ("quote", 'strings.quote("verbatim123") == "a"', 3),
    ("a quoted text is twice as long, and two", "isQuantity(strings.quote('123456789'))", 3),
    ("format: its template", "isQuantity('12345678901'.format([]))", 1844674407370955276),
    ("reverse", "[1, 2].reverse() == [2, 1]", 34),
    ("as long as before", "[1, 2, 3].reverse().all(x, x > 0)", 40),
    ("distinct: each with each, twice", "[1].distinct() == [1]", 34),
    ("of texts", "['c', 'a', 'a', 'b', 'a', 'b', 'c', 'c'].distinct() == ['c', 'a', 'b']", 160),
    ("sorting texts: a tenth more", '["d", "a", "b", "c"].sort() == ["a", "b", "c", "d"]', 66),
    ("sorting what is published", f"{D}.l.sort() == [1, 2, 3]", 8628),
    ("sorting by a key", "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]", 115),
    ("of nothing", "[].sortBy(e, e) == []", 54),
    ("a range", "lists.range(3).sortBy(e, -e) == [2, 1, 0]", 119),
    ("of less than nothing", "lists.range(-1) == []", 21),
    ("that is published", f"lists.range({D}.i) == []", 2**64 - 1),
    ("max", "[1, 2, 3].max() == 3", 14),
    ("of what is published", f"{D}.l.max() == 3", 12),
    ("isSorted of texts walks them", '["b", "a"].isSorted()', 3689348814741910540),
    ("indexOf in a text a tenth", "'tacocat123456'.indexOf('ac') == 1", 3),
    ("slices within", "[1, 2, 3, 4].slice(1, 3) == [2, 3]", 34),
    ("backwards", "[1, 2].slice(2, 1).all(x, x > 0)", 22),
    ("of any length", f"[1, 2].slice(0, {D}.i).all(x, x > 0)", 38),
    ("sets both ways", "sets.equivalent([1, 2], [2, 1])", 29),
    ("sets that meet", "sets.intersects([2, 1], [1])", 23),
    ("an element of an optional list", "optional.of([])[?0].hasValue()", 13),
    ("an optional domain and name", 'device.attributes[?"nosuch"].?b.hasValue()', 5),
    ("orValue one", "optional.of(1).orValue(2) == 1", 3),
    ("optMap binds its value", "optional.none().optMap(y, y + 1).hasValue()", 18),
    ("that of an attribute", f"{D}.?nosuch.optMap(x, x > 40).orValue(false)", 24),
    ("optFlatMap makes no optional", "{'key': {}}.?key.optFlatMap(k, k.?subkey).hasValue()", 137),
    ("bind costs a list, its value and its body", 'cel.bind(z, "3", z == "fish")', 12),
    ("a value that nobody reads, too", 'cel.bind(z, quantity("40Gi"), true)', 11),
    ("a bound map", "cel.bind(x, {'y': 0}, x.y == 0)", 43),
    ("a bound text has its size", f"cel.bind(x, {D}.s, x == {D}.t)", 26),
    ("the body gives its size", f"cel.bind(x, 1, {D}.s) == {D}.t", 25),
    ("a map literal", '{"a": true}.a', 31),
    ("an empty one", "{} == {}", 60),
    ("each entry", "{1: 2}.transformMap(k, v, v + 1) == {1: 3}", 97),
    ("entries into one", "{1: 2}.transformMapEntry(k, v, {v: k}) == {2: 1}", 126),
    ("of nothing", "[].transformMap(k, v, v + 1) == {}", 71),
    ("a wrapper", "google.protobuf.Int32Value{value: 1} == 1", 41),
    ("an empty wrapper", "google.protobuf.BytesValue{} == b''", 40),
    ("a type's name one", "net.IP == net.IP", 1844674407370955266),
    ("the type of a value", "(type(64u)) == uint", 1844674407370955266),
    ("exists_one", "[8].exists_one(a, a == 7)", 16),
    ("with texts", '["a", "b"].exists_one(y, y == "")', 18),
    ("filter", "([1].filter(n, n > 3)) == []", 46),
    ("filter in filter", "(['signer'].filter(signer, ['artifact'].all(artifact, true))) == [\"signer\"]", 59),
    ("all in map", f"[].map(y, true).all(y, ([] in {D}.i))", 22),
    ("over a list attribute", f"{D}.l.all(x, x.size() == 1)", 389),
    ("with two names", f'{D}.l.exists(i, v, i == 1 && v == "b")', 517),
    ("over a bound list", f"cel.bind(x, {D}.l, x.all(y, y == 1))", 336),
    ("the name of a domain has 32 characters", "device.attributes.exists(x, x == device.driver)", 355),
    (
        "values of domains have levels below",
        f"device.attributes.all(k, v, v.all(i, w, w == {D}.s + {D}.t))",
        32931,
    ),
    ("over a list in a list", "[[1, 2]].all(x, x.all(y, y > 0))", 36),
    ("over a list in a map", "{'a': [1, 2]}.all(k, v, v.all(y, y > 0))", 56),
]
LOOP = "[1,2,3,4,5,6,7,8,9,10].all({}, "
REFUSED = [
    ("loops in loops", "".join(LOOP.format(name) for name in "abcdef") + "true" + ")" * 6, True),
    ("a few of them", "".join(LOOP.format(name) for name in "abc") + "true" + ")" * 3, False),
    ("quantities that differ have no size", 'device.capacity["d"].q != quantity("1")', True),
    ("versions as well", 'semver("1.0.0") != semver("1.0.0")', True),
    ("a long range", "lists.range(10000000).size() > 0", True),
    (
        "a real selector",
        f'{D}.s.startsWith("f") && device.capacity["d"].q.compareTo(quantity("1")) >= 0',
        False,
    ),
]


@pytest.mark.parametrize(("reason", "expression", "units"), ESTIMATES, ids=[case[0] for case in ESTIMATES])
def test_what_is_expected(reason: str, expression: str, units: int) -> None:
    assert compile_device(expression).estimate() == units, reason


@pytest.mark.parametrize(("reason", "expression", "above"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_may_be_refused(reason: str, expression: str, *, above: bool) -> None:
    estimate = compile_device(expression).estimate()
    assert estimate is not None
    assert (estimate > LIMIT) is above, reason


def test_no_api_server_sees_a_cluster_selector() -> None:
    assert compile_cluster('cluster.name == "a"').estimate() is None


@pytest.mark.skipif(not FILE, reason="CEL_VECTORS does not name the file of recorded cases")
def test_recorded_estimates() -> None:
    equal = decided = count = 0
    for case in json.loads(Path(FILE).read_text(encoding="utf-8")):
        if "env" in case or "maxCost" not in case:
            continue
        try:
            estimate = compile_device(case["expression"]).estimate()
        except CompileError:
            continue
        assert estimate is not None
        count += 1
        equal += estimate == case["maxCost"]
        decided += (estimate > LIMIT) == (case["maxCost"] > LIMIT)
    assert (decided, equal >= 0.996 * count) == (count, True), f"{equal} of {count} exactly as recorded"

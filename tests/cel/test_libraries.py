"""Every function of every library: what it does, at its edges, and what it refuses."""
# ruff: noqa: E501, RUF001 - a case is one line; as the printer writes it

import pytest

from tests.cel.devices import outcome

D = 'device.attributes["d"]'

STRINGS = [
    ("size counts characters", f"{D}.u.size() == 5 && size('abc') == 3 && size(b'é') == 2", "match"),
    ("contains", f"{D}.s.contains('is') && {D}.s.contains('') && !{D}.s.contains('x')", "match"),
    (
        "startsWith and endsWith",
        f"{D}.s.startsWith('fi') && {D}.s.endsWith('sh') && !{D}.s.startsWith('i')",
        "match",
    ),
    ("charAt", "'abc'.charAt(1) == 'b' && 'abc'.charAt(3) == ''", "match"),
    ("charAt beyond", "'abc'.charAt(4) == ''", "error"),
    ("charAt before", "'abc'.charAt(-1) == ''", "error"),
    (
        "indexOf",
        "'tacocat'.indexOf('ac') == 1 && 'tacocat'.indexOf('x') == -1 && 'tacocat'.indexOf('a', 2) == 5",
        "match",
    ),
    (
        "indexOf of nothing is where one looks",
        "'abc'.indexOf('') == 0 && 'abc'.indexOf('', 30) == 30",
        "match",
    ),
    ("indexOf from beyond", "'abc'.indexOf('a', 30) == -1", "match"),
    ("indexOf from before", "'abc'.indexOf('a', -1) == 0", "error"),
    (
        "lastIndexOf",
        "'tacocat'.lastIndexOf('ac') == 1 && 'tacocat'.lastIndexOf('a', 4) == 1 && 'abc'.lastIndexOf('') == 3",
        "match",
    ),
    (
        "lastIndexOf up to itself",
        "'tacocat'.lastIndexOf('a', 5) == 5 && 'tacocat'.lastIndexOf('at', 6) == 5",
        "match",
    ),
    ("lastIndexOf from beyond", "'abc'.lastIndexOf('a', 3) == -1 && 'abc'.lastIndexOf('', 9) == 9", "match"),
    ("lastIndexOf from before", "'abc'.lastIndexOf('a', -1) == 0", "error"),
    (
        "lowerAscii leaves the rest",
        "'AbÜ'.lowerAscii() == 'abÜ' && 'aZü'.upperAscii() == 'AZü' && 'AZaz'.lowerAscii() == 'azaz'",
        "match",
    ),
    ("replace", "'aXaXa'.replace('X', '-') == 'a-a-a' && 'aXaXa'.replace('X', '-', 1) == 'a-aXa'", "match"),
    (
        "replace none and all",
        "'aa'.replace('a', 'b', 0) == 'aa' && 'aa'.replace('a', 'b', -1) == 'bb'",
        "match",
    ),
    ("replace nothing", "'ab'.replace('', '-') == '-a-b-'", "match"),
    (
        "split",
        "'a-b-c'.split('-') == ['a', 'b', 'c'] && 'abc'.split('') == ['a', 'b', 'c'] && ''.split('-') == ['']",
        "match",
    ),
    (
        "split so many",
        "'a-b-c'.split('-', 2) == ['a', 'b-c'] && 'a-b'.split('-', 0) == [] && 'a-b'.split('-', -1).size() == 2",
        "match",
    ),
    (
        "split into so many characters",
        "'abc'.split('', 2) == ['a', 'bc'] && 'abc'.split('', 9) == ['a', 'b', 'c'] && 'a-b'.split('-', 1) == ['a-b']",
        "match",
    ),
    (
        "substring",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'abc'.substring(3) == ''",
        "match",
    ),
    ("substring beyond", "'abc'.substring(4) == ''", "error"),
    ("substring before", "'abc'.substring(-1) == ''", "error"),
    ("substring to beyond", "'abc'.substring(0, 4) == ''", "error"),
    ("substring backwards", "'abc'.substring(2, 1) == ''", "error"),
    ("trim", r"' \t\n a b \u00a0\u3000'.trim() == 'a b'", "match"),
    ("trim leaves what is no white space", r"'\u200b'.trim() == '\u200b'", "match"),
    ("join", "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('-') == ''", "match"),
    ("join of what is no text", f"{D}.ints.join('-') == ''", "error"),
    ("quote", r"""strings.quote("a\n\"\\é") == "\"a\\n\\\"\\\\é\"" """.strip(), "match"),
    ("matches anywhere", f"{D}.s.matches('^f.s') && matches({D}.s, 'is') && !{D}.s.matches('^is')", "match"),
    ("matches with a bad computed pattern", f"{D}.s.matches({D}.s + '[')", "error"),
    ("find", "'abc'.find('b.') == 'bc' && 'abc'.find('x') == ''", "match"),
    ("findAll", "'ab1cd2'.findAll('[a-z]+') == ['ab', 'cd'] && 'aaa'.findAll('a', 2) == ['a', 'a']", "match"),
    (
        "findAll none and all",
        "'aaa'.findAll('a', 0) == [] && 'aaa'.findAll('a', -1).size() == 3 && 'x'.findAll('a') == []",
        "match",
    ),
    (
        "findAll of empty matches",
        "'ab'.findAll('x*') == ['', '', ''] && 'baac'.findAll('a*') == ['', 'aa', '']",
        "match",
    ),
]
FORMAT = [
    ("strings and numbers", "'%s is %d'.format(['a', 1]) == 'a is 1' && '%d'.format([2u]) == '2'", "match"),
    ("percent", "'%%%s%%'.format(['a']) == '%a%' && '100%%'.format([]) == '100%'", "match"),
    (
        "%s of every type",
        "'%s %s %s %s %s'.format([true, null, 1.5, b'x', type(1)]) == 'true null 1.5 x int'",
        "match",
    ),
    ("%s of times", "'%s %s'.format([duration('90s'), timestamp(0)]) == '90s 1970-01-01T00:00:00Z'", "match"),
    (
        "%s of lists and maps",
        "'%s'.format([[1, 2]]) == '[1, 2]' && '%s'.format([{'b': 1, 'a': 2}]) == '{\"a\": 2, \"b\": 1}'",
        "match",
    ),
    ("inside of them", "'%s'.format([[1.5, null, true]]) == '[1.500000, null, true]'", "match"),
    ("times inside of them", "'%s'.format([[duration('1s')]]) == '[duration(\"1s\")]'", "match"),
    (
        "fixed point",
        "'%f %.2f %.0f'.format([1.5, 2.345, 1.5]) == '1.500000 2.35 2' || '%.2f'.format([2.344]) == '2.34'",
        "match",
    ),
    (
        "scientific, as the English printer does",
        "'%.2e'.format([1500.0]) == '1.50\u202f×\u202f10⁰³' && '%.1e'.format([0.01]) == '1.0\u202f×\u202f10⁻⁰²'",
        "match",
    ),
    (
        "not a number and the endless",
        "'%f %f'.format([double('nan'), double('inf')]) == 'NaN ∞' && '%e'.format([double('-inf')]) == '-∞'",
        "match",
    ),
    (
        "binary and octal",
        "'%b %b %o'.format([5, true, 8]) == '101 1 10' && '%b'.format([-5]) == '-101'",
        "match",
    ),
    (
        "hexadecimal",
        "'%x %X %x %X'.format([255, 255, 'az', b'\\xff']) == 'ff FF 617a C3BF' || '%x'.format([b'a']) == '61'",
        "match",
    ),
    ("a computed value of another type", "'%d'.format([dyn('a')]) == ''", "error"),
    ("%d of the endless, computed", "'%d'.format([dyn(double('inf'))]) == 'Infinity'", "match"),
    ("%f of an int, computed", "'%f'.format([dyn(2)]) == '2.000000'", "match"),
    ("%s of a quantity", "'%s'.format([device.capacity['d'].q]) == ''", "compile"),
    ("computed", "'%s'.format([dyn(device.capacity['d'].q)]) == ''", "error"),
    ("a computed template", "('%' + 'd').format([1]) == '1'", "match"),
    ("that lacks a value", "('%' + 'd').format([]) == ''", "error"),
    ("that ends in a percent", "('a' + '%').format([]) == ''", "error"),
    ("with an unknown verb", "('%' + 'y').format([1]) == ''", "error"),
    ("with a huge precision", "('%.' + '99999f').format([1.0]) == ''", "cost"),
]
CONVERSIONS = [
    (
        "to string",
        "string(true) == 'true' && string(-1) == '-1' && string(1u) == '1' && string(b'a') == 'a' && string('a') == 'a'",
        "match",
    ),
    (
        "of doubles",
        "string(1.0) == '1' && string(1.5) == '1.5' && string(0.0) == '0' && string(123456.0) == '123456'",
        "match",
    ),
    (
        "of large and small ones",
        "string(1e6) == '1e+06' && string(1.5e300) == '1.5e+300' && string(0.0001) == '0.0001' && string(0.00001) == '1e-05'",
        "match",
    ),
    (
        "with a fraction",
        "string(0.25) == '0.25' && string(-12.5) == '-12.5' && string(1234567.5) == '1.2345675e+06'",
        "match",
    ),
    (
        "of the endless",
        "string(double('inf')) == '+Inf' && string(double('-inf')) == '-Inf' && string(double('nan')) == 'NaN'",
        "match",
    ),
    ("of bytes that are no text", "string(b'\\xff') == ''", "compile"),
    (
        "of times",
        "string(duration('1h30m')) == '5400s' && string(duration('-1.5s')) == '-1.5s' && string(timestamp(1)) == '1970-01-01T00:00:01Z'",
        "match",
    ),
    (
        "to int",
        "int(1.9) == 1 && int(-1.9) == -1 && int('42') == 42 && int('+7') == 7 && int('-7') == -7 && int(3u) == 3 && int(5) == 5",
        "match",
    ),
    ("of times", "int(timestamp(7)) == 7 && int(duration('1s')) == 1000000000", "match"),
    ("of a computed text", f"int({D}.num) == 17", "match"),
    ("that is none", f"int({D}.s) == 17", "error"),
    ("of a large uint", "int(9223372036854775808u) == 1", "compile"),
    ("of not a number", "int(double('nan')) == 1", "compile"),
    ("at the edge of doubles", "int(dyn(9223372036854775807.0)) == 1", "compile"),
    ("to uint", "uint(1) == 1u && uint('5') == 5u && uint(1.9) == 1u && uint(2u) == 2u", "match"),
    ("below zero", f"uint({D}.neg) == 1u", "error"),
    ("of a text with a sign", f"uint('+' + {D}.num) == 1u", "error"),
    (
        "to double",
        "double(1) == 1.0 && double('1e3') == 1000.0 && double(2u) == 2.0 && double('.5') == 0.5 && double('0x1p3') == 8.0",
        "match",
    ),
    ("that is none", f"double({D}.s) == 1.0", "error"),
    ("out of range", "double('1e999') == 1.0", "compile"),
    (
        "to bool",
        "bool('true') && bool('1') && bool('T') && !bool('f') && !bool('False') && bool(true)",
        "match",
    ),
    ("that is none", f"bool({D}.s)", "error"),
    ("to bytes", "bytes('é') == b'é' && bytes(b'a') == b'a'", "match"),
    ("of another type", f"string({D}.ints) == ''", "error"),
    ("dyn keeps the value", "dyn(1) == 1 && type(dyn(1)) == int", "match"),
    (
        "types have names",
        "type(null) == null_type && type({}) == map && type(int) == type && type(b'') == bytes",
        "match",
    ),
    (
        "of optionals and durations",
        "type(optional.none()) == optional_type && type(duration('1s')) == google.protobuf.Duration",
        "match",
    ),
    ("a text of every length", f"int('9' + {D}.s) == 1", "error"),
]
LISTS = [
    (
        "isSorted",
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted() && [1.5].isSorted()",
        "match",
    ),
    (
        "sum",
        "[1, 2, 3].sum() == 6 && [1.5, 1.5].sum() == 3.0 && [1u].sum() == 1u && [duration('1m'), duration('1s')].sum() == duration('61s')",
        "match",
    ),
    ("sum of nothing", "[].sum() == 0", "match"),
    ("sum overflows", f"[{D}.max, 1].sum() == 0", "compile"),
    ("sum computed", f"[{D}.max, dyn(1)].sum() == 0", "error"),
    (
        "max and min",
        "[1, 3, 2].max() == 3 && [3, 1, 2].min() == 1 && ['a', 'b'].max() == 'b' && [true, false].min() == false",
        "match",
    ),
    ("of nothing", "[].max() == 1", "error"),
    ("of an attribute", f"{D}.ints.max() == 3 && {D}.ints.min() == 1 && {D}.ints.sum() == 6", "match"),
    (
        "indexOf",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1 && [1].lastIndexOf(2) == -1",
        "match",
    ),
    (
        "slice",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1].slice(1, 1) == [] && [1, 2].slice(0, 2) == [1, 2]",
        "match",
    ),
    ("slice beyond", "[1].slice(0, 2) == []", "error"),
    ("slice backwards", "[1, 2].slice(2, 1) == []", "error"),
    ("slice from before", "[1].slice(-1, 0) == []", "error"),
    (
        "flatten",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && dyn([dyn([1]), dyn([[2]])]).flatten() == [dyn(1), dyn([2])]",
        "match",
    ),
    (
        "flatten deep",
        "dyn([dyn([1]), dyn([[2]])]).flatten(2) == [1, 2] && dyn([[1]]).flatten(0) == [[1]]",
        "match",
    ),
    ("flatten by less than nothing", "dyn([[1]]).flatten(-1) == [1]", "error"),
    (
        "sort",
        f"[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && {D}.ints.sort() == [1, 2, 3]",
        "match",
    ),
    ("sort of two types", "dyn([dyn(1), dyn('a')]).sort() == []", "error"),
    ("sort of what has no order", "dyn([[1], [2]]).sort() == []", "error"),
    (
        "sortBy",
        "[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && ['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb']",
        "match",
    ),
    ("sortBy is stable", "['b1', 'a1', 'b0'].sortBy(x, x.charAt(1)) == ['b0', 'b1', 'a1']", "match"),
    (
        "distinct",
        "[1, 2, 1, 3].distinct() == [1, 2, 3] && [dyn(1), dyn(1.0)].distinct().size() == 1",
        "match",
    ),
    ("reverse", "[1, 2].reverse() == [2, 1]", "match"),
    ("range", "lists.range(3) == [0, 1, 2] && lists.range(0) == [] && lists.range(-1) == []", "match"),
    (
        "first and last",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !dyn([]).first().hasValue()",
        "match",
    ),
    (
        "sets: contains",
        "sets.contains([1, 2], [2]) && !sets.contains([1], [2]) && sets.contains([1], [])",
        "match",
    ),
    (
        "sets: equivalent",
        "sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1], [1, 2]) && !sets.equivalent([1, 2], [1])",
        "match",
    ),
    (
        "sets: intersects",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [1])",
        "match",
    ),
    ("sets of an attribute", f"sets.intersects({D}.strs, ['c', 'd'])", "match"),
    (
        "includes in a list",
        f"{D}.strs.includes('a') && !{D}.strs.includes('z') && !{D}.strs.includes(1)",
        "match",
    ),
    (
        "includes of a single value",
        f"{D}.s.includes('fish') && {D}.i.includes(42.0) && !{D}.v.includes('1.2.3')",
        "match",
    ),
    ("includes in versions", f"{D}.vers.includes(semver('1.0.0'))", "match"),
    ("includes up to the 48th", "lists.range(60).includes(47)", "match"),
    ("and not beyond", "lists.range(60).includes(48)", "error"),
    ("nor in shorter lists", "lists.range(48).includes(48)", "nomatch"),
]
LOOPS = [
    ("all", f"{D}.ints.all(x, x > 0) && !{D}.ints.all(x, x > 1) && [].all(x, false)", "match"),
    ("exists", f"{D}.ints.exists(x, x == 2) && !{D}.ints.exists(x, x == 9) && ![].exists(x, true)", "match"),
    ("all absorbs errors", "![1, 0].all(x, 1 / x == 2)", "match"),
    ("if one decides", "[1, 0].all(x, 1 / x == 1)", "error"),
    ("exists absorbs errors", "[0, 1].exists(x, 1 / x == 1)", "match"),
    ("if one decides", "[0, 1].exists(x, 1 / x == 2)", "error"),
    ("a step that is no bool", f"{D}.ints.all(x, dyn(x))", "error"),
    ("unless one decides", "[dyn(1), dyn(true)].exists(x, x)", "match"),
    (
        "exists_one",
        "[1, 2].exists_one(x, x == 1) && ![1, 1].exists_one(x, x == 1) && ![1].existsOne(x, x == 2)",
        "match",
    ),
    ("exists_one does not absorb", "[0, 1].exists_one(x, 1 / x == 1)", "error"),
    ("map", "[1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x * 2) == [4]", "match"),
    ("filter", "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1].filter(x, false) == []", "match"),
    ("filter does not absorb", "[0].filter(x, 1 / x == 1) == []", "error"),
    (
        "maps by key",
        "{'a': 1}.all(k, k == 'a') && {'a': 1}.map(k, k) == ['a'] && {'a': 1, 'b': 2}.filter(k, k == 'b') == ['b']",
        "match",
    ),
    (
        "two names in a list",
        "[5, 6].all(i, v, v - i == 5) && [5].exists(i, v, i == 0 && v == 5) && [5].existsOne(i, v, v == 5)",
        "match",
    ),
    (
        "two names in a map",
        "{'a': 1}.all(k, v, k == 'a' && v == 1) && {'a': 1}.exists_one(k, v, v == 1)",
        "match",
    ),
    (
        "transformList",
        "[1, 2].transformList(i, v, i + v) == [1, 3] && {'a': 1}.transformList(k, v, v) == [1]",
        "match",
    ),
    ("with a predicate", "[1, 2].transformList(i, v, v > 1, v) == [2]", "match"),
    (
        "transformMap",
        "[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4} && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "match",
    ),
    ("with a predicate", "{1: 2, 3: 4}.transformMap(k, v, k > 1, v + 1) == {3: 5}", "match"),
    (
        "transformMapEntry",
        "{1: 2}.transformMapEntry(k, v, {v: k}) == {2: 1} && [1, 2].transformMapEntry(i, v, v > 1, {v: i}) == {2: 1}",
        "match",
    ),
    ("the same key twice", "[1, 2].transformMapEntry(i, v, {'a': v}) == {}", "error"),
    ("of a number", f"{D}.i.map(x, x) == []", "error"),
    ("of a number with two names", f"{D}.i.all(k, v, true)", "error"),
    ("in a loop", "[1, 2].all(x, [3, 4].all(y, x < y))", "match"),
    ("a name hides another", "[1].all(x, [2].all(x, x == 2) && x == 1)", "match"),
    ("the capacity", "device.capacity['d'].exists(k, v, v.isGreaterThan(quantity('99E')))", "match"),
]
OPTIONALS = [
    (
        "a branch makes one optional of two",
        "(true ? optional.of(optional.of(1)) : optional.none()) == dyn(optional.of(1))",
        "match",
    ),
    (
        "so they do not differ",
        "(true ? optional.of(optional.of(1)) : dyn(optional.of(2))) != dyn(optional.of(1))",
        "nomatch",
    ),
    ("elsewhere they are two", "optional.of(optional.of(1)) != dyn(optional.of(1))", "match"),
    (
        "a name makes one of two",
        "cel.bind(x, optional.of(optional.of(1)), x == dyn(optional.of(1)))",
        "match",
    ),
    ("and optMap", f"{D}.?i.optMap(x, optional.of(1)) == dyn(optional.of(1))", "match"),
    (
        "nothing in an optional becomes null",
        "(true ? dyn(optional.of(optional.none())) : 1) == dyn(optional.of(null))",
        "match",
    ),
    ("a type becomes its name", "(true ? dyn(optional.of(type(1))) : 1) == dyn(optional.of('int'))", "match"),
    (
        "a quantity does not come out of a branch",
        "(true ? optional.of(quantity('1')) : optional.none()).value() == quantity('1')",
        "error",
    ),
    ("nor of a name", "cel.bind(x, optional.of(semver('1.0.0')), x.value() == semver('1.0.0'))", "error"),
    ("nor of optMap", f"{D}.?i.optMap(x, quantity('1')).value() == quantity('1')", "error"),
    ("a path is not taken apart", "(true ? device.capacity['d'].?q : optional.none()).hasValue()", "match"),
    ("unwrap of what is no optional", "optional.unwrap(dyn([1])) == [1]", "error"),
    (
        "a field that is there",
        f"{D}.?yes.orValue(false) && {D}.?yes.hasValue() && {D}[?'yes'].value()",
        "match",
    ),
    (
        "a field that is not",
        f"{D}.?gone.orValue(true) && !{D}.?gone.hasValue() && !{D}[?'gone'].hasValue()",
        "match",
    ),
    ("its value", f"{D}.?gone.value() == 1", "error"),
    (
        "a field of it",
        f"!{D}.?gone.x.hasValue() && !{D}.?gone[0].hasValue() && !{D}.?gone.?x.hasValue()",
        "match",
    ),
    (
        "a field of what is there",
        "{'a': {'b': 1}}.?a.b.value() == 1 && {'a': {'b': 1}}.?a['b'].value() == 1 && has({'a': {'b': 1}}.?a.b)",
        "match",
    ),
    ("of a variable's field", "device.?driver.value() == 'd'", "match"),
    ("an element", "[1][?0].value() == 1 && ![1][?1].hasValue() && ![1][?-1].hasValue()", "match"),
    ("by a text", "[1][?dyn('a')].hasValue()", "error"),
    ("of a number", f"{D}.i[?0].hasValue()", "error"),
    ("an optional field of a number is none", f"{D}.i.?x.hasValue()", "nomatch"),
    ("or", f"{D}.?gone.or({D}.?i).value() == 42 && {D}.?i.or(optional.none()).value() == 42", "match"),
    (
        "the alternative is lazy",
        f"{D}.?i.orValue(1 / 0) == 42 && {D}.?i.or(optional.of(1 / 0)).value() == 42",
        "match",
    ),
    ("or of what is no optional", f"dyn({D}.i).or(optional.of(1)).hasValue()", "error"),
    ("orValue of what is no optional", f"dyn({D}.i).orValue(1) == 1", "error"),
    ("or to what is no optional", "optional.none().or(dyn(1)).hasValue()", "error"),
    ("optMap", f"{D}.?i.optMap(x, x + 1).value() == 43 && !{D}.?gone.optMap(x, x + 1).hasValue()", "match"),
    ("optMap of what is no optional", f"dyn({D}.i).optMap(x, x).hasValue()", "error"),
    (
        "optFlatMap",
        f"{D}.?i.optFlatMap(x, optional.of(x)).value() == 42 && !{D}.?i.optFlatMap(x, optional.none()).hasValue()",
        "match",
    ),
    ("optFlatMap to what is none, computed", f"{D}.?i.optFlatMap(x, dyn(1)).hasValue()", "error"),
    (
        "ofNonZeroValue",
        "!optional.ofNonZeroValue(0).hasValue() && optional.ofNonZeroValue(1).hasValue() && !optional.ofNonZeroValue('').hasValue()",
        "match",
    ),
    (
        "of the empty",
        "!optional.ofNonZeroValue([]).hasValue() && !optional.ofNonZeroValue({}).hasValue() && !optional.ofNonZeroValue(null).hasValue()",
        "match",
    ),
    (
        "of false and of nothing",
        "!optional.ofNonZeroValue(false).hasValue() && !optional.ofNonZeroValue(duration('0s')).hasValue() && !optional.ofNonZeroValue(optional.none()).hasValue()",
        "match",
    ),
    (
        "unwrap",
        "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
        "match",
    ),
    (
        "optional elements",
        "[?optional.of(1), ?optional.none(), 2] == [1, 2] && {?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}",
        "match",
    ),
    ("that are none, computed", "[?dyn(1)] == []", "error"),
    (
        "optionals are equal by value",
        "optional.of(1) == optional.of(1) && optional.of(1) != optional.of(2) && optional.none() != optional.of(1)",
        "match",
    ),
]
NETWORK = [
    ("families", "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6", "match"),
    (
        "what is an address",
        "isIP('10.0.0.1') && isIP('2001:db8::68') && !isIP('10.0.0') && !isIP('2001:db8:::68') && !isIP('01.2.3.4')",
        "match",
    ),
    (
        "without a zone, not mapped",
        "!isIP('fe80::1%en0') && !isIP('::ffff:10.0.0.1') && isIP('::1.2.3.4')",
        "match",
    ),
    ("a text that is none", f"ip({D}.s).family() == 4", "error"),
    (
        "as text",
        "string(ip('2001:DB8:0::68')) == '2001:db8::68' && ip.isCanonical('10.0.0.1') && !ip.isCanonical('2001:DB8::1')",
        "match",
    ),
    (
        "kinds",
        "ip('0.0.0.0').isUnspecified() && ip('127.0.0.9').isLoopback() && ip('169.254.1.1').isLinkLocalUnicast()",
        "match",
    ),
    (
        "multicast",
        "ip('224.0.0.9').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast() && ip('ff12::1').isLinkLocalMulticast() && !ip('fd00::1').isLinkLocalMulticast()",
        "match",
    ),
    (
        "ordinary ones",
        "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()",
        "match",
    ),
    (
        "equality",
        "ip('::1') == ip('0::1') && ip('10.0.0.1') != ip('10.0.0.2') && dyn(ip('::1')) != 1",
        "match",
    ),
    (
        "what is a block",
        "isCIDR('10.0.0.0/8') && isCIDR('::/0') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('x/8')",
        "match",
    ),
    (
        "contains an address",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.9')) && cidr('192.168.0.0/24').containsIP('192.168.0.9') && !cidr('192.168.0.0/24').containsIP('192.168.1.9')",
        "match",
    ),
    ("of the other family", "cidr('2001:db8::/32').containsIP(ip('10.0.0.1'))", "nomatch"),
    (
        "contains a block",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8')) && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/16')",
        "match",
    ),
    (
        "its parts",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').prefixLength() == 8 && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "match",
    ),
    (
        "as text",
        "string(cidr('10.1.2.3/8')) == '10.1.2.3/8' && cidr('10.1.2.3/8') != cidr('10.0.0.0/8')",
        "match",
    ),
    ("a text that is none", f"cidr({D}.s).prefixLength() == 4", "error"),
    ("contains a text that is none", "cidr('10.0.0.0/8').containsIP('x')", "error"),
]
URLS = [
    (
        "its parts",
        "url('https://u@h.io:80/p/q?a=1&a=2&b=%20#f').getScheme() == 'https' && url('https://u@h.io:80/p').getHost() == 'h.io:80'",
        "match",
    ),
    (
        "host and port",
        "url('https://h.io:80/').getHostname() == 'h.io' && url('https://h.io:80/').getPort() == '80' && url('https://h.io/').getPort() == ''",
        "match",
    ),
    (
        "in brackets",
        "url('http://[::1]:8080/x').getHost() == '[::1]:8080' && url('http://[::1]:8080/x').getHostname() == '::1' && url('http://[::1]/x').getPort() == ''",
        "match",
    ),
    (
        "path",
        "url('https://h.io/a b').getEscapedPath() == '/a%20b' && url('/only/path').getEscapedPath() == '/only/path' && url('https://h.io').getEscapedPath() == ''",
        "match",
    ),
    (
        "query",
        "url('/x?a=1&a=2&b=%20+c').getQuery() == {'a': ['1', '2'], 'b': ['  c']} && url('/x').getQuery() == {}",
        "match",
    ),
    ("a query with a bad escape is left out", "url('/x?a=%zz&b=1').getQuery() == {'b': ['1']}", "match"),
    (
        "what is a URL",
        "isURL('https://h.io') && isURL('/path') && isURL('mailto:a@b') && !isURL('h.io/x') && !isURL('../x') && !isURL('')",
        "match",
    ),
    (
        "what is none",
        "!isURL('https://h io/') && !isURL('https://h.io:x/') && !isURL('/%zz') && !isURL('https://h.io/\\n') && !isURL('http://[::1/')",
        "match",
    ),
    ("a text that is none", f"url({D}.s).getHost() == ''", "error"),
    ("equality", "url('/a') == url('/a') && url('/a') != url('/b') && dyn(url('/a')) != 1", "match"),
]
NAMED = [
    (
        "a label",
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('My').hasValue()",
        "match",
    ),
    ("says what is wrong", "format.dns1123Label().validate('My').value().size() == 1", "match"),
    (
        "too long",
        "format.dns1123Label().validate('a' + 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').hasValue()",
        "match",
    ),
    (
        "a subdomain",
        "!format.dns1123Subdomain().validate('a.b-c').hasValue() && format.dns1123Subdomain().validate('a..b').hasValue()",
        "match",
    ),
    (
        "a label that begins with a letter",
        "!format.dns1035Label().validate('a1').hasValue() && format.dns1035Label().validate('1a').hasValue()",
        "match",
    ),
    (
        "a qualified name",
        "!format.qualifiedName().validate('a.b/C_d').hasValue() && format.qualifiedName().validate('A/b').hasValue() && !format.qualifiedName().validate('x').hasValue()",
        "match",
    ),
    (
        "prefixes may end in a dash",
        "!format.dns1123LabelPrefix().validate('a-').hasValue() && format.dns1123Label().validate('a-').hasValue() && !format.dns1035LabelPrefix().validate('ab-').hasValue()",
        "match",
    ),
    (
        "a label value may be empty",
        "!format.labelValue().validate('').hasValue() && !format.labelValue().validate('A_b.c').hasValue() && format.labelValue().validate('a b').hasValue()",
        "match",
    ),
    (
        "uri",
        "!format.uri().validate('https://a').hasValue() && format.uri().validate('a').hasValue()",
        "match",
    ),
    (
        "uuid",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue() && format.uuid().validate('123').hasValue()",
        "match",
    ),
    (
        "byte",
        "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('aGVsbG8').hasValue()",
        "match",
    ),
    (
        "date",
        "!format.date().validate('2024-02-29').hasValue() && format.date().validate('2023-02-29').hasValue()",
        "match",
    ),
    (
        "datetime",
        "!format.datetime().validate('2024-02-29T01:02:03Z').hasValue() && format.datetime().validate('2024-02-29').hasValue()",
        "match",
    ),
    (
        "by name",
        "format.named('dns1123Label').value() == format.dns1123Label() && !format.named('x').hasValue() && format.uri() != format.uuid()",
        "match",
    ),
]
TIMES = [
    (
        "parts of a timestamp",
        "timestamp('2009-02-13T23:31:30.5Z').getFullYear() == 2009 && timestamp('2009-02-13T23:31:30.5Z').getMonth() == 1 && timestamp('2009-02-13T23:31:30.5Z').getDate() == 13",
        "match",
    ),
    (
        "days",
        "timestamp('2009-02-13T23:31:30Z').getDayOfMonth() == 12 && timestamp('2009-02-13T23:31:30Z').getDayOfWeek() == 5 && timestamp('2009-02-13T23:31:30Z').getDayOfYear() == 43",
        "match",
    ),
    (
        "time of day",
        "timestamp('2009-02-13T23:31:30.5Z').getHours() == 23 && timestamp('2009-02-13T23:31:30.5Z').getMinutes() == 31 && timestamp('2009-02-13T23:31:30.5Z').getSeconds() == 30 && timestamp('2009-02-13T23:31:30.5Z').getMilliseconds() == 500",
        "match",
    ),
    (
        "in a zone",
        "timestamp('2009-02-13T02:00:00Z').getDate('-02:30') == 12 && timestamp('2009-02-13T23:31:30Z').getHours('+02:00') == 1 && timestamp(0).getHours('UTC') == 0",
        "match",
    ),
    ("in a zone with a name", "timestamp(0).getHours('Europe/Berlin') == 1", "error"),
    (
        "before 1970",
        "timestamp('1969-12-31T23:59:59Z').getFullYear() == 1969 && timestamp('0001-01-01T00:00:00Z').getDayOfWeek() == 1",
        "match",
    ),
    (
        "leap years",
        "timestamp('2000-02-29T00:00:00Z').getDayOfYear() == 59 && timestamp('2000-12-31T00:00:00Z').getDayOfYear() == 365 && timestamp('1900-12-31T00:00:00Z').getDayOfYear() == 364",
        "match",
    ),
    (
        "with an offset",
        "timestamp('2024-01-01T02:00:00+02:00') == timestamp('2024-01-01T00:00:00Z') && timestamp('2024-01-01T00:00:00-01:00') == timestamp('2024-01-01T01:00:00Z')",
        "match",
    ),
    (
        "as text",
        "string(timestamp('2024-02-29T01:02:03.040Z')) == '2024-02-29T01:02:03.04Z' && string(timestamp('0001-01-01T00:00:00Z')) == '0001-01-01T00:00:00Z'",
        "match",
    ),
    ("a day that does not exist", "timestamp('2023-02-29T00:00:00Z') == timestamp(0)", "compile"),
    ("a month that does not", "timestamp('2023-13-01T00:00:00Z') == timestamp(0)", "compile"),
    ("an hour that does not", "timestamp('2023-01-01T24:00:00Z') == timestamp(0)", "compile"),
    ("before the calendar", "timestamp('0000-01-01T00:00:00Z') == timestamp(0)", "compile"),
    ("the last second", "timestamp('9999-12-31T23:59:59Z') > timestamp(0)", "match"),
    ("after the last", "timestamp(253402300800) > timestamp(0)", "compile"),
    (
        "durations",
        "duration('1h1m1s') == duration('3661s') && duration('1.5h') == duration('90m') && duration('-1m') == duration('-60s') && duration('0') == duration('0s')",
        "match",
    ),
    (
        "small units",
        "duration('1ms') == duration('1000us') && duration('1us') == duration('1000ns') && duration('+.5s') == duration('500ms')",
        "match",
    ),
    (
        "their parts",
        "duration('3730s').getHours() == 1 && duration('3730s').getMinutes() == 62 && duration('3730s').getSeconds() == 3730 && duration('1.234s').getMilliseconds() == 234",
        "match",
    ),
    ("towards zero", "duration('-90s').getMinutes() == -1", "match"),
    ("without a unit", "duration('1') == duration('1s')", "compile"),
    ("of nothing but a unit", "duration('h') == duration('1h')", "compile"),
    ("of nothing", "duration('') == duration('0')", "compile"),
    ("too long", "duration('9223372037s') > duration('1s')", "compile"),
]

TABLES = {
    "strings": STRINGS,
    "format": FORMAT,
    "conversions": CONVERSIONS,
    "lists": LISTS,
    "loops": LOOPS,
    "optionals": OPTIONALS,
    "network": NETWORK,
    "urls": URLS,
    "named formats": NAMED,
    "times": TIMES,
}
CASES = [
    (f"{name} {at}: {case[0]}", *case[1:]) for name, table in TABLES.items() for at, case in enumerate(table)
]


@pytest.mark.parametrize(("reason", "expression", "expected"), CASES, ids=[case[0] for case in CASES])
def test_libraries(reason: str, expression: str, expected: str) -> None:
    found = outcome(expression)
    assert found.kind == expected, (reason, found.message)

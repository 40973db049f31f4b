"""What a device is to a selector: names, domains, presence, conversion."""

import pytest

from function.cel import bind_device, compile_device
from tests.cel.devices import H200, MIXED, bound, outcome, says

CASES = [
    ("the driver is a string", 'device.driver == "d"', "match"),
    ("a bare name is in the driver's domain", 'device.attributes["d"].i == 42', "match"),
    ("a name splits at its first slash", 'device.attributes["a"]["b/c"] == 1', "match"),
    ("a qualified name is in its own domain", 'device.attributes["other.org"].i == 9', "match"),
    ("and not in the driver's", 'device.attributes["d"]["other.org/i"] == 9', "error"),
    ("capacity splits in the same way", 'device.capacity["other.org"].q == quantity("3")', "match"),
    ("brackets and dots are the same", 'device["attributes"]["d"].i == 42', "compile"),
    ("the id may be bracketed", 'device.attributes["d"]["i"] == 42', "match"),
    ("the domain may be selected", "device.attributes.d.i == 42", "match"),
    ("an unknown field does not compile", "device.nosuch == 1", "compile"),
    ("there is no other variable", "cluster.name == 'a'", "compile"),
    ("an unknown domain is an empty map", 'device.attributes["nosuch"].size() == 0', "match"),
    ("which equals an empty map", "device.attributes.nosuch == {}", "match"),
    ("and is there for has()", "has(device.attributes.nosuch)", "match"),
    ("and for optionals", 'device.attributes[?"nosuch"].hasValue()', "match"),
    ("and for optional fields", "device.attributes.?nosuch.hasValue()", "match"),
    ("but not for in", '"nosuch" in device.attributes', "nomatch"),
    ("in sees real domains", '"d" in device.attributes && "other.org" in device.capacity', "match"),
    ("iteration sees real domains only", "device.attributes.map(k, k).size() == 3", "match"),
    ("size counts real domains only", "size(device.capacity) == 2", "match"),
    ("an unknown id is an error", 'device.attributes["d"].nosuch == 1', "error"),
    ("also in an unknown domain", 'device.attributes["nosuch"].nosuch == 1', "error"),
    ("has() of an unknown id is false", 'has(device.attributes["d"].nosuch)', "nomatch"),
    ("has() of a known id is true", 'has(device.attributes["d"].no)', "match"),
    ("has() takes a selection only", 'has(device.attributes["d"])', "compile"),
    ("has() takes no optional selection", "has(device.?driver)", "compile"),
    ("has() of a field is true", "has(device.driver) && has(device.capacity)", "match"),
    ("has() below a bool is false", 'has(device.attributes["d"].yes.x)', "nomatch"),
    ("capacity's unknown id is an error", 'device.capacity["d"].nosuch == quantity("1")', "error"),
    ("in finds an id", '"i" in device.attributes["d"]', "match"),
    ("in does not find an unknown id", '"nosuch" in device.attributes["d"]', "nomatch"),
    ("a device is a list of nothing", "device.exists(x, true)", "compile"),
    ("a device equals itself", "device == device", "match"),
    ("unset allowMultipleAllocations is false", "!device.allowMultipleAllocations", "match"),
    ("and is there", "has(device.allowMultipleAllocations)", "match"),
    ("the result must be a bool", 'device.attributes["d"].i', "error"),
    ("a bool attribute will do", 'device.attributes["d"].yes', "match"),
    ("a false attribute does not match", 'device.attributes["d"].no', "nomatch"),
    ("a static type that is no bool does not compile", "device.driver", "compile"),
    ("nor a map", "device.attributes", "compile"),
    ("nor a quantity", 'device.capacity["d"].q', "compile"),
    ("a list attribute is a list", 'device.attributes["d"].ints == [3, 1, 2]', "match"),
    ("of strings", '"b" in device.attributes["d"].strs', "match"),
    ("of bools", 'device.attributes["d"].bools.exists(x, x)', "match"),
    ("of versions", 'device.attributes["d"].vers[1] == semver("2.0.0")', "match"),
    ("an attribute may be called like a keyword", 'device.attributes["d"].package == 1', "error"),
    ("but not like a word of the grammar", 'device.attributes["d"].in == 1', "compile"),
    ("nor null", 'device.attributes["d"].null == 1', "compile"),
]


@pytest.mark.parametrize(("reason", "expression", "expected"), CASES, ids=[case[0] for case in CASES])
def test_the_device_variable(reason: str, expression: str, expected: str) -> None:
    assert says(expression) == expected, reason


def test_allow_multiple_allocations_is_read() -> None:
    assert says("device.allowMultipleAllocations", MIXED | {"allow_multiple": True}) == "match"


BAD = [
    ("no known kind", {"nope": 1}, "unsupported attribute value"),
    ("nothing at all", {}, "unsupported attribute value"),
    ("not even a map", "x", "unsupported attribute value"),
    ("a version that is not strict", {"version": "v1.0"}, "v1.0"),
    ("a version of two parts", {"version": "1.0"}, "1.0"),
    ("an int that is a text", {"int": "3"}, "not a int"),
    ("an int that is a bool", {"int": True}, "not a int"),
    ("an int with a fraction", {"int": 1.5}, "not a int"),
    ("an int beyond 64 bits", {"int": 2**63}, "64 bits"),
    ("a bool that is an int", {"bool": 1}, "not a bool"),
    ("a string that is an int", {"string": 1}, "not a string"),
    ("a list that is none", {"ints": 1}, "not a list"),
    ("a list with a wrong element", {"strings": ["a", 1]}, "not a string"),
    ("a list of bad versions", {"versions": ["1"]}, "'1'"),
    ("a nested list that is none", {"list": {"int": 1}}, "unsupported attribute value"),
    ("NaN", {"int": float("nan")}, "not a int"),
    ("a list with an unhashable element", {"strings": [["a"]]}, "not a string"),
]


@pytest.mark.parametrize(("reason", "value", "part"), BAD, ids=[case[0] for case in BAD])
def test_one_bad_value_makes_every_evaluation_an_error(reason: str, value: object, part: str) -> None:
    subject = bind_device(driver="d", attributes={"good": {"int": 1}, "bad": value}, capacity={})
    result = compile_device("true").evaluate(subject)
    assert result.kind == "error", reason
    assert result.message.startswith("attribute bad: "), reason
    assert part in result.message, reason


@pytest.mark.parametrize(
    "amount", [{"value": "80GB"}, {"value": True}, {"value": 1.5}, {}, None, {"value": ["1"]}]
)
def test_a_bad_capacity_makes_every_evaluation_an_error(amount: object) -> None:
    result = compile_device("true").evaluate(bind_device(driver="d", attributes={}, capacity={"m": amount}))
    assert result.kind == "error"
    assert result.message.startswith("capacity m: ")


def test_a_struct_number_without_a_fraction_is_an_int() -> None:
    device = {"driver": "d", "attributes": {"i": {"int": 3.0}}, "capacity": {"n": {"value": 8}}}
    assert (
        says('device.attributes["d"].i + 1 == 4 && device.capacity["d"].n.asInteger() == 8', device)
        == "match"
    )


def test_lists_win_over_single_values() -> None:
    device = {"driver": "d", "attributes": {"x": {"int": 1, "ints": [1, 2]}}, "capacity": {}}
    assert says('device.attributes["d"].x.size() == 2', device) == "match"


def test_the_first_bad_value_by_name_is_the_one_reported() -> None:
    subject = bind_device(driver="d", attributes={"z": {}, "a": {}}, capacity={"b": {}})
    assert compile_device("true").evaluate(subject).message.startswith("attribute a:")


def test_an_error_names_what_the_device_lacks() -> None:
    assert outcome('device.attributes["dra.net"].rdma', H200).message == (
        "no such key: rdma (the device has no attribute dra.net/rdma)"
    )
    assert (
        "no capacity gpu.nvidia.com/hbm"
        in outcome(
            'device.capacity["gpu.nvidia.com"].hbm == 1 || false'.replace("== 1", "!= quantity('1')"), H200
        ).message
    )


def test_subjects_are_equal_by_content() -> None:
    again = {**MIXED, "attributes": dict(reversed(MIXED["attributes"].items()))}
    assert bound(MIXED) == bound(again)
    assert hash(bound(MIXED)) == hash(bound(again))
    other = {**MIXED, "attributes": {**MIXED["attributes"], "i": {"int": 43}}}
    assert bound(MIXED) != bound(other)
    assert bound(MIXED) != bound(MIXED | {"driver": "e"})
    assert bound(MIXED) != "a device"


def test_one_as_int_and_true_as_bool_are_different_content() -> None:
    one, true = (
        {"driver": "d", "attributes": {"x": {kind: value}}, "capacity": {}}
        for kind, value in (("int", 1), ("bool", True))
    )
    assert bound(one) != bound(true)


def test_iteration_does_not_depend_on_the_order_of_publication() -> None:
    again = {**MIXED, "attributes": dict(reversed(MIXED["attributes"].items()))}
    expression = 'device.attributes["d"].map(k, k)[0] == "bools"'
    assert says(expression) == says(expression, again) == "match"

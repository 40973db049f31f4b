"""The catalogue of machine types: data that keeps the schema, and classes made from it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from function.api.declared_cluster import InferenceClass
from function.catalogue import NETWORK_DRIVER, UnknownMachineType, entry, machine_types
from function.cel.library.quantity import quantity
from function.cluster.classes import devices_of
from tests.cluster.build import Case, reason
from tests.schema.admission import refusals
from tests.schema.crds import schema_of

Plain = dict[str, Any]
SILENT = {"tpu.google.com", "gaudi.intel.com"}
"""Drivers that publish no memory."""
FROM = {"machineType": "aws/p5en.48xlarge", "revision": 1}


def inference_class(**spec: Any) -> Plain:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": "c"},
        "spec": spec,
    }


def test_there_are_about_twenty_of_the_big_clouds_and_neoclouds() -> None:
    assert len(machine_types()) >= 20
    assert {name.partition("/")[0] for name in machine_types()} >= {"aws", "azure", "coreweave", "gcp", "oci"}


@pytest.mark.parametrize("name", machine_types())
def test_every_entry_is_a_class_with_its_source(name: str) -> None:
    content = entry(name)
    assert content["machineType"] == name
    assert content["source"]
    assert content["revision"] >= 1
    made = inference_class(**content["spec"])
    assert not refusals(made, schema_of("InferenceClass"))
    InferenceClass.parse(made)


@pytest.mark.parametrize("name", machine_types())
def test_network_devices_have_one_driver(name: str) -> None:
    """What `size` asks for without a fleet is what a fleet of the catalogue publishes."""
    drivers = {device["driver"] for device in entry(name)["spec"]["devices"] if device["name"] == "nic"}
    assert drivers <= {NETWORK_DRIVER}


@pytest.mark.parametrize("name", machine_types())
def test_usable_memory_is_never_above_the_nominal(name: str) -> None:
    """A driver reports usable memory: a class that says more than the box never binds."""
    content = entry(name)
    usable = [
        device["capacity"]["memory"]["value"] for device in content["spec"]["devices"] if "capacity" in device
    ]
    drivers = {device["driver"] for device in content["spec"]["devices"]}
    if drivers & SILENT:
        assert "nominalMemory" not in content
        assert not usable, "a selector by memory would match, and the claim never bind"
        return
    nominal = quantity(content["nominalMemory"])
    assert usable
    assert all(quantity(memory).compare(nominal) <= 0 for memory in usable)


@pytest.mark.parametrize(
    ("name", "count", "product"),
    [
        ("aws/g6.xlarge", 1, "NVIDIA L4"),
        ("aws/g6.4xlarge", 1, "NVIDIA L4"),
        ("aws/g6.24xlarge", 4, "NVIDIA L4"),
        ("gcp/g2-standard-48", 4, "NVIDIA L4"),
        ("gcp/a3-megagpu-8g", 8, "NVIDIA H100 80GB HBM3"),
        ("gcp/a4x-highgpu-4g", 4, "NVIDIA GB200"),
        ("nvidia/hgx-h200", 8, "NVIDIA H200"),
    ],
)
def test_small_new_and_own_machines_are_there(name: str, count: int, product: str) -> None:
    gpu = entry(name)["spec"]["devices"][0]
    assert (gpu["count"], gpu["attributes"]["productName"]["string"]) == (count, product)


def test_a_class_from_a_machine_type_has_its_devices() -> None:
    assert [device["name"] for device in devices_of(inference_class(**{"from": FROM}))] == ["gpu", "nic"]


def test_devices_override_by_name_field_by_field_and_maps_key_by_key() -> None:
    overrides = [
        {"name": "gpu", "count": 4, "attributes": {"architecture": {"string": "Other"}}},
        {"name": "disk", "driver": "d", "claim": "Synthetic"},
    ]
    gpu, nic, disk = devices_of(inference_class(**{"from": FROM}, devices=overrides))
    assert (gpu["count"], gpu["driver"]) == (4, "gpu.nvidia.com")
    assert gpu["attributes"]["architecture"] == {"string": "Other"}
    assert gpu["attributes"]["productName"] == {"string": "NVIDIA H200"}
    assert (nic["count"], disk["name"]) == (16, "disk")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (
            {"from": {"machineType": "aws/p5en.48xlarge"}},
            "it must not change with the function",
        ),
        ({"from": {"machineType": "aws/none", "revision": 1}}, "no such type"),
        ({"from": {**FROM, "revision": 99}}, "no such revision"),
        ({"from": FROM, "devices": [{"name": "gpu", "count": 1.5}]}, "an override that makes no device"),
        ({"from": FROM, "devices": [{"name": "new"}]}, "an addition that is no device"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: Plain, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        devices_of(inference_class(**spec))
    assert str(raised.value), reason


def test_an_unknown_machine_type_is_answered_with_those_of_its_provider() -> None:
    with pytest.raises(UnknownMachineType, match="p5en"):
        entry("aws/p5en")


ODD = [
    ("x", "spec.devices: expected a list, found a string", "a text for the list"),
    (7, "spec.devices: expected a list, found a number", "a number for the list"),
    ({"a": 1}, "spec.devices: expected a list, found a map", "a map for the list"),
    ([None], "spec.devices[0]: expected a map, found null", "a device that is none"),
    (["gpu"], "spec.devices[0]: expected a map, found a string", "the name of a device for the device"),
    ([{}], "spec.devices[0].name: expected the name of a device, found null", "nobody says which"),
    ([{"name": ["gpu"]}], "spec.devices[0].name: expected the name of a device, found a list", "no text"),
    ([{"name": "gpu", "attributes": "x"}], "spec.devices[0].attributes: expected a map", "would be ignored"),
    ([{"name": "gpu", "capacity": 7}], "spec.devices[0].capacity: expected a map", "would be ignored"),
    ([{"name": "gpu"}, {"name": "gpu"}], 'the name "gpu" is used twice', "the first would be ignored"),
]


@pytest.mark.parametrize(("devices", "said", "why"), ODD, ids=[row[2] for row in ODD])
def test_an_override_that_cannot_be_read_is_a_fault_of_the_class(devices: Any, said: str, why: str) -> None:
    made = inference_class(**{"from": FROM, "devices": devices})
    with pytest.raises(ValueError, match=re.escape(said)):
        devices_of(made)
    settled = Case(classes={"h200": named(inference_class(**{"from": FROM}))}).settled()
    settled.classes["h200"] = named(made)
    response = settled.answer()
    assert reason(response, "PoolsPublished") == "ClassUnreadable", why
    assert response.status["gpuPools"] == settled.cluster["status"]["gpuPools"]
    assert set(response.desired) == set(settled.observed)


def named(content: Plain) -> Plain:
    """Return a class under the name that the cluster's pool refers to."""
    return {**content, "metadata": {"name": "h200"}}

"""The catalogue of machine types: data that keeps the schema, and classes made from it."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.inference_class import InferenceClass
from function.catalogue import UnknownMachineType, entry, machine_types
from function.cel.library.quantity import quantity
from function.cluster.classes import devices_of
from tests.schema.admission import refusals
from tests.schema.crds import schema_of

Plain = dict[str, Any]
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
def test_usable_memory_is_never_above_the_nominal(name: str) -> None:
    """A driver reports usable memory: a class that says more than the box never binds."""
    content = entry(name)
    nominal = quantity(content["nominalMemory"])
    usable = [
        device["capacity"]["memory"]["value"] for device in content["spec"]["devices"] if "capacity" in device
    ]
    assert usable
    assert all(quantity(memory).compare(nominal) <= 0 for memory in usable)


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

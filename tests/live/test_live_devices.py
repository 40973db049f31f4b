"""`drift` and `class` read a real API server, which also says whether recorded slices have its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli.command import run
from tests.cli.describe import published_memory
from tests.live.account import kubeconfig
from tests.live.plane import Refused, name_of
from tests.support.slices import AMD, H200, MIG, NIC, TPU, devices, node, resource_slice, slice_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = pytest.mark.live

NODES = ("devices-1", "devices-2", "devices-3")
DRIVERS = {"gpu.nvidia.com": (H200, 2), "dra.net": (NIC, 1)}
OTHERS = {"gpu.amd.com": AMD, "tpu.google.com": TPU, "mig.nvidia.com": MIG}
VERSION = "/apis/resource.k8s.io/v1/resourceslices"


@pytest.fixture(scope="module")
def reader(living: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a service account with nothing but the example role."""
    slices = [
        resource_slice(name, devices(kind, count), driver)
        for name in NODES
        for driver, (kind, count) in DRIVERS.items()
    ]
    for content in slices:
        living.request("POST", VERSION, {**content, "metadata": {"name": slice_name(content)}})
    living.apply(*map(node, NODES))
    living.kubectl("apply", "-f", "example/operate/device-reader.yaml")
    words = ("--clusterrole=fleet-scheduler-device-reader", "--serviceaccount=default:device-reader")
    living.kubectl("create", "clusterrolebinding", "device-readers", *words)
    yield kubeconfig(living, tmp_path_factory.mktemp("reader"), "default", "device-reader")
    living.kubectl("delete", "resourceslices", *map(slice_name, slices))
    living.kubectl("delete", "node", *NODES)


@pytest.mark.parametrize("driver", OTHERS)
def test_the_recorded_shape_is_one_that_an_api_server_takes(living: ControlPlane, driver: str) -> None:
    content = resource_slice("devices-1", devices(OTHERS[driver], 2), driver)
    content["metadata"] = {"name": slice_name(content)}
    assert living.request("POST", f"{VERSION}?dryRun=All&fieldValidation=Strict", content)
    content["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "u", "int": 1}
    with pytest.raises(Refused, match="attributes"):
        living.request("POST", f"{VERSION}?dryRun=All", content)


def test_drift_reads_the_cluster_itself(living: ControlPlane, reader: Path, tmp_path: Path, day: Day) -> None:
    seen = tmp_path / "seen.yaml"
    seen.write_text(living.kubectl("get", "resourceslices,nodes", "-o", "yaml"))
    for memory, code in (("143771Mi", 0), ("141Gi", 2)):
        cluster = published_memory(tmp_path / "cluster.yaml", memory)
        with day.step(f"fleet-scheduler drift, class of {memory}", "what the dump of the cluster says"):
            there = run("drift", cluster, "--kubeconfig", reader)
        assert (there.code, there.out) == (code, run("drift", cluster, seen).out)
    made = run("class", "--kubeconfig", reader, "--name", "h200")
    assert made.code == 0, made.err
    assert name_of(yaml.safe_load(made.out)) == "h200"
    assert made.out == run("class", seen, "--name", "h200").out

"""`class` and `drift`, as a person calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from function.cli import live as connection
from tests.cli.command import Ran, run
from tests.cli.describe import published_memory
from tests.support import apiserver
from tests.support.slices import H200, devices, node, resource_slice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    path = tmp_path / "seen.yaml"
    path.write_text(yaml.safe_dump_all([resource_slice("n1", devices(H200, 2)), node("n1")]))
    return path


def test_a_machine_type_is_printed_as_a_class() -> None:
    ran = run("class", "aws/p5en.48xlarge")
    assert ran.code == 0
    assert yaml.safe_load(ran.out)["metadata"]["name"] == "aws-p5en-48xlarge"


def test_slices_become_a_class(seen: Path) -> None:
    ran = run("class", seen, "--name", "h200")
    assert ran.code == 0, ran.err
    (entry,) = yaml.safe_load(ran.out)["spec"]["devices"]
    assert (entry["name"], entry["count"], entry["capacity"]) == ("gpu", 2, H200["capacity"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("class",), "name a machine type"),
        (("class", "aws/none"), "no such file"),
        (("class", "aws/p5.48xlarg"), "did you mean aws/p5.48xlarge"),
        (("class", "p5.48xlarge"), "did you mean aws/p5.48xlarge?"),
        (("class", "gaudi"), "with it there is intel/gaudi2, intel/gaudi3"),
        (("class", "GB200"), "with it there is aws/p6e-gb200.36xlarge, "),
        (("class", "nvidia/gb200"), "with it there is aws/p6e-gb200.36xlarge, "),
        (("class", "tpu"), "with it there is gcp/ct5lp-hightpu-1t, "),
    ],
)
def test_wrong_input_is_one_clear_line(arguments: tuple[str, ...], expected: str) -> None:
    ran = run(*arguments)
    assert ran.code == 1
    assert expected in ran.err


@pytest.mark.parametrize(
    ("machine_type", "gpus"),
    [
        ("aws/g6.xlarge", 1),
        ("aws/g6.12xlarge", 4),
        ("gcp/a3-highgpu-2g", 2),
        ("gcp/a2-ultragpu-4g", 4),
        ("gcp/ct6e-standard-4t", 4),
        ("azure/Standard_NC80adis_H100_v5", 2),
    ],
)
def test_machines_of_fewer_than_eight_are_in_the_catalogue(machine_type: str, gpus: int) -> None:
    (device, *_) = yaml.safe_load(run("class", machine_type).out)["spec"]["devices"]
    assert device["count"] == gpus


@pytest.mark.parametrize(("memory", "code"), [("143771Mi", 0), ("141Gi", 2)])
def test_drift_says_what_would_never_bind(tmp_path: Path, seen: Path, memory: str, code: int) -> None:
    ran = run("drift", published_memory(tmp_path / "cluster.yaml", memory), seen)
    assert ran.code == code, ran.out
    assert ("CapacityShort memory: class 141Gi" in ran.out) is (code == 2)
    data = run("drift", published_memory(tmp_path / "cluster.yaml", memory), seen, "-o", "json").data
    assert [pool["name"] for pool in data["pools"]] == ["h200"]


class Cluster:
    """A cluster with devices, and commands that read it."""

    def __init__(self, folder: Path, address: str, table: apiserver.Table) -> None:
        self.table, self.kubeconfig = table, apiserver.kubeconfig(folder / "kubeconfig", address)

    def run(self, *words: object) -> Ran:
        return run(*words, "--kubeconfig", self.kubeconfig)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(connection, "PAGE", 2)
    names = ("n1", "n2", "n3")
    slices = [resource_slice(name, devices(H200, 2)) for name in names]
    for plain in slices:
        plain["metadata"] = {"name": f"{plain['spec']['nodeName']}-gpu.nvidia.com"}
    objects = [*slices, *map(node, names)]
    with apiserver.serving(objects, ("ResourceSlice", "Node")) as (address, table):
        yield Cluster(tmp_path, address, table)


def test_a_cluster_itself_is_read_in_pages(cluster: Cluster, tmp_path: Path) -> None:
    seen = tmp_path / "seen.yaml"
    seen.write_text(yaml.safe_dump_all(cluster.table.objects))
    published = published_memory(tmp_path / "cluster.yaml", "141Gi")
    there, here = cluster.run("drift", published), run("drift", published, seen)
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err) == (2, here.out, "")
    assert [path.partition("?")[0] for path in cluster.table.asked] == [
        *["/apis/resource.k8s.io/v1/resourceslices"] * 2,
        *["/api/v1/nodes"] * 2,
        *(f"/apis/resource.k8s.io/{one}/resourceclaimtemplates" for one in ("v1", "v1beta2")),
        *(f"/apis/resource.k8s.io/{one}/deviceclasses" for one in ("v1", "v1beta2")),
        *(f"/apis/resource.k8s.io/{one}/devicetaintrules" for one in ("v1", "v1beta2", "v1alpha3")),
    ], "what is not served is asked for in each version once, the newest first"
    assert cluster.run("class", "--name", "h200").out == run("class", seen, "--name", "h200").out


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_an_older_version_of_resource_slices_is_read(cluster: Cluster, version: str) -> None:
    whole = cluster.run("class").out
    cluster.table.versions["ResourceSlice"] = version
    assert cluster.run("class").out == whole


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_taint_rules_are_read_in_the_version_that_is_served(
    cluster: Cluster, tmp_path: Path, version: str
) -> None:
    selector = {"driver": "gpu.nvidia.com", "pool": "n1"}
    spec = {"deviceSelector": selector, "taint": {"key": "example.com/broken", "effect": "NoSchedule"}}
    rule = {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceTaintRule", "spec": spec}
    cluster.table.objects.append(rule | {"metadata": {"name": "broken"}})
    cluster.table.served.add("DeviceTaintRule")
    cluster.table.versions["DeviceTaintRule"] = version
    ran = cluster.run("drift", published_memory(tmp_path / "cluster.yaml", "143771Mi"))
    assert "DeviceTaintRule broken (example.com/broken) keeps pods off 2" in ran.out


def test_what_cannot_be_read_of_a_cluster_is_named(cluster: Cluster, seen: Path, tmp_path: Path) -> None:
    published = published_memory(tmp_path / "cluster.yaml", "143771Mi")
    assert "has ResourceSlices, and --context or --kubeconfig" in cluster.run("drift", published, seen).err
    assert "leave machine type and files out" in cluster.run("class", "aws/p5en.48xlarge").err
    cluster.table.forbidden = {"Node"}
    ran = cluster.run("drift", published)
    assert ran.code == 1
    assert 'list nodes: forbidden for user "' in ran.err
    assert "example/operate/device-reader.yaml has a ClusterRole that allows it" in ran.err
    cluster.table.objects.clear()
    assert "has no ResourceSlice: does a DRA driver run on it?" in cluster.run("drift", published).err
    cluster.table.served.clear()
    assert "serves no resourceslices.resource.k8s.io (v1, v1beta2, v1beta1)" in cluster.run("class").err


def test_one_of_several_clusters_is_chosen(seen: Path, tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(published_memory(tmp_path / "one.yaml", "143771Mi").read_text()))
    (one,) = [plain for plain in objects if plain["kind"] == "InferenceCluster"]
    name = one["metadata"]["name"]
    both = tmp_path / "both.yaml"
    both.write_text(yaml.safe_dump_all([*objects, {**one, "metadata": {**one["metadata"], "name": "other"}}]))
    assert "choose one with --cluster (" in run("drift", both, seen).err
    assert run("drift", both, seen, "--cluster", name).code == 0
    assert "did you mean other?" in run("drift", both, seen, "--cluster", "othr").err

"""The example of one address through the real `crossplane render`: endpoints, then the route over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example import caller
from tests.replica import schemas

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.real_cli import Cli

pytestmark = pytest.mark.e2e

EXAMPLE = caller.HERE / "routing"
SERVICES = caller.ROOT / "apis" / "modelservices" / "composition.yaml"
SERVICE, ELSEWHERE = caller.objects(EXAMPLE / "service.yaml")
(GATEWAY,) = caller.objects(EXAMPLE / "gateway.yaml")
ROUNDS = 3
"""Reconciles until an endpoint has a backend: the Service, its slice, the status."""

Plain = dict[str, Any]


def replica_endpoint(name: str, address: str) -> Plain:
    """Return the endpoint of a replica of the example, as the scheduler makes it."""
    prefix = f"/ml-small/{name}/"
    metadata = {
        "name": name,
        "namespace": "ml-small",
        "labels": {"modelplane.ai/deployment": "qwen3-8b"},
    }
    spec = {"url": f"http://{address}{prefix}v1", "rewritePath": prefix}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": metadata,
        "spec": spec,
    }


REPLICAS = [
    replica_endpoint("qwen3-8b-8fced", "203.0.113.10"),
    replica_endpoint("qwen3-8b-f9ca3", "203.0.113.20"),
]


def render(
    cli: Cli, functions: Path, folder: Path, composite: Plain, composition: Path, **given: list[Plain]
) -> list[Plain]:
    """Render a composite: the composite first, then what it composes."""
    files = {"composite": [composite], **given}
    for name, plains in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(plains))
    flags = [f"--{name}-resources={folder / f'{name}.yaml'}" for name, plains in given.items() if plains]
    words = [folder / "composite.yaml", composition, functions, *flags, *cli.core_flags]
    return [plain for plain in yaml.safe_load_all(cli.run(*cli.render_words, *words)) if plain]


def with_backend(cli: Cli, functions: Path, folder: Path, endpoint: Plain) -> Plain:
    """Return an endpoint once it has a backend: render it as often as Crossplane would reconcile it."""
    observed: list[Plain] = []
    for _ in range(ROUNDS):
        composite, *composed = render(
            cli, functions, folder, endpoint, EXAMPLE / "endpoints.yaml", observed=observed
        )
        for resource in composed:
            resource["metadata"].setdefault(
                "name", f"{endpoint['metadata']['name']}-{resource['kind'].lower()}"
            )
            checked = {**resource, "metadata": {"name": resource["metadata"]["name"]}}
            assert not list(schemas.findings(checked)), resource["kind"]
        observed = composed
    return {**endpoint, "status": composite["status"]}


def test_the_example_becomes_one_route(cli: Cli, functions: Path, tmp_path: Path) -> None:
    endpoints = [with_backend(cli, functions, tmp_path, replica) for replica in [*REPLICAS, ELSEWHERE]]
    backends = [endpoint["status"]["routing"]["backendName"] for endpoint in endpoints]
    assert len(set(backends)) == len(endpoints)
    gateway = {**GATEWAY, "status": {"addresses": [{"type": "IPAddress", "value": "198.51.100.9"}]}}

    def route(*required: Plain) -> tuple[Plain, dict[str, int]]:
        composite, made = render(cli, functions, tmp_path, SERVICE, SERVICES, required=[*required, gateway])
        assert not list(schemas.findings({**made, "metadata": {"name": "given"}}))
        (rule,) = made["spec"]["rules"]
        assert rule["timeouts"] == {"request": "0s"}
        return composite, {backend["name"]: backend["weight"] for backend in rule["backendRefs"]}

    composite, weights = route(*endpoints)
    assert composite["status"]["address"] == "http://198.51.100.9/ml-small/qwen3-8b"
    assert weights == {backends[0]: 1, backends[1]: 1}
    composite, weights = route(endpoints[2])
    assert weights == {backends[2]: 1}, "no replica is ready: the model elsewhere takes all requests"
    (reason,) = (
        condition["reason"]
        for condition in composite["status"]["conditions"]
        if condition["type"] == "EndpointsResolved"
    )
    assert reason == "FailedOver"

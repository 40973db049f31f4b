"""Requests through a real Envoy to fake models, by the route that the function composes.

The route is translated into Envoy's configuration by hand (`tests/e2e/envoy.py`): no controller of Gateway
API runs here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import envoy
from tests.routing.build import config, endpoint, group, request_about, service, settled
from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

Plain = dict[str, Any]

URLS = {
    "a": "http://203.0.113.7/ml-team/a/v1",
    "b": "http://203.0.113.8:8000/ml-team/b/v1",
    "elsewhere": "https://models.example.com/api/v1",
}
PREFIXES = {"a": "/ml-team/a/", "b": "/ml-team/b/", "elsewhere": "/api/"}
SETTINGS = config(requestTimeout="0s", rewriteHost=True, gatewayAddress="203.0.113.1")
CALL = "/ml-team/chat/v1/chat/completions"


@pytest.fixture
def models() -> Iterator[dict[str, envoy.ModelServer]]:
    """One fake model for each endpoint."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(envoy.ModelServer(name).running()) for name in URLS}


def backend(name: str) -> Plain:
    """Return an endpoint once it has a Service, as the handler of endpoints makes it."""
    request = settled(AnyRequest(endpoint(name, URLS[name], backend="")))
    assert request.composite["status"]["routing"]["backendName"] == "observed-service"
    return endpoint(name, URLS[name], rewrite=None, backend=f"svc-{name}")


def route(*ready: str) -> Plain:
    """Return the route over a group of 3 parts, one of 1 part, and one for when neither is ready."""
    groups = group(3, app="a"), group(1, app="b"), group(1, 1, app="elsewhere")
    ends = [[backend(name)] if name in ready else [] for name in URLS]
    return dict(request_about(service(*groups), *ends, settings=SETTINGS).answer().desired["httproute"])


def where(models: dict[str, envoy.ModelServer]) -> dict[str, envoy.Target]:
    """Return where the Services of endpoints lead here: their addresses are nobody's on this machine."""
    return {f"svc-{name}": ("127.0.0.1", server.port) for name, server in models.items()}


def test_requests_are_spread_by_weight_and_arrive_at_the_path_of_each(
    models: dict[str, envoy.ModelServer], tmp_path: Path
) -> None:
    with envoy.serving(route("a", "b", "elsewhere"), where(models), tmp_path) as gateway:
        answers = Counter(gateway.post(CALL, draw) for draw in range(400))
        assert gateway.post("/ml-team/other/v1/models") == (404, "")
    assert answers == {(200, "a"): 300, (200, "b"): 100}
    for name in ("a", "b"):
        paths = {path for path, _ in models[name].requests}
        assert paths == {f"{PREFIXES[name]}v1/chat/completions"}
    assert not models["elsewhere"].requests


def test_failover_reaches_the_model_elsewhere_under_its_own_name(
    models: dict[str, envoy.ModelServer], tmp_path: Path
) -> None:
    with envoy.serving(route("elsewhere"), where(models), tmp_path) as gateway:
        assert {gateway.post(CALL, draw) for draw in range(20)} == {(200, "elsewhere")}
    assert set(models["elsewhere"].requests) == {("/api/v1/chat/completions", "models.example.com")}


def test_the_replica_that_is_left_takes_all(models: dict[str, envoy.ModelServer], tmp_path: Path) -> None:
    with envoy.serving(route("b", "elsewhere"), where(models), tmp_path) as gateway:
        assert {gateway.post(CALL, draw) for draw in range(20)} == {(200, "b")}

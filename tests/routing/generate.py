"""Random endpoints and services as our XRDs allow them. The same for the same seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.replica.generate import label
from tests.routing import build
from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

Plain = dict[str, Any]

HOSTS = (
    *("203.0.113.7", "[2001:db8::1]", "api.example.com", "a" * 63 + ".example.com"),
    *("127.0.0.1", "vllm", "-.example.com", "under_score.example.com", "user:secret@example.com", ""),
)
"""Half of them lead somewhere."""


def url(draw: random.Random) -> str:
    """Return a URL that the pattern of the XRD lets through."""
    port = draw.choice(("", "", ":8000", ":443", ":0", ":99999", ":x"))
    path = draw.choice(("", "/", "/v1", "/v1/", "/a/b/v1", "//v1", "/" + "p" * 1500, "/v1?key=1#top"))
    return f"{draw.choice(('http', 'https'))}://{draw.choice(HOSTS)}{port}{path}"


def endpoint(draw: random.Random, name: str) -> Plain:
    """Return a ModelEndpoint."""
    made = build.endpoint(
        name,
        url(draw) if draw.random() < 0.5 else f"http://203.0.113.{draw.randint(1, 254)}/ml-team/{name}/v1",
        backend=draw.choice((None, None, None, "", "Not_A_Name", "x" * 64)),
        rewrite=draw.choice((None, f"/ml-team/{name}/", "/v1", "/", "/" + "p" * 1100)),
        namespace=draw.choice((build.NAMESPACE, build.NAMESPACE, "team-b")),
    )
    if draw.random() < 0.1:
        made["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    return made


def config(draw: random.Random) -> Plain | None:
    """Return the input of the step, None where there is none."""
    chosen: Plain = {
        "gateway": {"namespace": "gateways", "name": "public"},
        "gatewayAddress": draw.choice(("models.example.com", "https://models.example.com", "2001:db8::9")),
        "addressFrom": "Gateway",
        "allowNamespaces": draw.choice((["*"], ["team-b"])),
        "requestTimeout": draw.choice(("0s", "1h30m")),
        "rewriteHost": True,
    }
    if draw.random() < 0.3:
        return None
    return build.config(**{key: value for key, value in chosen.items() if draw.random() < 0.4})


def asked_endpoint(seed: int) -> AnyRequest:
    """Return a request about an endpoint, nothing observed."""
    draw = random.Random(seed)
    return AnyRequest(endpoint(draw, label(draw)) | {"status": {}}, input=config(draw))


def asked_service(seed: int) -> AnyRequest:
    """Return a request about a service, nothing observed."""
    draw = random.Random(seed)
    groups = [
        build.group(draw.choice((None, 1, 10, 999_983)), draw.choice((None, 0, 1, 2)), app=f"a{number}")
        for number in range(draw.randint(1, 4))
    ]
    delivered: list[Sequence[Plain]] = [
        [endpoint(draw, label(draw)) for _ in range(draw.choice((0, 1, 2, 9)))] for _ in groups
    ]
    made = build.service(*groups, name=label(draw))
    return build.request_about(
        made, *delivered, settings=config(draw), required={"gateway": [build.gateway()]}
    )


def random_request(seed: int) -> AnyRequest:
    """Return a request about one or the other."""
    return asked_service(seed) if seed % 3 else asked_endpoint(seed)

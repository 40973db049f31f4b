"""Ask the deployments that a change of the fleet concerns to reconcile now: the step of a WatchOperation.

Crossplane does not watch required resources, so a deployment learns of a change of a cluster when its ttl
runs out. A WatchOperation runs this step for every change of an InferenceCluster. What is desired here is
the annotation `crossplane.io/reconcile-requested-at` on deployments; a new value of it makes Crossplane
reconcile them at once.

    requirements ▶ state of the fleet ▶ deployments concerned ▶ a token for each

Concerned are deployments with a replica on the changed cluster or on one that does not exist, and those
short of replicas. A token is a digest of what concerns the deployment, no time: a change that no placement
depends on asks nobody, however often it happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.text import one_line
from function.boundary import Desired, NoReuse, Requirement, Response, Result, text_at
from function.deployment.explain.digest import digest
from function.operations.state import ANNOTATION, FLEET, WATCHED, Deployment, State, read_state

if TYPE_CHECKING:
    from collections.abc import Collection

    from function.boundary import Request, Reuse

API_VERSION = "modelplane.ai/v1alpha1"
LENGTH = 16
"""Hex digits of a token."""
NO_REUSE = NoReuse()


def is_operation(request: Request) -> bool:
    """Whether the call is a step of an Operation: it has no composite, but a watched resource."""
    return WATCHED in request.required and not text_at(request.composite, "kind")


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:
    """Answer one call of a WatchOperation on InferenceClusters, ModelReplicas, or both."""
    if _changed_kind(request) == "ModelReplica":
        # Only a replica that is gone frees nodes for others; of one that is there its own deployment hears.
        return Response(requirements=(), settled=True)
    requirements = tuple(Requirement(name, API_VERSION, kind) for name, kind in FLEET.items())
    if any(name not in request.required for name in FLEET):
        return Response(requirements=requirements)
    state = read_state(request, reuse)
    tokens = {deployment: _token(deployment, state) for deployment in state.concerned()}
    # Every Operation is a field manager of its own: an equal value would be one more owner, and a write.
    news = {deployment: token for deployment, token in tokens.items() if token != deployment.requested}
    return Response(
        requirements=requirements,
        desired={f"{new.namespace}/{new.name}": _request(new, token) for new, token in news.items()},
        results=_results(news),
        settled=True,
        counts={"deployments": len(state.deployments), "deployments_asked": len(news)},
    )


def _changed_kind(request: Request) -> str:
    """The kind of the object that changed, "" when it is gone: then Crossplane delivers nothing."""
    return next((text_at(document, "kind") for document in request.required[WATCHED]), "")


def _request(deployment: Deployment, token: str) -> Desired:
    """Desire the annotation and nothing else: what is applied server-side is owned.

    The uid keeps an apply from creating the deployment anew when it was deleted a moment ago.
    """
    metadata = {
        "name": deployment.name,
        "namespace": deployment.namespace,
        "uid": deployment.uid,
        "annotations": {ANNOTATION: token},
    }
    return Desired({"apiVersion": API_VERSION, "kind": "ModelDeployment", "metadata": metadata})


def _token(deployment: Deployment, state: State) -> str:
    """Return the same text for the same state of what concerns the deployment.

    For one that is short that is the whole fleet: its clusters and who takes up room on them.
    """
    if deployment.short:
        return digest((*(state.clusters[name] for name in sorted(state.clusters)), *state.replicas))[:LENGTH]
    return digest(f"{name} {state.clusters.get(name, 'gone')}" for name in sorted(deployment.clusters))[
        :LENGTH
    ]


def _results(deployments: Collection[Deployment]) -> tuple[Result, ...]:
    if not deployments:
        return ()
    names = ", ".join(f"{deployment.namespace}/{deployment.name}" for deployment in deployments)
    text = one_line(f"Asked {len(deployments)} ModelDeployments to reconcile: {names}")
    return (Result("NORMAL", "ReconcileRequested", text),)

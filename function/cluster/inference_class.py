"""Handle an InferenceClass: nothing is composed, so that it becomes Ready instead of waiting for a function.

Other kinds read it as it stands.
"""

from __future__ import annotations

from function.boundary import NoReuse, Request, Requirement, Response, Reuse

KIND = "InferenceClass"
NO_REUSE = NoReuse()


def declared(_request: Request) -> tuple[Requirement, ...]:
    """Return nothing: a class needs nothing of the control plane."""
    return ()


def condition_types(_request: Request) -> tuple[str, ...]:
    """Return nothing: Ready is Crossplane's."""
    return ()


def run(request: Request, *, reuse: Reuse = NO_REUSE) -> Response:  # noqa: ARG001 - the handlers' protocol
    """Answer: nothing is desired and nothing is pending."""
    return Response(requirements=(), settled=True)

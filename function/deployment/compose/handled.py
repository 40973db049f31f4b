"""Report which request to reconcile was handled: `status.lastHandledReconcileAt`.

A new value of the annotation `crossplane.io/reconcile-requested-at` makes Crossplane reconcile a composite
now. Crossplane 2.3 notes the value in the status it holds before it calls the function, but what the function
desires then takes the place of that status, and no XRD declares the field by itself. So it stays empty, and
every later reconcile emits the event `ReconcileRequestHandled` again, unless the XRD declares the field and
the function returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.names import RECONCILE_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Plain


def handled_request(composite: Mapping[str, Plain]) -> dict[str, Plain]:
    """The status field with the value of the annotation; {} for a composite that has none."""
    annotations = mapping(mapping(composite.get("metadata")).get("annotations"))
    token = annotations.get(RECONCILE_ANNOTATION)
    return {"lastHandledReconcileAt": token} if token and isinstance(token, str) else {}

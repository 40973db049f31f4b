"""Edit one object of the files, as an API server would let it be edited."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from function.cli.admission.kinds import check, head
from function.cli.bad_input import BadInput, closest
from function.cli.worlds.manifest import Manifest, Manifests

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import JsonObject


def existing(manifests: Manifests, kind: str, where: tuple[str, str]) -> Manifest:
    """Return the object that is named by (namespace, name). Raises BadInput when it is not there."""
    listed = manifests[kind]
    for manifest in listed:
        if manifest.identity == where:
            return manifest
    names = ("/".join(manifest.identity).lstrip("/") for manifest in listed)
    title = "/".join(where).lstrip("/")
    raise BadInput(f'there is no {kind} "{title}"; {closest(title, names)}')


def edited(
    manifests: Manifests,
    kind: str,
    where: tuple[str, str],
    edit: Callable[[JsonObject], None],
    *,
    overlay: bool = False,
) -> Manifests:
    """Edit a copy of one object, named by (namespace, name).

    Raises BadInput when it is not there, and when the API server would refuse the edit. What an `overlay`
    from a file brings in was looked at when the file was read.
    """
    before = existing(manifests, kind, where)
    content = deepcopy(before.content)
    edit(content)
    if not overlay:
        _refuse_invalid(before, content)
    after = Manifest(content, before.file)
    return manifests.having(kind, [after if manifest is before else manifest for manifest in manifests[kind]])


def _refuse_invalid(before: Manifest, content: JsonObject) -> None:
    """Refuse an edit that the API server would: what was wrong already is said elsewhere. Raises BadInput."""
    kind, _ = head(content)
    if kind is None:
        return
    already = set(map(str, check(before.content, kind)))
    refusal = next((text for text in map(str, check(content, kind)) if text not in already), None)
    if refusal:
        raise BadInput(f"{before.short_title}: {refusal}")


def spec_of(content: JsonObject) -> JsonObject:
    """Return the spec of an object to edit: one is added where there is none."""
    spec = content.get("spec")
    if not isinstance(spec, dict):
        spec = content["spec"] = {}
    return spec


def pools_of(listed: object) -> dict[str, JsonObject]:
    """Return the pools of a list by their names."""
    pools = listed if isinstance(listed, list) else []
    return {str(pool.get("name")): pool for pool in pools if isinstance(pool, dict)}

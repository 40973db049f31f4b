"""The examples in the API reference and the guide for a model's owner, each made a whole object."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import yaml

from tests.schema.bad import ENGINES, FIRST, made
from tests.schema.crds import ROOT

PLACES = {
    "engine": ("ModelDeployment", f"{ENGINES}.0"),
    "member": ("ModelDeployment", FIRST),
    "device request": ("ModelDeployment", f"{FIRST}.nodeSelector.devices.0"),
    "node pool": ("InferenceCluster", "spec.nodePools.0"),
    "device": ("InferenceClass", "spec.devices.0"),
}
"""What a block is a piece of, when it is not a whole object."""
KEPT = {"member": ("template",)}
"""What a piece leaves to the object it is put in."""
PAGES = "".join((ROOT / "docs" / name).read_text() for name in ("api.md", "your-model.md", "priority.md"))
BLOCKS = re.findall(r"```yaml\n# ([^\n]+)\n(.*?)```", PAGES, re.DOTALL)


def whole(what: str, text: str) -> dict[str, Any]:
    """The object that a block is a piece of."""
    piece = yaml.safe_load(text)
    if what not in PLACES:
        return _merged(made(what), piece)
    kind, place = PLACES[what]
    base: Any = made(kind)
    for step in place.split("."):
        base = base[int(step) if step.isdigit() else step]
    return made(kind, (place, {key: base[key] for key in KEPT.get(what, ())} | piece))


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return deepcopy(over)
    return base | {key: _merged(base.get(key), value) for key, value in over.items()}

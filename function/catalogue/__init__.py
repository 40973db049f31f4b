"""Machine types of the clouds as InferenceClass specs: data, one file each, read once.

`<provider>/<machineType>.yaml` holds the devices of one node as their drivers publish them, with the source
of the facts and a revision. A revision's content never changes: what a class refers to is what it publishes,
whatever the function's version is. A correction is a new revision beside the old one, which moves to
`<machineType>@<revision>.yaml`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NETWORK_DRIVER = "dra.net"
"""The driver of the network devices in every entry."""


_SIZES = {
    "aws/{}.xlarge": ("aws/{}.2xlarge", "aws/{}.4xlarge", "aws/{}.8xlarge", "aws/{}.16xlarge"),
    "aws/{}.12xlarge": ("aws/{}.24xlarge",),
}
SAME_DEVICES = {
    size.format(family): entry_name.format(family)
    for entry_name, sizes in _SIZES.items()
    for size in sizes
    for family in ("g5", "g6", "g6e")
} | {f"gcp/g2-standard-{size}": "gcp/g2-standard-4" for size in (8, 12, 16, 32)}
"""Machine types that differ from another only in processors and memory, and that other one."""


class UnknownMachineType(ValueError):
    """No entry, or no such revision of it. The message says what there is."""


@lru_cache(maxsize=1)
def machine_types() -> tuple[str, ...]:
    """Return the names of all machine types, as `provider/machineType`, sorted."""
    providers = [folder for folder in HERE.iterdir() if folder.is_dir() and not folder.name.startswith("_")]
    written = (
        f"{folder.name}/{entry.name.removesuffix('.yaml')}"
        for folder in providers
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml") and "@" not in entry.name
    )
    return tuple(sorted([*written, *SAME_DEVICES]))


@lru_cache(maxsize=64)
def entry(machine_type: str, revision: int | None = None) -> dict[str, Any]:
    """Return an entry: machineType, revision, source, spec, nominalMemory where a driver reports memory.

    Not to be changed.

    Raises:
        UnknownMachineType: when there is no such type, or no such revision of it. None is the newest.
    """
    if machine_type not in machine_types():
        provider = machine_type.partition("/")[0]
        near = [name for name in machine_types() if name.startswith(f"{provider}/")] or machine_types()
        raise UnknownMachineType(f'no machine type "{machine_type}"; there is {", ".join(near)}')
    file = SAME_DEVICES.get(machine_type, machine_type)
    newest = {**read(HERE / f"{file}.yaml"), "machineType": machine_type}
    if revision is None or revision == newest["revision"]:
        return newest
    try:
        return {**read(HERE / f"{file}@{revision}.yaml"), "machineType": machine_type}
    except FileNotFoundError:
        text = f"{machine_type} has no revision {revision}; the newest is {newest['revision']}"
        raise UnknownMachineType(text) from None


def read(file: Path) -> dict[str, Any]:
    """Read a file of ours, in Rust where `ryaml` is installed: in a quarter of the time."""
    text = file.read_text(encoding="utf-8")
    content: dict[str, Any]
    try:
        from ryaml import loads  # type: ignore[attr-defined]  # noqa: PLC0415 - with the command line only
    except ModuleNotFoundError:
        import yaml  # noqa: PLC0415 - only then

        content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    else:
        content = loads(text)
        if "<<:" in text:
            content = _merged(content)
    return content


def _merged(value: Any) -> Any:
    """Put in what `<<` names, as YAML 1.1 does and 1.2, which ryaml reads, does not."""
    if isinstance(value, list):
        return list(map(_merged, value))
    if not isinstance(value, dict):
        return value
    content = {key: _merged(child) for key, child in value.items()}
    return {**content.pop("<<"), **content} if "<<" in content else content

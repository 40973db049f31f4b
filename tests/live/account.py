"""A service account that nobody has given any rights, and its kubeconfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.plane import ControlPlane


def kubeconfig(plane: ControlPlane, folder: Path, namespace: str, name: str) -> Path:
    """Make a service account, and write the kubeconfig with its token into a folder."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    plane.request("POST", accounts, {"metadata": {"name": name}})
    token = plane.request("POST", f"{accounts}/{name}/token", {"kind": "TokenRequest", "spec": {}}) or {}
    plain = yaml.safe_load((plane.state / "admin.kubeconfig").read_text())
    plain["users"] = [{"name": "u", "user": {"token": token["status"]["token"]}}]
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(plain))
    return path

"""Ask the API server what it has of what a claim may carry, and try it: `--only features`.

What drivers publish and claims carry is put there as Kubernetes documents it. An API server drops a field
whose feature gate is off, and says nothing; so each field is read again, and replicas of ours are held
against it. `GATES=` leaves Kubernetes' own defaults; `GATES` and `RUNTIME` go to the scripts of the referee.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.referee import cluster, lost
from tests.referee.scenarios import ask
from tests.referee.worlds import World, entry, pods_of
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Plain = dict[str, Any]

GATE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} (\d)$', re.MULTILINE)
GATES = (
    "DRAPrioritizedList",
    "DRAPartitionableDevices",
    "DRAConsumableCapacity",
    "DRADeviceTaints",
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRADeviceBindingConditions",
    "DRAExtendedResource",
    "GenericWorkload",
    "GangScheduling",
)
GROUPS = ("resource.k8s.io", "scheduling.k8s.io")
BROKEN = lost.BROKEN


@dataclass(frozen=True)
class Trial:
    """Something that a driver publishes, and replicas of ours that claim it."""

    what: str
    publish: Callable[[Plain], Plain]
    """A device as its driver publishes it here."""
    read: str
    """The field of a device that may be dropped."""
    count: int = 1
    """Devices of the one node."""
    request: Plain = field(default_factory=lambda: ask(1))
    counters: Plain | None = None
    """What the devices share."""


def _partition(device: Plain) -> Plain:
    consumed = {"counterSet": "gpu", "counters": {"memory": {"value": "60Gi"}}}
    return device | {"consumesCounters": [consumed]}


def _shareable(device: Plain) -> Plain:
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    memory = device["capacity"]["memory"] | {"value": "80Gi", "requestPolicy": policy}
    return device | {"allowMultipleAllocations": True, "capacity": {"memory": memory}}


def _listed(device: Plain) -> Plain:
    return device | {"attributes": device["attributes"] | {"fabric": {"strings": ["a", "b"]}}}


def _binding(device: Plain) -> Plain:
    return device | {"bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]}


TRIALS = (
    Trial(
        "two partitions of 60Gi that share 80Gi",
        _partition,
        "consumesCounters",
        count=2,
        counters={"name": "gpu", "counters": {"memory": {"value": "80Gi"}}},
    ),
    Trial("one device that may be shared", _shareable, "allowMultipleAllocations"),
    Trial("two tainted devices", lambda device: device | {"taints": [BROKEN]}, "taints", count=2),
    Trial(
        "two tainted devices, tolerated",
        lambda device: device | {"taints": [BROKEN]},
        "taints",
        count=2,
        request=ask(1) | {"tolerations": [{"key": "broken", "operator": "Exists"}]},
    ),
    Trial("two devices with a list as attribute", _listed, "attributes.fabric", count=2),
    Trial(
        "a selector that asks for one of a list",
        lambda device: device,
        "attributes.type",
        count=2,
        request=ask(1, f'device.attributes["{build.GPU}"].type.includes("gpu")'),
    ),
    Trial("two devices that wait to be attached", _binding, "bindingConditions", count=2),
)


def text(path: str) -> str:
    """Read what is no JSON."""
    words = ["kubectl", "--kubeconfig=/dev/null", f"--server=https://127.0.0.1:{cluster.PORT}"]
    words += ["--insecure-skip-tls-verify", "--token=admin-token", "get", "--raw", path]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def gates() -> dict[str, str]:
    """The gates of the API server: on or off, and their stage."""
    return {
        name: f"{'on' if enabled == '1' else 'off'}, {stage.lower() or 'stable'}"
        for name, stage, enabled in GATE.findall(text("/metrics"))
    }


def served(group: str) -> str:
    """The versions of a group, each with its kinds."""
    versions = cluster.call("GET", f"/apis/{group}").get("versions", [])
    said = []
    for version in versions:
        resources = cluster.call("GET", f"/apis/{version['groupVersion']}").get("resources", [])
        kinds = sorted({one["kind"] for one in resources if "/" not in one["name"]})
        said.append(f"{version['version']} ({', '.join(kinds)})")
    return "; ".join(said)


def tried(trial: Trial, name: str, seen: cluster.Seen) -> str:
    """Publish devices, place two replicas of ours, and say what the cluster makes of both."""
    request = {key: value for key, value in trial.request.items() if key != "tolerations"}
    world = World(name, {f"{name}a": (1, "Device", [entry("gpu", max(2, trial.count))])})
    world.build()
    try:
        [published] = lost.slices_of(lost.nodes_of(world.pools))
        devices = [trial.publish(one) for one in published["spec"]["devices"][: trial.count]]
        pool = {"name": published["spec"]["pool"]["name"], "generation": 2, "resourceSliceCount": 1}
        if trial.counters:
            share(published, pool | {"resourceSliceCount": 2}, trial.counters)
            pool["resourceSliceCount"] = 2
        where = f"{cluster.PATHS['ResourceSlice']}/{published['metadata']['name']}"
        spec = {"devices": devices, "pool": pool}
        try:
            answer = cluster.call("PATCH", where, {"spec": spec}, lost.PATCH)
        except cluster.RefusedByServer as refusal:
            return "the slice is refused: " + _message(str(refusal))
        kept = within(answer["spec"]["devices"][0], trial.read)
        asked = build.deployment(f"{name}x", 2, [build.engine(members=[build.member(devices=[request])])])
        replicas, _ = world.decide(asked)
        for one in replicas:
            for claimed in one["spec"]["engines"][0]["members"][0]["deviceRequests"]:
                claimed |= {key: trial.request[key] for key in trial.request.keys() - request.keys()}
        refused = world.put(replicas)
        if refused:
            return "the claim is refused: " + _message(refused[0])
        said = seen.settled(name, pods_of(replicas), limit=20)
        bound = sum(bool(pod["spec"].get("nodeName")) for pod in seen.of(name))
        return f"{'kept' if kept else 'dropped'}; bound {bound} of {len(replicas)}{reason(said)}"
    finally:
        world.tear_down(seen)


def _message(refusal: str) -> str:
    return refusal.partition('"message":"')[2].partition("is invalid: ")[2][:160]


def reason(said: Sequence[str]) -> str:
    """The first thing that is said of what does not bind."""
    return f" ({said[0].partition(': ')[2].partition('. ')[0]})" if said else ""


def share(published: Plain, pool: Plain, counters: Plain) -> None:
    """Publish counters beside the devices of a node, in a slice of their own as the API wants it."""
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    spec = {key: published["spec"][key] for key in ("driver", "nodeName")}
    name = f"{published['metadata']['name']}-counters"
    body = {"metadata": {"name": name}, "spec": {**spec, "pool": pool, "sharedCounters": [counters]}}
    cluster.call("POST", cluster.PATHS["ResourceSlice"], head | body)


def within(device: Plain, path: str) -> object:
    """What a device has at a path."""
    for key in path.split("."):
        device = device.get(key, {})
    return device


def extended(seen: cluster.Seen) -> str:
    """Let a tenant's pod ask for a device as an extended resource, and look for it as the handler does."""
    world = World("fx", {"fxa": (1, "Device", [entry("gpu", 2)])})
    world.build()
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "extended"}}
    expression = f'device.driver == "{build.GPU}"'
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": "example.com/gpu"}
    cluster.apply(head | {"spec": spec})
    try:
        stored = cluster.call("GET", f"{cluster.PATHS['DeviceClass']}/extended")["spec"]
        limits = {"limits": {"example.com/gpu": "1"}}
        container = {"name": "c", "image": "tenant:v1", "resources": limits}
        pod = {"nodeSelector": {"kubernetes.io/hostname": "fx-fxa-0"}, "containers": [container]}
        metadata = {"name": "fx-tenant", "namespace": "default"}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
        said = seen.settled("fx-tenant", 1, limit=20)
        kept = "kept" if "extendedResourceName" in stored else "dropped"
        usable = lost.observed(world)["fxa"]["usable"]["nodes"]
        return f"{kept}; {'waits' if said else 'bound'}; usable for us are {usable} of 1 nodes"
    finally:
        cluster.delete("Pod", "fx-tenant", gracePeriodSeconds=0)
        cluster.delete("DeviceClass", "extended")
        world.tear_down(seen)


def gang(seen: cluster.Seen, *, copies: int = 1, minimum: int = 0) -> str:
    """Try pairs of pods with a device less than they need, and then with all of them.

    `minimum`: how many pods the one PodGroup of all copies wants at once; 0 for no PodGroup.
    """
    name, devices = f"fg{copies}{minimum}", 2 * copies - 1
    world = World(name, {f"{name}a": (devices, "Device", [entry("gpu", 1)])})
    world.build()
    versions = [
        version["groupVersion"]
        for version in cluster.call("GET", f"/apis/{GROUPS[1]}").get("versions", [])
        for one in cluster.call("GET", f"/apis/{version['groupVersion']}").get("resources", [])
        if one["kind"] == "PodGroup"
    ]
    if minimum and not versions:
        return "there is no PodGroup"
    members = [build.member(role, [ask(1)], nodes=1) for role in ("Leader", "Worker")]
    del members[0]["worker"]
    asked = build.deployment(f"{name}x", 1, [build.engine(members=members, copies=copies)])
    written = world.by_hand(asked, [f"{name}a"], f"{name}y")
    assert written is not None
    groups = f"/apis/{versions[0] if versions else ''}/namespaces/default/podgroups"
    try:
        if minimum:
            policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
            head = {"apiVersion": versions[0], "kind": "PodGroup", "metadata": {"name": name}}
            cluster.call("POST", groups, head | {"spec": policy})
        refused = world.put([written], partial(_grouped, name) if minimum else None)
        seen.settled(name, 2 * copies, limit=20)
        pods = seen.of(name)
        kept = sum("schedulingGroup" in pod["spec"] for pod in pods)
        said = f"{kept} of {len(pods)} pods have it; " if minimum else ""
        said += f"on {devices} of {devices + 1} devices {_held(seen, name)}"
        world.add_node(f"{name}a", devices)
        waits = seen.settled(name, 2 * copies, limit=30)
        return f"{said}; on all {_held(seen, name)}{reason(refused or waits)}"
    finally:
        world.tear_down(seen)
        if minimum:
            cluster.call("DELETE", f"{groups}/{name}")


def _grouped(name: str, manifest: Plain) -> None:
    if manifest["kind"] == "LeaderWorkerSet":
        for template in ("leaderTemplate", "workerTemplate"):
            pod = manifest["spec"]["leaderWorkerTemplate"][template]
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}


def _held(seen: cluster.Seen, name: str) -> str:
    seen.fresh()
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in seen.of(name))
    claims = seen.of(name, "ResourceClaim")
    held = sum("allocation" in claim.get("status", {}) for claim in claims)
    return f"{bound} bound, {held} allocated"


def report(seen: cluster.Seen, say: Callable[[str], None]) -> None:
    """Say what the API server has, and what became of each trial."""
    version = cluster.call("GET", "/version")
    say(f"{version['gitVersion']} as {version.get('emulationMajor')}.{version.get('emulationMinor')}")
    enabled = gates()
    for gate in GATES:
        say(f"{gate:30}  {enabled.get(gate, 'not there')}")
    for group in GROUPS:
        say(f"{group:30}  {served(group)}")
    for at, trial in enumerate(TRIALS):
        say(f"{trial.what:42}  {tried(trial, f'f{at}', seen)}")
    say(f"{'a device as an extended resource':42}  {extended(seen)}")
    for copies, minimum in ((1, 0), (1, 2), (2, 2), (2, 4)):
        what = f"{copies} x 2 pods" + (f", a PodGroup of {minimum}" if minimum else "")
        say(f"{what:42}  {gang(seen, copies=copies, minimum=minimum)}")

"""Hold the replica handler against KServe's own controller: `python -m tests.referee.kserve FOLDER`.

FOLDER is what `hack/kserve.sh` made. The controller and its webhooks run beside the real workload cluster of
the referee. A handler's answer is applied, what is there is reported as provider-kubernetes reports it, and
the handler is asked again, until the replica serves. The gateway is played: this cluster has no network.

Every case is created, edited, scaled and deleted. The run ends with 1 when a service is refused, a pod is not
bound to its pool with its claim, the handler does not see what became of an edit, or something is left over.
"""

from __future__ import annotations

import argparse
import base64
import copy
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from example.caller import ROOT
from tests.live.__main__ import isolate
from tests.referee import cluster
from tests.replica import build, generate, kserve_cluster
from tests.support.build import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.drive import Answer

Plain = dict[str, Any]
PORT, HEALTH = 39543, 39181
NAMESPACE = "kserve"
PATIENCE = 180.0
POOLS = ("frontier", "h200", "a100-80gb")
NODES, PODS = 4, 8
"""Nodes of each pool; and no drawn replica has more pods."""


# ------------------------------------------------------------------------------------------ the cluster


def kubectl(*words: str, text: str = "") -> str:
    """Run kubectl against the cluster."""
    state = Path(os.environ.get("REFEREE_STATE") or Path(tempfile.gettempdir()) / "referee") / "state"
    command = ["kubectl", "--kubeconfig", str(state / "admin.kubeconfig"), *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise cluster.RefusedByServer(f"kubectl {' '.join(words)}: {done.stderr[-500:]}")
    return done.stdout


def apply(manifest: Plain) -> None:
    """Apply an object; what has no namespace, and would have one, goes to KServe's own."""
    inside = () if "namespace" in manifest["metadata"] else (f"--namespace={NAMESPACE}",)
    kubectl("apply", *inside, "--server-side", "--filename=-", text=json.dumps(manifest))


def _documents(folder: Path) -> Iterator[Plain]:
    for path in sorted(folder.glob("*.yaml")):
        yield from (one for one in yaml.safe_load_all(path.read_text()) if one)


def _called(manifest: Plain, bundle: str) -> Plain:
    """Return a manifest whose webhooks are at our address, as without a Service."""
    text = json.dumps(manifest)
    made: Plain = json.loads(text)
    for hook in made.get("webhooks", ()):
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{PORT}{path}", "caBundle": bundle}
    if made["kind"] == "CustomResourceDefinition" and len(made["spec"]["versions"]) > 1:
        reach = {"url": f"https://127.0.0.1:{PORT}/convert", "caBundle": bundle}
        webhook = {"clientConfig": reach, "conversionReviewVersions": ["v1"]}
        made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return made


def _established() -> bool:
    listed = cluster.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    return all(
        any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in one.get("status", {}).get("conditions") or ()
        )
        for one in listed
    )


@contextmanager
def controller(folder: Path) -> Iterator[Path]:
    """Run the controller on the started cluster; yields its log."""
    with tempfile.TemporaryDirectory() as home:
        pair = Path(home) / "k8s-webhook-server" / "serving-certs"
        pair.mkdir(parents=True)
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
        words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        words += ["-keyout", str(pair / "tls.key"), "-out", str(pair / "tls.crt")]
        subprocess.run(words, check=True, capture_output=True)
        bundle = base64.b64encode((pair / "tls.crt").read_bytes()).decode()
        for name in (NAMESPACE, build.NAMESPACE, "modelplane-system"):
            apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for manifest in _documents(folder / "crds"):
            if manifest["kind"] == "CustomResourceDefinition":
                apply(_called(manifest, bundle))
        assert cluster.wait(_established, PATIENCE), "the API server does not serve all kinds"
        for manifest in yaml.safe_load_all((folder / "inferenceservice.yaml").read_text()):
            apply(manifest)
        log = Path(home) / "controller.log"
        environment = os.environ | {"TMPDIR": home, "POD_NAMESPACE": NAMESPACE}
        state = Path(os.environ.get("REFEREE_STATE") or Path(tempfile.gettempdir()) / "referee") / "state"
        environment["KUBECONFIG"] = str(state / "admin.kubeconfig")
        flags = [f"--webhook-port={PORT}", f"--health-probe-addr=127.0.0.1:{HEALTH}", "--metrics-addr=0"]
        with log.open("w") as output:
            program = [folder / "llmisvc", *flags]
            process = subprocess.Popen(program, stdout=output, stderr=output, env=environment)
            try:
                _prepare(folder, bundle)
                yield log
            except Exception:
                sys.stdout.write(f"{log.read_text()[-4000:]}\n")
                raise
            finally:
                process.terminate()
                process.wait(30)


def _prepare(folder: Path, bundle: str) -> None:
    """Install webhooks and presets once the controller answers, a gateway, and nodes."""

    def answers() -> bool:
        probe = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{PORT}"]
        return not subprocess.run(probe, check=False, capture_output=True).returncode

    assert cluster.wait(answers, PATIENCE), "the controller's webhooks do not answer"
    for manifest in _documents(folder / "webhooks"):
        if "webhooks" in manifest:
            apply(_called(manifest, bundle))
    ours = yaml.safe_load_all((ROOT / "example" / "kserve" / "presets.yaml").read_text())
    for manifest in (*_documents(folder / "presets"), *ours):
        apply(manifest)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "GatewayClass", "plural": "gatewayclasses", "singular": "gatewayclass"}
    kind = {"group": "gateway.networking.k8s.io", "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    approved = {"api-approved.kubernetes.io": "unapproved, played"}
    metadata = {"name": "gatewayclasses.gateway.networking.k8s.io", "annotations": approved}
    apply({**head, "metadata": metadata, "spec": kind})
    assert cluster.wait(_established, PATIENCE), "the API server does not serve GatewayClass"
    spec = {"controllerName": "example.com/played"}
    played = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "spec": spec}
    apply({**played, "metadata": {"name": "played"}})
    metadata = {"name": "inference-gateway", "namespace": "modelplane-system"}
    listeners = [
        {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    ]
    gateway = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": metadata}
    said = {
        **condition("Programmed", status=True, reason="Programmed"),
        "message": "",
        "observedGeneration": 1,
    }
    address = [{"type": "IPAddress", "value": "203.0.113.10"}]
    spec = {"gatewayClassName": "played", "listeners": listeners}
    kubectl("apply", "--server-side", "--filename=-", text=json.dumps({**gateway, "spec": spec}))
    status = {"status": {"addresses": address, "conditions": [said]}}
    cluster.call("PATCH", f"{call_path(gateway)}/status", status, "application/merge-patch+json")
    for pool in POOLS:
        for number in range(NODES):
            gpu = {"name": "gpu", "claim": "DRA", "driver": "gpu.nvidia.com", "count": 8}
            typed = {"type": {"string": "gpu"}, "architecture": {"string": "Hopper"}}
            entry = gpu | {"attributes": typed, "capacity": {"memory": {"value": "143771Mi"}}}
            cluster.add_node(f"{pool}-{number}", {"modelplane.ai/pool": pool}, [entry])
    cluster.add_node("others", {}, [])
    _volume("modelcache-ml-team-weights-124df")


def _volume(name: str) -> None:
    """Bind a claim as a ModelCache leaves it: this cluster has no provisioner."""
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": "weights"}
    bound = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    size = {"storage": "1Ti"}
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
    volume = {**shared, "capacity": size, "claimRef": reference, "hostPath": {"path": "/weights"}}
    claim = {**shared, "volumeName": name, "resources": {"requests": size}}
    apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume})
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    apply({**kind, "metadata": {**bound, "namespace": "default"}, "spec": claim})
    path = f"/api/v1/namespaces/default/persistentvolumeclaims/{name}/status"
    cluster.call("PATCH", path, {"status": {"phase": "Bound"}}, "application/merge-patch+json")


def call_path(manifest: Plain) -> str:
    """Return the path of an object."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{space}/{kind.lower()}s/{metadata['name']}"


# ------------------------------------------------------------------------------------------ one replica


class Replica:
    """A replica on the cluster: its scene, and the loop of Crossplane, provider and handler."""

    def __init__(self, scene: build.Scene) -> None:
        """Take a scene in which nothing is observed."""
        self.scene = scene
        self.applied: dict[str, Plain] = {}
        """The manifests on the cluster by key."""

    def step(self) -> Answer:
        """Ask the handler, apply what it wants, delete what it wants no more, and look."""
        answer = build.run(self.scene)
        wanted = {key: one for key, one in answer.desired.items() if one["kind"] == "Object"}
        for key in self.applied.keys() - wanted.keys():
            cluster.call("DELETE", call_path(self.applied.pop(key)))
        observed = {}
        for key, resource in wanted.items():
            manifest = resource["spec"]["forProvider"]["manifest"]
            refused = ""
            if resource["spec"].get("managementPolicies") != ["Observe"]:
                refused = self.put(manifest)
                self.applied[key] = manifest
            remote = cluster.call("GET", call_path(manifest))
            observed[key] = self._reported(key, resource, remote, refused)
        self._played()
        self.scene = self.scene.but(observed=observed, replica=self._with_status(answer))
        return answer

    def put(self, manifest: Plain) -> str:
        """Apply a manifest as provider-kubernetes does; return why it is refused, where that is no error."""
        path = f"{call_path(manifest)}?fieldManager=provider&force=true"
        cluster.call("PATCH", path, manifest, "application/apply-patch+yaml")
        return ""

    def _reported(self, key: str, resource: Plain, remote: Plain, refused: str) -> Plain:
        """Return an Object as provider-kubernetes leaves it after a look."""
        made = copy.deepcopy(resource)
        head = {"name": f"observed-{key}".replace(".", "-"), "namespace": build.NAMESPACE}
        made["metadata"] = head | made.get("metadata", {})
        query = made["spec"]["readiness"].get("celQuery", "")
        asked = re.search(r'c\.type == "(\w+)"', query)
        conditions = remote.get("status", {}).get("conditions", ())
        held = {one["type"] for one in conditions if one["status"] == "True"}
        ready = bool(remote) and (asked is None or asked[1] in held)
        is_synced = bool(remote) and not refused
        reason = "ReconcileSuccess" if is_synced else "ReconcileError"
        synced = condition("Synced", status=is_synced, reason=reason)
        made["status"] = {"conditions": [synced, condition("Ready", status=ready)]}
        if remote:
            made["status"]["atProvider"] = {"manifest": remote}
        if not is_synced:
            synced["message"] = refused or "observe failed: external resource does not exist"
        return made

    def _with_status(self, answer: Answer) -> Plain:
        """Return the replica with what the answer says of it."""
        made = copy.deepcopy(self.scene.replica)
        said = [
            condition(kind, status=status, reason=reason) | {"message": message}
            for kind, (status, reason, message) in answer.conditions.items()
        ]
        made["status"] = {**made.get("status", {}), **answer.status, "conditions": said}
        return made

    def _played(self) -> None:
        """Say of routes and pools what a gateway would."""
        space = self.namespace
        for version, plural in (
            ("gateway.networking.k8s.io/v1", "httproutes"),
            ("inference.networking.k8s.io/v1", "inferencepools"),
            ("inference.networking.x-k8s.io/v1alpha2", "inferencepools"),
        ):
            listed = cluster.call("GET", f"/apis/{version}/namespaces/{space}/{plural}").get("items", [])
            for one in listed:
                generation = one["metadata"].get("generation", 1)
                more = {"observedGeneration": generation, "message": ""}
                said = [
                    condition(kind, status=True, reason=kind) | more for kind in ("Accepted", "ResolvedRefs")
                ]
                parent = {"name": "inference-gateway", "namespace": "modelplane-system"}
                ours = {"parentRef": parent, "conditions": said}
                if plural == "httproutes":
                    ours["controllerName"] = "example.com/played"
                field = "parent" if version.endswith("v1alpha2") else "parents"
                if one.get("status", {}).get(field) != [ours]:
                    path = f"/apis/{version}/namespaces/{space}/{plural}/{one['metadata']['name']}/status"
                    status = {"status": {field: [ours]}}
                    cluster.call("PATCH", path, status, "application/merge-patch+json")

    def made(self) -> dict[tuple[str, str], Plain] | None:
        """The workloads that KServe made, by kind and name; None before there is one of each engine."""
        looked_at = [one for key, one in self.scene.observed.items() if key.startswith("see-serving")]
        seen = [one["status"].get("atProvider", {}).get("manifest") for one in looked_at]
        if not seen or not all(seen):
            return None
        return {(one["kind"], one["metadata"]["name"]): one for one in seen}

    @property
    def name(self) -> str:
        """The name of its service."""
        return str(self.applied["model-serving"]["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of its service."""
        return str(self.applied.get("model-serving", {}).get("metadata", {}).get("namespace", "default"))

    def until(self, look: Callable[[Answer], object], what: str) -> Answer:
        """Step until something is seen."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.step()
            if look(answer):
                return answer
            if time.monotonic() > end:
                raise Unexpected(f"not seen: {what}; {answer.conditions}")
            time.sleep(0.3)

    def pods(self) -> list[Plain]:
        """The pods of its engines."""
        listed = cluster.call("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        ours = [pod for pod in listed if pod["metadata"]["name"].startswith(f"{self.name}-kserve")]
        return [pod for pod in ours if "modelplane.ai/pool" in pod["spec"].get("nodeSelector", {})]

    def delete(self) -> None:
        """Delete everything and wait until nothing of it is left."""
        name, space = self.name, self.namespace
        for manifest in self.applied.values():
            if manifest["kind"] != "Namespace":
                cluster.call("DELETE", call_path(manifest))
        kinds = "llminferenceservices,deployments,leaderworkersets,pods,httproutes,inferencepools,services"

        def gone() -> bool:
            left = kubectl("get", kinds, f"--namespace={space}", "--output=name").split()
            return not [one for one in left if one.partition("/")[2].startswith(name)]

        if not cluster.wait(gone, PATIENCE):
            left = kubectl("get", kinds, f"--namespace={space}", "--output=name").split()
            raise Unexpected(f"left over: {left}")


class Unexpected(Exception):
    """Something became of a replica that the handler does not expect."""


def is_true(answer: Answer, kind: str) -> bool:
    """Tell whether a condition of an answer is True."""
    return answer.conditions.get(kind, (False, "", ""))[0]


def wanted_pods(replica: Plain) -> int:
    """Return how many pods a replica has."""
    return sum(
        engine["copies"]
        * sum(
            member.get("worker", {}).get("nodes") or 1 if member["role"] == "Worker" else 1
            for member in engine["members"]
        )
        for engine in replica["spec"]["engines"]
    )


# ------------------------------------------------------------------------------------------ what is asked


def serving(made: Plain, **fields: Any) -> Plain:
    """Return a replica whose `serving` has these fields too."""
    made["spec"].setdefault("serving", {}).update(fields)
    return made


NEWER = "registry.example.com/vllm/vllm-openai:v9"
HF = {"uri": "hf://org/m"}
TEAM = "example.com/team"


def cases() -> Iterator[tuple[str, Plain]]:
    """Yield what replicas of this kind there are, each with a reason."""
    yield "a pod", serving(build.replica(name="one"), model=HF)
    yield "two copies", serving(build.replica(build.engine(copies=2), name="two"), model=HF)
    gang = build.gang(nodes=1, args=("--pipeline-parallel-size=2",))
    yield "a gang by pipeline", serving(build.replica(gang, name="gang"), model=HF)
    local = ("--data-parallel-size=16", "--data-parallel-size-local=8")
    yield "a gang by data", serving(build.replica(build.gang(nodes=1, args=local), name="data"), model=HF)
    phases = build.engine("p", phase="Prefill"), build.engine("d", phase="Decode")
    apart = build.replica(*phases, mode="PrefillDecode", name="apart")
    yield "prefill and decode", serving(apart, model=HF)
    yield "weights of a cache", build.replica(name="cached", cache="weights")
    words = ("sh", "-c", "exec vllm serve --chat-template '{{ x }}'")
    braces = build.engine("main", build.member(command=words, args=("--seed=1",)))
    yield "braces of a template", serving(build.replica(braces, name="braces"), model=HF)
    yield "a long name", serving(build.replica(name="a" * 40), model=HF)


def on_kserve(api: str) -> Plain:
    """Return the cluster, with the version of KServe's API in which services are written there."""
    pools = [{"name": pool, "className": "any", "nodeCount": NODES} for pool in POOLS]
    return build.cluster(*pools, stack="KServe", kserve={"apiVersion": api})


def asked(replica: Plain, api: str) -> build.Scene:
    """Return the scene of a replica on a cluster with KServe; in v1alpha2 its pods have labels of its own."""
    members = [member for engine in replica["spec"]["engines"] for member in engine["members"]]
    for member in members if api == "v1alpha2" else ():
        member["template"]["metadata"] = {"labels": {TEAM: "ml"}, "annotations": {"example.com/x": "{{ x }}"}}
    return generate.unshared(build.Scene(replica, on_kserve(api), input=build.config()))


def expect_bound(replica: Replica, count: int) -> None:
    """Raise Unexpected unless so many pods have nodes of their pools, claims, and their labels."""
    if not cluster.wait(lambda: len(replica.pods()) == count, 60):
        raise Unexpected(f"{len(replica.pods())} of {count} pods")
    if not cluster.wait(lambda: all(pod["spec"].get("nodeName") for pod in replica.pods()), 60):
        raise Unexpected(f"pods wait: {[pod['status'].get('conditions') for pod in replica.pods()]}")
    for pod in replica.pods():
        pool = pod["spec"]["nodeSelector"]["modelplane.ai/pool"]
        node, claims = pod["spec"]["nodeName"], pod["status"].get("resourceClaimStatuses")
        if not node.startswith(pool) or not claims:
            raise Unexpected(f"{pod['metadata']['name']} is on {node}, its claims are {claims}")
        [asked_for] = {
            member["template"].get("metadata", {}).get("labels", {}).get(TEAM)
            for engine in replica.scene.replica["spec"]["engines"]
            for member in engine["members"]
        }
        if pod["metadata"]["labels"].get(TEAM) != asked_for:
            raise Unexpected(f"{pod['metadata']['name']} has the labels {pod['metadata']['labels']}")


def move(replica: Replica, then: Plain) -> None:
    """Let the cluster ask for another version of the API. Raises Unexpected where that changes what runs."""
    before = replica.applied["model-serving"]
    replica.scene = replica.scene.but(cluster=then)
    if not is_true(replica.step(), "ModelUpdated") or replica.applied["model-serving"] != before:
        raise Unexpected("what runs is written anew for another version of the API")


def live(name: str, scene: build.Scene, *, binds: bool, then: Plain | None = None) -> None:
    """Create a replica; where its pods bind here, edit its image and scale it; delete it.

    `then`: its cluster as it is from before the edit on.
    """
    replica = Replica(scene)
    try:
        if "model-serving" not in replica.step().desired:
            raise Unexpected("no service is composed")
        replica.until(lambda _: replica.made() is not None, "a workload of each engine")
        kserve_cluster.runs_what_is_wanted(scene.replica["spec"], replica.made() or {}, replica.name, name)
        count = wanted_pods(scene.replica)
        if not binds:
            return
        expect_bound(replica, count)
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "ModelUpdated")
        if then is not None:
            move(replica, then)
        made = copy.deepcopy(replica.scene.replica)
        images = [
            container
            for engine in made["spec"]["engines"]
            for member in engine["members"]
            for container in member["template"]["spec"]["containers"]
        ]
        for container in images:
            container["image"] = NEWER
        replica.scene = replica.scene.but(replica=made)
        replica.until(lambda answer: not is_true(answer, "ModelUpdated"), "an update under way")
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "the update done")
        containers = [one for pod in replica.pods() for one in pod["spec"]["containers"]]
        run = {container["image"] for container in containers if container["name"] == "main"}
        if run != {NEWER}:
            raise Unexpected(f"ModelUpdated, and pods run {run}")
        made = copy.deepcopy(replica.scene.replica)
        made["spec"]["engines"][0]["copies"] += 1
        replica.scene = replica.scene.but(replica=made)
        count = wanted_pods(made)
        replica.until(lambda _: len(replica.pods()) == count, "one copy more")
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ready with it")
    finally:
        if "model-serving" in replica.applied:
            replica.delete()


def resized(api: str) -> None:
    """Ask for fewer workers and more copies of a gang: the webhook refuses both, and what runs goes on.

    A scheduler replaces such a replica (`SizeFixed`), so it never asks for this.
    """
    before, after = (
        build.gang(nodes=pods - 1, copies=copies, args=(f"--pipeline-parallel-size={pods}",))
        for pods, copies in ((3, 1), (2, 2))
    )
    replica = Replica(asked(serving(build.replica(before, name="resized"), model=HF), api))
    try:
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "ModelUpdated")
        running = {pod["metadata"]["uid"] for pod in replica.pods()}
        replica.scene = replica.scene.edited(engines=[after])
        try:
            replica.step()
        except cluster.RefusedByServer as refused:
            if "size is immutable" not in str(refused):
                raise
        else:
            raise Unexpected("another size is taken")
        if running != {pod["metadata"]["uid"] for pod in replica.pods()}:
            raise Unexpected("a refused edit restarts pods")
    finally:
        replica.delete()


def drawn(seed: int) -> build.Scene | None:
    """Return a random scene, None where it has too many pods for this cluster."""
    scene = generate.kserve_scene(seed)
    return scene if wanted_pods(scene.replica) <= PODS else None


def main() -> int:
    """Ask every case, and as many random ones; return 1 when something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", type=int, default=20, help="random replicas beside the cases")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--api",
        choices=("v1alpha1", "v1alpha2", "moves"),
        default="v1alpha1",
        help="the version of its API on the cluster; moves: v1alpha2 from before the edit on",
    )
    parser.add_argument("--only", help="the case of this name alone")
    parser.add_argument("--keep-going", action="store_true", help="ask all of them, whatever differs")
    options = parser.parse_args()
    if reason := cluster.missing():
        sys.stdout.write(f"left out: {reason}\n")
        return 0
    assert isolate(), "it needs a network namespace of its own"
    counted: Counter[str] = Counter()
    say = functools.partial(print, flush=True)
    with cluster.started(), controller(options.folder):
        api = "v1alpha2" if options.api == "v1alpha2" else "v1alpha1"
        then = on_kserve("v1alpha2") if options.api == "moves" else None
        questions: list[tuple[str, Callable[[], None]]] = [
            (name, functools.partial(live, name, asked(replica, api), binds=True, then=then))
            for name, replica in cases()
        ]
        questions.append(("another size", functools.partial(resized, api)))
        questions = [question for question in questions if options.only in (None, question[0])]
        seed, last = options.first, len(questions) + options.scenes
        while len(questions) < last and options.only is None:
            if (scene := drawn(seed)) is not None and scene.cluster is not None:
                scene.cluster["spec"]["kserve"] = {"apiVersion": api}
                name = f"seed {seed}"
                questions.append((name, functools.partial(live, name, scene, binds=False, then=then)))
            seed += 1
        for name, ask in questions:
            begun = time.monotonic()
            try:
                ask()
            except (Unexpected, AssertionError, cluster.RefusedByServer) as difference:
                counted["differ"] += 1
                say(f"DIFFERS {name}: {str(difference)[:1500]}")
            else:
                counted["as expected"] += 1
                say(f"{time.monotonic() - begun:6.1f} s  {name}")
    for what, number in sorted(counted.items()):
        say(f"{number:8}  {what}")
    return 1 if counted["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hold the workloads of the replica handler against a real Kueue: `python -m tests.referee.kueue FOLDER`.

FOLDER is what `hack/kueue.sh` made. Kueue runs with its webhooks, and a certificate made here, beside the
referee's workload cluster; the queue is named in `scheduling` of the InferenceCluster, and nowhere else. A
handler's answer is applied, what is there is reported as provider-kubernetes reports it, and the handler is
asked again.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from function import objects
from tests.live.__main__ import isolate
from tests.referee import cluster
from tests.referee.kserve import Replica, Unexpected, apply, is_true, kubectl, wanted_pods
from tests.replica import build
from tests.support.build import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.drive import Answer

Plain = dict[str, Any]
PORT, HEALTH, METRICS = 39643, 39281, 39282
API = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
PODS = "/api/v1/namespaces/default/pods"
WORKLOADS = f"/apis/{API}/namespaces/default/workloads"
KINDS = ("pod", "deployment", "statefulset", "leaderworkerset", "clusterqueue", "localqueue")
KINDS += ("workload", "resourceflavor", "cohort")
"""The kinds whose webhooks are installed: this cluster does not serve the others."""
CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
"""The kinds whose versions differ."""
AT_ITS_PLACE = """
set -e
mkdir -p $1/upper/kueue/metrics/certs $1/work && cp $1/tls.* $1/upper/kueue/metrics/certs
mount -t overlay overlay -o lowerdir=/etc,upperdir=$1/upper,workdir=$1/work /etc
exec $2 --config=$1/config.yaml
"""
"""Runs Kueue where the certificate of its metrics is at the one path that it looks at, for itself alone."""
PATIENCE, STILL = 120.0, 6.0
NODES = 8


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def expect(condition: object, text: str) -> None:
    """Raise Unexpected unless something is so."""
    if not condition:
        raise Unexpected(text)


# ------------------------------------------------------------------------------------------ Kueue


@contextmanager
def controller(folder: Path, *, counts_devices: bool) -> Iterator[None]:
    """Run Kueue on the started cluster. `counts_devices`: with its gate that reads claims."""
    frameworks = ["pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"]
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
        words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        words += ["-keyout", str(home / "tls.key"), "-out", str(home / "tls.crt")]
        subprocess.run(words, check=True, capture_output=True)
        bundle = base64.b64encode((home / "tls.crt").read_bytes()).decode()
        for manifest in _documents(folder):
            if manifest["kind"] == "CustomResourceDefinition":
                apply(_called(manifest, bundle))
        expect(cluster.wait(_is_served, 60), "the API server does not serve Kueue's kinds")
        configuration: Plain = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{HEALTH}"},
            "metrics": {"bindAddress": f"127.0.0.1:{METRICS}"},
            "webhook": {"host": "127.0.0.1", "port": PORT, "certDir": str(home)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": frameworks},
            "featureGates": {"VisibilityOnDemand": False, "DynamicResourceAllocation": counts_devices},
        }
        if counts_devices:
            mapping = {"name": "gpus", "deviceClassNames": ["gpu.nvidia.com"]}
            configuration["resources"] = {"deviceClassMappings": [mapping]}
        (home / "config.yaml").write_text(yaml.safe_dump(configuration))
        state = Path(os.environ.get("REFEREE_STATE") or Path(tempfile.gettempdir()) / "referee") / "state"
        environment = os.environ | {"KUBECONFIG": str(state / "admin.kubeconfig")}
        log = home / "kueue.log"
        with log.open("wb") as output:
            program = ["unshare", "--mount", "bash", "-c", AT_ITS_PLACE, "kueue"]
            program += [str(home), str(folder / "kueue")]
            process = subprocess.Popen(program, stdout=output, stderr=output, env=environment)
        try:
            expect(cluster.wait(lambda: _answers(process), PATIENCE), "Kueue's webhooks do not answer")
            for manifest in _documents(folder):
                if "webhooks" in manifest:
                    apply(_called(manifest, bundle))
            yield
        except Exception:
            say(log.read_text()[-4000:])
            raise
        finally:
            for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
                kubectl("delete", kind, "--selector=referee=kueue")
            process.terminate()
            process.wait(30)


def _is_served() -> bool:
    """Ask as Kueue does when it starts: by the discovery of all groups, which comes late."""
    kinds = kubectl("api-resources", "--api-group=kueue.x-k8s.io", "--cached=false", "--output=name")
    wanted = {f"{kind}.kueue.x-k8s.io" for kind in ("workloads", "topologies", "localqueues")}
    return wanted <= set(kinds.split())


def _documents(folder: Path) -> Iterator[Plain]:
    for path in sorted(folder.glob("*/*.yaml")):
        yield from (one for one in yaml.safe_load_all(path.read_text()) if one)


def _answers(process: subprocess.Popen[bytes]) -> bool:
    expect(process.poll() is None, "Kueue ended")
    probe = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{PORT}"]
    return not subprocess.run(probe, check=False, capture_output=True).returncode


def _called(manifest: Plain, bundle: str) -> Plain:
    """Return a manifest whose webhooks are at our address, as Kueue's own patches and Service have them."""
    made: Plain = json.loads(json.dumps(manifest))
    if "webhooks" in made:
        made["metadata"] |= {"name": f"kueue-{made['metadata']['name']}", "labels": {"referee": "kueue"}}
        made["webhooks"] = [
            hook for hook in made["webhooks"] if hook["name"].removesuffix(".kb.io")[1:] in KINDS
        ]
        for hook in made["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{PORT}{path}", "caBundle": bundle}
    elif made["spec"]["names"]["plural"] in CONVERTED:
        reach = {"url": f"https://127.0.0.1:{PORT}/convert", "caBundle": bundle}
        webhook = {"clientConfig": reach, "conversionReviewVersions": ["v1"]}
        made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return made


def quota(resource: str, amount: int, *, stopped: bool = False) -> None:
    """Give the queue `team` so much; `stopped`: it admits nothing."""
    covered = {"coveredResources": [resource]}
    nominal = {"name": "any", "resources": [{"name": resource, "nominalQuota": str(amount)}]}
    spec: Plain = {
        "namespaceSelector": {},
        "resourceGroups": [covered | {"flavors": [nominal]}],
        "stopPolicy": "Hold" if stopped else "None",
    }
    for kind, name, body in (
        ("ResourceFlavor", "any", {}),
        ("ClusterQueue", "all", spec),
        ("LocalQueue", "team", {"clusterQueue": "all"}),
    ):
        metadata = {"name": name} | ({"namespace": "default"} if kind == "LocalQueue" else {})
        apply({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": body})


# ------------------------------------------------------------------------------------------ one replica


class Queued(Replica):
    """A replica on a cluster with Kueue: a refusal is reported, and its pods are observed where it asks."""

    def put(self, manifest: Plain) -> str:
        """Apply a manifest; return what a webhook says against it."""
        try:
            return super().put(manifest)
        except cluster.RefusedByServer as refused:
            return str(refused)

    def step(self) -> Answer:
        """Do what every replica does, and deliver the pods that a collection asks for."""
        answer = super().step()
        observed, more = dict(self.scene.observed), {}
        for key, resource in answer.desired.items():
            if resource["kind"] == objects.COLLECTION:
                said = [condition("Synced", status=True), condition("Ready", status=True)]
                head = {"name": f"observed-{key}", "namespace": build.NAMESPACE}
                observed[key] = {**resource, "metadata": head, "status": {"conditions": said}}
                more[key] = [
                    {
                        "apiVersion": objects.API_VERSION,
                        "kind": objects.KIND,
                        "metadata": {"name": pod["metadata"]["name"], "namespace": build.NAMESPACE},
                        "spec": {"forProvider": {"manifest": _reference(pod)}},
                        "status": {"conditions": said, "atProvider": {"manifest": pod}},
                    }
                    for pod in self.pods()
                ]
        self.scene = self.scene.but(observed=observed, more=more)
        return answer

    @property
    def called(self) -> str:
        """The name of the replica."""
        return str(self.scene.replica["metadata"]["name"])

    def pods(self) -> list[Plain]:
        """The pods of its engines."""
        return [pod for pod in self.all_pods() if pod["spec"]["containers"][0]["name"] == "engine"]

    def all_pods(self) -> list[Plain]:
        """Its pods, with the picker's."""
        listed = cluster.call("GET", PODS)["items"]
        return [pod for pod in listed if pod["metadata"]["name"].startswith(f"{self.called}-")]

    def bound(self) -> int:
        """How many pods of engines have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods())

    def settle(self, seconds: float = STILL) -> Answer:
        """Step for some time; return the last answer."""
        end = time.monotonic() + seconds
        while True:
            answer = self.step()
            if time.monotonic() > end:
                return answer
            time.sleep(0.3)

    def remove(self) -> None:
        """Delete everything and wait until nothing is left of it, in Kueue neither."""
        for one in self.applied.values():
            words = ("--namespace=default", "--wait=false", "--ignore-not-found")
            kubectl("delete", one["kind"], one["metadata"]["name"], *words)

        def gone() -> bool:
            left = cluster.call("GET", WORKLOADS)["items"]
            return not self.all_pods() and not [one for one in left if self.called in one["metadata"]["name"]]

        expect(cluster.wait(gone, PATIENCE), f"left over: {len(self.all_pods())} pods, or workloads")


def _reference(pod: Plain) -> Plain:
    head = {key: pod["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head}


def on_kueue(**labels: str) -> Plain:
    """Return the cluster, whose pods go through the queue."""
    pool = {"name": "frontier", "className": "any", "nodeCount": NODES}
    return build.cluster(pool, scheduling={"labels": {QUEUE: "team", **labels}})


def queued(name: str, *engines: Plain) -> Queued:
    """Return a replica that is not on the cluster yet."""
    scene = build.Scene(build.replica(*engines, name=name), on_kueue(), input=build.config(diagnose="Pods"))
    return Queued(scene)


def member(role: str = "Standalone", **options: Any) -> Plain:
    """Return a member that claims one device."""
    return build.member(role, [build.claim("gpu", 1)], **options)


def single(copies: int = 1) -> Plain:
    """Return an engine of single pods."""
    return build.engine("main", member(), copies=copies)


def gang(copies: int = 1, **options: Any) -> Plain:
    """Return an engine of pairs."""
    leader, worker = member("Leader", **options), member("Worker", nodes=1, **options)
    return build.engine("main", leader, worker, copies=copies)


# ------------------------------------------------------------------------------------------ what is asked


def holds_and_releases(name: str, engine: Plain) -> str:
    """A replica waits while the queue admits nothing, is seen as pending, and runs once it does."""
    quota("pods", 20, stopped=True)
    replica = queued(name, engine)
    try:
        answer = replica.until(lambda _: replica.pods(), "pods that wait")
        answer = replica.settle()
        expect(replica.bound() == 0, "pods are bound although the queue admits nothing")
        ready, scheduled = answer.conditions["ModelReady"], answer.conditions["PodsScheduled"]
        expect(is_true(answer, "ModelAccepted"), f"held, it is not accepted: {answer.conditions}")
        expect(ready[:2] == (False, "Unschedulable"), f"held, ModelReady says {ready}")
        expect("kueue.x-k8s.io/admission" in scheduled[2], f"held, PodsScheduled says {scheduled}")
        updated = answer.conditions["ModelUpdated"]
        expect(updated[1] != "RolloutStalled", f"held, ModelUpdated says {updated}")
        quota("pods", 20)
        count = wanted_pods(replica.scene.replica)
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "ModelUpdated")
        expect(cluster.wait(lambda: replica.bound() == count, PATIENCE), f"not all of {count} pods are bound")
    finally:
        replica.remove()
    return f"held, then {count} pods bound; held it says {scheduled[2]}"


def waits_for_quota(name: str, engine: Plain) -> str:
    """Two replicas do not fit into the quota together: the second waits until the first has left."""
    first, second = queued(f"{name}-a", engine), queued(f"{name}-b", engine)
    count = wanted_pods(first.scene.replica)
    quota("pods", 2 + 2 * count - 1)  # Their pickers take one each.
    try:
        first.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady of the first")
        second.until(lambda _: second.pods(), "pods of the second")
        answer = second.settle()
        bound = second.bound()
        expect(bound < count, "the quota admits more than there is")
        is_gang = len(engine["members"]) > 1
        expect(bound % len(engine["members"]) == 0, f"{bound} pods are bound: a part of a gang")
        said = answer.conditions["ModelReady"]
        # A Deployment serves with the first of its copies, a LeaderWorkerSet is Available with the last one.
        expect(said[0] == (bound > 0 and not is_gang), f"with {bound} pods, ModelReady says {said}")
        first.remove()
        second.until(lambda _: second.bound() == count, "all pods of the second")
        second.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady of the second")
    finally:
        first.remove()
        second.remove()
    return f"the second waits with {bound} of {count} pods, and has them all once the first has left"


def edits_the_image(name: str, engine: Plain) -> str:
    """An edit of the image rolls out through the queue."""
    quota("pods", 20)
    replica = queued(name, engine)
    try:
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "ModelUpdated")
        before = copy.deepcopy(replica.applied)
        answer = replica.settle(2)
        expect(replica.applied == before and is_true(answer, "ModelUpdated"), "it does not come to rest")
        newer = "registry.example.com/vllm/vllm-openai:v9"
        edited(replica, lambda one: one["template"]["spec"]["containers"][0].update(image=newer))
        replica.until(lambda answer: not is_true(answer, "ModelUpdated"), "an update under way")
        replica.until(lambda answer: is_true(answer, "ModelUpdated"), "the update done")
        images = {pod["spec"]["containers"][0]["image"] for pod in replica.pods()}
        expect(images == {newer}, f"ModelUpdated, and pods run {images}")
    finally:
        replica.remove()
    return "rolled out"


def edited(replica: Queued, change: Callable[[Plain], None]) -> None:
    """Change all members of a replica."""
    made = copy.deepcopy(replica.scene.replica)
    for engine in made["spec"]["engines"]:
        for one in engine["members"]:
            change(one)
    replica.scene = replica.scene.but(replica=made)


def edits_the_devices(name: str, engine: Plain) -> str:
    """An edit of the device requests: what Kueue refuses is named, and what runs goes on."""
    quota("pods", 20)
    replica = queued(name, engine)
    try:
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        pods = {pod["metadata"]["uid"] for pod in replica.pods()}
        edited(replica, lambda one: one.update(deviceRequests=[build.claim("gpu", 2)]))
        answer = replica.settle(10)
        updated = answer.conditions["ModelUpdated"]
        if is_true(answer, "ModelUpdated"):
            return "rolled out"
        running = {pod["metadata"]["uid"] for pod in replica.pods()}
        expect(running == pods and replica.bound() == len(pods), "refused, and pods were replaced")
        expect(is_true(answer, "ModelReady"), f"refused, ModelReady says {answer.conditions['ModelReady']}")
        expect("resourceClaims" in updated[2] or "immutable" in updated[2], f"ModelUpdated says {updated}")
    finally:
        replica.remove()
    return f"refused, what runs goes on; ModelUpdated says: {updated[2][-300:]}"


def moves_to_another_queue(name: str, engine: Plain) -> str:
    """A cluster that names another queue: what Kueue refuses is named, and what runs goes on."""
    quota("pods", 20)
    apply(
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": "other", "namespace": "default"},
            "spec": {"clusterQueue": "all"},
        }
    )
    replica = queued(name, engine)
    try:
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        replica.scene = replica.scene.but(cluster=on_kueue(**{QUEUE: "other"}))
        answer = replica.settle(8)
        expect(is_true(answer, "ModelReady"), f"refused, ModelReady says {answer.conditions['ModelReady']}")
        updated = answer.conditions["ModelUpdated"]
        if is_true(answer, "ModelUpdated"):
            return "moved"
        expect("queue-name" in updated[2], f"ModelUpdated says {updated}")
    finally:
        replica.remove()
    return f"refused, what runs goes on; ModelUpdated says: {updated[2][-300:]}"


def frees_what_was_gated(name: str, engine: Plain) -> str:
    """A gang whose pods an earlier release gave the queue stays as it is, and runs from its next edit on."""
    quota("pods", 20)
    replica = queued(name, engine)
    composed = copy.deepcopy(dict(build.run(replica.scene).desired["model-serving-main"]))
    group = composed["spec"]["forProvider"]["manifest"]["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        group[part].setdefault("metadata", {}).setdefault("labels", {})[QUEUE] = "team"
    composed["metadata"] = {"name": "observed-model-serving-main", "namespace": build.NAMESPACE}
    composed["status"] = {"conditions": [condition("Synced", status=True)]}
    replica.scene = replica.scene.but(observed={"model-serving-main": composed})
    try:
        replica.until(lambda _: replica.pods(), "pods that wait")
        answer = replica.settle(10)
        applied = replica.applied["model-serving-main"]["spec"]["leaderWorkerTemplate"]
        expect(applied == group, "the pods of a gang were changed without an edit")
        expect(replica.bound() == 0, "its pods are not gated: Kueue does otherwise than it did")
        expect(not is_true(answer, "ModelReady"), "gated, and ready")
        edited(replica, lambda one: one["template"]["spec"]["containers"][0].update(image="example.com/v9"))
        replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
        count = wanted_pods(replica.scene.replica)
        expect(replica.bound() == count, f"{replica.bound()} of {count} pods are bound")
    finally:
        replica.remove()
    return f"gated until it is edited, then {count} pods bound"


def counts_no_devices(name: str, engine: Plain) -> str:
    """With the gate that reads claims, a claim that selects devices is never admitted."""
    quota("gpus", 20)
    replica = queued(name, engine)
    try:
        answer = replica.until(lambda _: replica.pods(), "pods that wait")
        answer = replica.settle(10)
        expect(replica.bound() == 0, "it is admitted")
        workloads = [
            one for one in cluster.call("GET", WORKLOADS)["items"] if name in one["metadata"]["name"]
        ]
        said = {text["message"] for one in workloads for text in one.get("status", {}).get("conditions", ())}
        ready = answer.conditions["ModelReady"]
        expect(ready[1] == "Unschedulable", f"ModelReady says {ready}")
    finally:
        replica.remove()
    return f"not admitted: {sorted(said)}"


def main() -> int:
    """Ask everything; return 1 when something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="the question of this name alone")
    options = parser.parse_args()
    reason = cluster.missing() or ("" if isolate() else "this container may not make namespaces")
    if reason:
        say(f"make referee-kueue is skipped: {reason}")
        return 0
    questions = (
        holds_and_releases,
        waits_for_quota,
        edits_the_image,
        edits_the_devices,
        moves_to_another_queue,
    )
    differ = []

    def ask(question: Callable[[str, Plain], str], kind: str, engine: Plain) -> None:
        if options.only not in (None, question.__name__):
            return
        begun = time.monotonic()
        try:
            said = question(
                f"q{len(differ)}-{question.__name__.replace('_', '-')[:12]}-{kind[:4].lower()}", engine
            )
        except (Unexpected, AssertionError, cluster.RefusedByServer) as difference:
            differ.append(f"{kind}: {question.__name__}: {str(difference)[:2000]}")
            say(f"DIFFERS {differ[-1]}")
        else:
            say(f"{time.monotonic() - begun:6.1f} s  {kind}: {question.__name__}: {said}")

    with cluster.started():
        for number in range(NODES):
            typed = {"type": {"string": "gpu"}}
            gpu = {"name": "gpu", "claim": "DRA", "driver": "gpu.nvidia.com", "count": 8, "attributes": typed}
            gpu["capacity"] = {"memory": {"value": "143771Mi"}}
            cluster.add_node(f"frontier-{number}", {"modelplane.ai/pool": "frontier"}, [gpu])
        cluster.add_node("others", {}, [])
        with controller(options.folder, counts_devices=False):
            for question in questions:
                for kind, engine in (("Deployment", single(2)), ("LeaderWorkerSet", gang(2))):
                    ask(question, kind, engine)
            ask(holds_and_releases, "single", single())
            ask(frees_what_was_gated, "LeaderWorkerSet", gang(2))
        with controller(options.folder, counts_devices=True):
            ask(counts_no_devices, "Deployment", single())
    say(f"{len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

"""What is behind the ModelReplicas of a simulated fleet: it starts pods slowly, or never, and tells it late.

`Foreign` is any platform: it publishes a generation with Ready, or nothing but Ready. `Chain` is ours, whole:
the handler of ModelReplicas, Crossplane, provider-kubernetes (`provider`), the controllers of Deployments,
LeaderWorkerSets and KServe, and the kubelets (`workers`). There each acts in an order of its own, or does
not, or twice; each looks at what it saw an hour ago; and what each wrote may be lost after it took effect:

- Crossplane composes from what it read before, applies and fails before it writes the status;
- the provider has not acted yet, only polls, cannot reach the cluster, or loses what it was answered;
- a controller acts a tick, many ticks or not at all later; a LeaderWorkerSet then says the same as before.

How late each of the three is differs from life to life (`lags`), so in one everybody acts at once but the
controllers, in another all but the provider do.

Both know the truth of every replica.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.replica import build as replicas, kserve_cluster
from tests.simulate.provider import Provider
from tests.simulate.workers import BROKEN, WORKLOADS, Cluster, condition, image_of, place_of, written
from tests.support import build
from tests.support.any_request import AnyRequest
from tests.support.crossplane import DYING, ControlPlane, Name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tests.simulate.workers import Place
    from tests.support.parts import Source

Plain = dict[str, Any]
Template = tuple[str, ...]

CROSSPLANE, PROVIDER, CONTROLLERS = "Crossplane", "the provider", "the controllers"
USUAL = {CROSSPLANE: 0.3, PROVIDER: 0.4, CONTROLLERS: 0.4}


def image(plain: Plain) -> str:
    """Return the image of a replica's, or a deployment's, one engine."""
    spec = plain["spec"].get("template", plain)["spec"]
    return str(spec["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["image"])


@dataclass
class Pods:
    """The pods of one replica on a foreign platform."""

    runs: str
    left: int
    """Steps until they serve; -1 for never."""
    lag: int = 0
    """Steps until the platform looks at a new template."""
    down: int = 0
    """Steps until they are back after a failure."""

    @property
    def serve(self) -> bool:
        """Whether they take requests."""
        return self.left == 0 and self.down == 0


@dataclass
class Foreign:
    """Somebody else's platform. It publishes Ready, of a generation or of nothing."""

    draw: Source
    publishes: str
    pods: dict[str, Pods] = field(default_factory=dict)
    """By the uid of the replica."""

    def serves(self, replica: Plain) -> bool:
        """Whether a replica serves what its spec says."""
        pods = self.pods[replica["metadata"]["uid"]]
        return pods.serve and pods.runs == image(replica)

    def takes_requests(self, replica: Plain) -> bool:
        """Whether a replica takes requests that will not be taken from it."""
        return self.serves(replica)

    def edited(self, replica: Plain) -> None:
        """Take note of a new template: where generations are told, it is looked at when it is."""
        late = 0 if self.publishes == "ready" else self.draw.choice((0, 1, 2))
        self.pods[replica["metadata"]["uid"]].lag = late

    def act(self, living: Mapping[str, Plain]) -> None:
        """Act once on every replica, and publish what is known."""
        for replica in living.values():
            pods = self.pods.get(replica["metadata"]["uid"])
            if pods is None:
                pods = Pods(image(replica), self._start(image(replica)))
                self.pods[replica["metadata"]["uid"]] = pods
            elif pods.runs != image(replica):
                if pods.lag > 0:
                    pods.lag -= 1
                    continue  # It has not looked at it: the old pods serve, nothing is published.
                pods.runs, pods.left = image(replica), self._start(image(replica))
            elif pods.left > 0:
                pods.left -= 1
            pods.down = max(0, pods.down - 1)
            self._publish(replica, pods)

    def fail(self, replica: Plain) -> None:
        """Let the pods of a replica be gone for a while."""
        pods = self.pods[replica["metadata"]["uid"]]
        pods.down = self.draw.choice((1, 2, 4))
        if pods.runs == image(replica):
            self._publish(replica, pods)
        else:
            replica["status"]["conditions"] = [build.condition("Ready", status=False)]

    def disturb(self) -> None:
        """Nothing is between it and its clusters."""

    def calm(self) -> None:
        """It is never later than it is."""

    def _start(self, name: str) -> int:
        return -1 if BROKEN in name else self.draw.choice((0, 1, 1, 3))

    def _publish(self, replica: Plain, pods: Pods) -> None:
        ready = build.condition("Ready", status=pods.serve)
        if self.publishes == "generation":
            ready["observedGeneration"] = replica["metadata"].get("generation", 1)
        replica["status"] = {"conditions": [ready]}


@dataclass
class Chain:
    """Ours. `fleet`: the InferenceClusters by name, as the control plane has them."""

    draw: Source
    fleet: Mapping[str, Plain]
    remote: dict[str, Cluster] = field(default_factory=dict)
    """The clusters by name. They outlive their InferenceCluster."""
    composed: dict[str, dict[str, Name]] = field(default_factory=dict)
    """Composed resources by key, by the uid of the replica."""
    earlier: dict[str, dict[str, Plain]] = field(default_factory=dict)
    """The same as Crossplane read them before."""
    proven: dict[str, Template] = field(default_factory=dict)
    """What all pods of a replica ran when all of them took requests, by its uid."""
    asleep: dict[str, int] = field(default_factory=dict)
    """Ticks until the controllers of a cluster come back."""
    lags: Mapping[str, float] = field(default_factory=USUAL.copy)
    """The chance that somebody does not act when it is its turn."""
    to_own_namespace: bool = False
    """Whether the input sends replicas that do not run yet to a namespace of their own."""
    quiet: bool = False
    """Whether everybody acts at once."""
    gentle: bool = False
    """Whether the pods of a replica are replaced while others of it serve."""
    born: int = 0

    def __post_init__(self) -> None:
        """Begin with a control plane that has what is composed; who reconciles, and when, is drawn here."""
        self.plane = ControlPlane({})
        self.provider = Provider(self.plane, self._lead, self.draw)

    def _lead(self, config: str) -> Cluster | None:
        return self.remote.get(config.removesuffix("-kubeconfig"))

    @property
    def complaints(self) -> list[str]:
        """What left a cluster while pods refer to it."""
        return self.provider.complaints

    # The truth

    def serves(self, replica: Plain) -> bool:
        """Whether a replica serves what its spec says, as far as anybody can know.

        It has proved to since it was edited, its pods and their controllers are about nothing else, and that
        they failed since was not reported.
        """
        return condition(replica, "Ready") == "True" and self.proved(replica)

    def takes_requests(self, replica: Plain) -> bool:
        """Whether a replica takes requests, as far as anybody can know."""
        if not self.gentle:
            return self.serves(replica)
        cluster = self._cluster(replica)
        pods = [pod for place in self._workloads(replica) for pod in cluster.mine(place)]
        return condition(replica, "Ready") == "True" and (
            self.proved(replica) or any(pod.ready for pod in pods)
        )

    def proved(self, replica: Plain) -> bool:
        """Whether all of its pods took requests since it was edited, and it runs nothing else."""
        return self.proven.get(replica["metadata"]["uid"], ()) == self._runs(replica)

    def _runs(self, replica: Plain) -> Template | None:
        """Return what the pods run, where that is all that is wanted and on its way; else None."""
        cluster, made = self._cluster(replica), self._workloads(replica)
        templates = [image_of(template) for place in made for template in written(cluster.objects[place])]
        pods = [image_of(pod.template) for place in made for pod in cluster.mine(place)]
        return (image(replica),) if {*templates, *pods} == {image(replica)} else None

    def runs(self, images: Collection[str]) -> bool:
        """Tell whether some pod runs one of these images."""
        return any(image_of(pod.template) in images for one in self.remote.values() for pod in one.pods)

    def is_mute(self, replica: Plain) -> bool:
        """Tell whether nothing on its cluster says what the pods of a gang run, and nothing ever will.

        Its controller is done, and had nothing to write since the template was written last: that was taken
        back to what the pods ran. Who saw neither of the two before cannot tell them apart.
        """
        cluster = self._cluster(replica)
        for place in self._workloads(replica):
            made = cluster.objects[place]
            if place[1] == "LeaderWorkerSet" and made["metadata"]["generation"] > 1 and self.proved(replica):
                writes = made["metadata"]["managedFields"]
                written = {"subresource" in write: write["time"] for write in writes}
                if written[False] >= written[True]:
                    return True
        return False

    def _workloads(self, replica: Plain) -> list[Place]:
        places = (place_of(one) for one in self._manifests(replica))
        objects = self._cluster(replica).objects
        return [place for place in places if place in objects and place[1] in WORKLOADS]

    def _manifests(self, replica: Plain) -> list[Plain]:
        composed = self.composed.get(replica["metadata"]["uid"], {})
        return [
            self.plane.objects[name]["spec"]["forProvider"]["manifest"]
            for key, name in composed.items()
            if not key.startswith("epp")
        ]

    def _prove(self, replica: Plain) -> None:
        cluster, made = self._cluster(replica), self._workloads(replica)
        runs = self._runs(replica)
        pods = [pod for place in made for pod in cluster.mine(place)]
        if runs is not None and pods and all(pod.ready for pod in pods):
            self.proven[replica["metadata"]["uid"]] = runs

    def _cluster(self, replica: Plain) -> Cluster:
        return self.remote[replica["spec"]["clusterName"]]

    # What happens

    def edited(self, replica: Plain) -> None:
        """Whatever it ran before, it has to prove what it is asked for now."""
        self.proven.pop(replica["metadata"]["uid"], None)

    def restamp(self, replica: Plain, selector: str) -> None:
        """Edit the claims of a replica by hand: they are immutable, so others take their place."""
        for member in replica["spec"]["engines"][0]["members"]:
            for request in member.get("deviceRequests", ()):
                request["selectors"] = [*request.get("selectors", ())[:1], {"cel": selector}]
        replica["metadata"]["generation"] = replica["metadata"].get("generation", 1) + 1
        self.edited(replica)

    def fail(self, replica: Plain) -> None:
        """Let all pods of a replica be gone at once."""
        cluster = self._cluster(replica)
        for place in self._workloads(replica):
            cluster.pods = [pod for pod in cluster.pods if pod.workload != place]

    def disturb(self) -> None:
        """Cut a cluster off, or let its controllers sleep; or let both be over."""
        name = self.draw.choice(sorted(self.remote))
        cluster = self.remote[name]
        if self.draw.odds(0.5):
            cluster.reachable = not cluster.reachable
        else:
            self.asleep[name] = self.draw.choice((0, 4, 12))
        self.provider.watches = self.draw.odds(0.5)

    def refuse(self) -> None:
        """Let a quota refuse further pods of a cluster, or lift it."""
        cluster = self.remote[self.draw.choice(sorted(self.remote))]
        cluster.quota = len(cluster.pods) if cluster.quota is None else None

    def calm(self) -> None:
        """From now on everybody acts at once, in order."""
        self.quiet = self.provider.quiet = True
        self.asleep.clear()
        for cluster in self.remote.values():
            cluster.reachable, cluster.quota = True, None

    def act(self, living: Mapping[str, Plain]) -> None:
        """Let everybody act, in any order, some twice and some not."""
        alive = {replica["metadata"]["uid"] for replica in living.values()}
        for uid in [uid for uid in self.composed if uid not in alive]:  # Foreground: all of it went before.
            for name in self.composed.pop(uid).values():
                self.provider.drop(self.plane.objects[name])
                self.plane.delete(name, by_hand=True)
        self.provider.lateness = self.lags[PROVIDER]
        turns = [lambda: self._compose(living), self.provider.act, self._control]
        if not self.quiet:
            turns = self.draw.sample([*turns, self.draw.choice(turns)], k=4)
        for turn in turns:
            turn()
        self.plane.run(2 * DYING)
        for replica in living.values():
            self._prove(replica)

    def _late(self, chance: float) -> bool:
        return not self.quiet and self.draw.odds(chance)

    # Crossplane

    def _compose(self, living: Mapping[str, Plain]) -> None:
        for key in sorted(living):
            if not self._late(self.lags[CROSSPLANE]):
                self._reconcile(living[key])

    def _reconcile(self, replica: Plain) -> None:
        uid, metadata = replica["metadata"]["uid"], replica["metadata"]
        held = self.composed.setdefault(uid, {})
        now = {key: self.plane.objects[name] for key, name in held.items()}
        observed = self.earlier.get(uid, now) if self._late(0.1) else now
        observed = {key: observed[key] for key in observed if key in held}
        self.earlier[uid] = now
        cluster = self.fleet.get(replica["spec"]["clusterName"])
        delivered = {"cluster": [cluster]} if cluster is not None and not self._late(0.05) else {}
        stated = {key: value for key, value in replica.items() if key != "status"} | {
            "status": replica.get("status", {})
        }
        namespace = {"remoteNamespace": "Same"} if self.to_own_namespace else {}
        asked = replicas.config(status="Engines", secrets="Mirror", watch=True, **namespace)
        answer = AnyRequest(stated, observed, delivered, asked).answer()
        for key in [key for key in held if key in observed and key not in answer.desired]:
            self.plane.delete(held.pop(key), by_hand=True)
        for key, desired in answer.desired.items():
            held[key] = self._apply(replica, held.get(key), desired)
            if self._late(0.01):
                return  # Crossplane ends here: the rest is not applied, and no status written.
        if self._late(0.1):
            return
        rows = [
            build.condition(kind, status=said[0], reason=said[1]) for kind, said in answer.conditions.items()
        ]
        ready = not answer.unready and answer.ready >= answer.desired.keys()
        rows.append(
            build.condition("Ready", status=ready) | {"observedGeneration": metadata.get("generation", 1)}
        )
        replica["status"] = {**answer.status, "conditions": rows}

    def _apply(self, replica: Plain, name: Name | None, desired: Plain) -> Name:
        """Apply one composed resource: its name stays, its status too."""
        if name is None:
            self.born += 1
            name = Name(desired["kind"], replica["metadata"]["namespace"], f"object-{self.born}")
        metadata = desired.get("metadata", {}) | {"name": name.name, "namespace": name.namespace}
        status = self.plane.objects.get(name, {}).get("status", {})
        self.plane.write({**desired, "metadata": metadata, "status": status})
        return name

    # The clusters

    def _control(self) -> None:
        for name in sorted(self.remote):
            cluster = self.remote[name]
            self.asleep[name] = max(0, self.asleep.get(name, 0) - 1)
            sleeps = self.asleep[name] > 0
            for place in [place for place in cluster.objects if place[1] == "LLMInferenceService"]:
                if not sleeps and not self._late(self.lags[CONTROLLERS]):
                    _serve(cluster, place)
            idle = {place for place in cluster.objects if sleeps or self._late(self.lags[CONTROLLERS])}
            cluster.tick(idle)


def _serve(cluster: Cluster, place: Place) -> None:
    """Do what KServe's controller does: make the workloads, and report on them."""
    service = cluster.objects[place]
    wanted = kserve_cluster.workloads(service).values()
    made = [cluster.apply(place_of(one), one) for one in wanted]
    cluster.owners |= dict.fromkeys(map(place_of, wanted), place)
    ready = str(all(condition(one, "Available") == "True" for one in made))
    about = {"observedGeneration": service["metadata"]["generation"]}
    status = {**about, "conditions": [{"type": "Ready", "status": ready}]}
    cluster.objects[place] = {**service, "status": status}

"""Whole days of everything that is ours: from deployments and services down to pods that start, and back.

`Day` plays what is below a deployment. Here our own handlers compose it, as Crossplane calls them: clusters
publish their pools, replicas become Objects, endpoints become routes. provider-kubernetes carries each Object
when its turn comes, cannot reach a cluster, or loses what it was answered; and it holds what is deleted until
the cluster has let go of it. Workload controllers and kubelets act late, in an order of their own; gangs are
LeaderWorkerSets, which do not say what their status is about.

At rest the truth of the pods counts, and no longer what is said: every replica has nodes, all of its pods run
the image that is wanted, nothing is left on a cluster that nobody wants there, and every route leads to all
endpoints.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from function.api.replica import PREEMPTING_LABEL as PREEMPTING, SPARE_ANNOTATION as SPARE
from tests.cluster.build import inference_class
from tests.simulate import gateway
from tests.simulate.provider import Provider
from tests.simulate.sights import CLASSES, SLOTS, Sights, listed, owner, rank, value_of
from tests.simulate.swarm import HAPPENINGS, LOOK, TEAMS, Day, condition, image, is_paused, owned
from tests.simulate.workers import WORKLOADS, Cluster, image_of, place_of, written
from tests.support import build
from tests.support.crossplane import Name, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulate.workers import Place
    from tests.support.drive import Answer

Plain = dict[str, Any]

SHARED = 150.0
"""Seconds in which two Objects may manage one object: the later replica has to see the earlier one."""
TIDY = (0.0, 60.0, 240.0)
"""Seconds from a restore of etcd until somebody deletes what is left on the clusters."""
HPA = 5
"""Looks from one of an autoscaler to its next."""
LWS = {"name": "lws-controller-manager", "namespace": "lws-system"}
FURNITURE: tuple[Plain, ...] = (
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}},
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "inference-gateway", "namespace": "modelplane-system"},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": LWS,
        "spec": {"replicas": 1, "template": build.template("lws")},
    },
)
"""What a cluster has before anything is placed."""
GATEWAY: Plain = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "modelplane", "namespace": "modelplane-system"},
    "status": {"addresses": [{"type": "IPAddress", "value": "198.51.100.9"}]},
}


def ours_on(cluster: Cluster) -> list[Place]:
    """Return the workloads of a cluster that replicas have there."""
    return [place for place in cluster.objects if place[1] in WORKLOADS and place[3] != LWS["name"]]


@dataclass
class WholeDay(Day):
    """A day of which our handlers compose all that we ship."""

    OURS: ClassVar[tuple[str, ...]] = (
        *("InferenceCluster", "ModelDeployment", "ModelEndpoint", "ModelReplica", "ModelService"),
        *("ModelAdapter", "ModelAdapterPlacement"),
    )
    ELSEWHERE: ClassVar[tuple[str, ...]] = ()
    RANKED: ClassVar[float] = 0.5
    """How often, of 1, deployments have classes."""
    ROOMY: ClassVar[float] = 0.5
    """How often their engines have room for adapters."""

    remote: dict[str, Cluster] = field(default_factory=dict)
    """The clusters that Objects lead to, by their names in the fleet."""
    configs: dict[str, str] = field(default_factory=dict)
    """The cluster of each ClusterProviderConfig."""
    asleep: dict[str, int] = field(default_factory=dict)
    """Looks until the controllers of a cluster come back."""
    shared: dict[tuple[str, Place], float] = field(default_factory=dict)
    """What several Objects manage, by cluster and place, and since when."""
    forgotten: set[tuple[str, Place]] = field(default_factory=set)
    """Workloads that a restore of etcd left, and that no Object managed since."""
    tidied: float = 0.0
    """When somebody deletes them by hand."""
    is_calm: bool = False
    """Whether everybody acts when it is their turn."""
    loads: dict[Name, float] = field(default_factory=dict)
    """What deployments with an autoscaler have to do, in replicas."""
    adapters: dict[Name, Plain] = field(default_factory=dict)
    """What is wanted of adapters."""
    staged: set[str] = field(default_factory=set)
    """Clusters that the caches of both teams select."""
    sights: Sights = field(default_factory=Sights)

    def __post_init__(self) -> None:
        """Draw how late the provider and the controllers are, and what the teams use."""
        seeded = random.Random(f"whole {self.seed}")
        self.is_late = seeded.choice((0.1, 0.4, 0.8)), seeded.choice((0.1, 0.4, 0.8))
        self.gangs = seeded.random() < 0.4
        self.accounting = seeded.choice(("Node", "Device"))
        teams = random.Random(f"teams {self.seed}")
        self.ranked = teams.random() < self.RANKED
        few = {team: teams.choice((0, 1, 2, 4)) for team in TEAMS}
        self.guaranteed = few if self.ranked and teams.random() < 0.5 else {}
        self.roomy, self.caching = teams.random() < self.ROOMY, teams.random() < 0.3
        super().__post_init__()
        self.provider = Provider(self.plane, self._lead, self.pods, self.is_late[0])
        self.plane.write(inference_class("gpus"))
        self.plane.write(GATEWAY)
        if self.caching:
            _stage(self)
        for name in self.wishes if self.roomy else ():
            for number in range(self.draw.choice((0, 2, 3))):
                self.load(adapter_name(name, number), name.name, self.draw.choice((1, 2, 3)))

    def inputs(self) -> dict[str, Plain]:
        """Name priority classes, and what teams are guaranteed."""
        quotas = [
            {"name": f"of-{team}", "namespaces": [team], "guaranteed": {"nodes": nodes}}
            for team, nodes in self.guaranteed.items()
        ]
        deployment: Plain = {"priorityClasses": CLASSES} | ({"quotas": quotas} if quotas else {})
        arbiter = {"preemption": "Arbitrate"}
        return {"ModelDeployment": deployment, "InferenceCluster": arbiter} if self.ranked else {}

    def happenings(self) -> tuple[Callable[[Any], None], ...]:
        """Return what may happen, with what these teams use."""
        more = (_adapt,) * (4 * self.roomy) + (_stage, _stage, _uncache) * self.caching
        more += (_press,) * (6 * self.ranked)
        return (*HAPPENINGS, _autoscale, *more)

    def record(self, event: str, plain: Plain) -> None:
        """Take note of provider configurations, and of what is said of replicas."""
        super().record(event, plain)
        if plain["kind"] == "ClusterProviderConfig":
            self.configs[plain["metadata"]["name"]] = plain["metadata"]["labels"]["crossplane.io/composite"]
        if plain["kind"] == "ModelReplica":
            for words in self.sights.hear(self, event, plain):
                self.complain(words)

    def hear(self, name: Name, answer: Answer) -> None:
        """Complain of what a deployment gives up and may not, and of what is said of a replica."""
        super().hear(name, answer)
        complaints: Iterable[str] = ()
        if name.kind == "ModelDeployment" and name in self.standing(name.kind):
            complaints = self.sights.unfair(self, name, answer)
        elif name.kind == "ModelReplica":
            complaints = self.sights.untrue(self.plane.composites[name], answer)
        for words in complaints:
            self.complain(words)

    # The platform team

    @property
    def nodes_each(self) -> int:
        """The nodes of a replica."""
        return 2 if self.gangs else 1

    def publish(self, name: str, **changes: Any) -> None:
        """Declare a cluster; what it publishes is our handler's."""
        changes.pop("status", None)
        wanted = self.fleet[name] * self.nodes_each
        made = self.plane.objects.get(Name("InferenceCluster", "", name), {})
        spec = made.get("spec", {})
        pool = {
            "name": "p",
            "className": "gpus",
            "nodeCount": wanted,
            "accounting": self.accounting,
        }
        address = f"203.0.113.{int(name[1:]) + 1}"
        existing = {"secretRef": {"name": name, "key": "kubeconfig"}, "gateway": {"address": address}}
        declared = {"cluster": {"source": "Existing", "existing": existing}, "nodePools": [pool]}
        kept = {key: spec[key] for key in ("taints", "resourceRefs") if key in spec}
        labels = {"fleet": "swarm", "staged": str(name in self.staged).lower()}
        metadata = {**made.get("metadata", {}), "name": name, "labels": labels}
        plain = {"apiVersion": build.API, "kind": "InferenceCluster", "metadata": metadata}
        status = {"status": made["status"]} if "status" in made else {}
        self.plane.write({**plain, **status, "spec": {**kept, **declared, **changes}})
        if name not in self.remote:
            self.remote[name] = Cluster({})
            for one in FURNITURE:
                self.remote[name].apply(place_of(one), one)
        cluster = self.remote[name]
        for number in range(len(cluster.nodes), wanted):
            cluster.nodes[f"n{number}"] = {"modelplane.ai/pool": "p"}

    def garble(self, name: str) -> None:
        """Declare what nobody can read."""
        broken: Plain = self.draw.choice(({"nodePools": [{"name": "p"}]}, {"nodePools": "none"}))
        self.publish(name, **broken)

    # The ML teams

    def engine(self) -> Plain:
        """Return the engine of a deployment: a copy on a node, or a gang on two."""
        engine = build.gang() if self.gangs else super().engine()
        return engine | ({"adapters": {"slots": SLOTS}} if self.roomy else {})

    def wish(self, name: Name) -> Plain:
        """Let a deployment have a class and a cache, too; where there are classes, nodes are few."""
        plain = super().wish(name)
        if self.ranked:
            plain["spec"]["replicas"] += 1
            if named := ("low", "vip", "low", "high", "")[len(self.wishes) % 5]:
                plain["spec"]["placement"]["priorityClassName"] = named
            if self.draw.random() < 0.25:
                plain["spec"]["minReplicas"] = 1
        if self.caching and self.draw.random() < 0.7:
            plain["spec"]["template"]["spec"]["modelCacheRef"] = {"name": "weights"}
        return plain

    def remove(self, name: Name) -> None:
        """Delete a deployment with its autoscaler and its adapters."""
        super().remove(name)
        self.loads.pop(name, None)
        for adapter, spec in list(self.adapters.items()):
            if (adapter.namespace, spec["base"]["deploymentName"]) == name[1:]:
                self.unload(adapter)

    def load(self, name: Name, base: str, replicas: int) -> None:
        """Want an adapter on so many replicas of its base."""
        spec = {"base": {"deploymentName": base}, "source": f"acme/{name.name}", "replicas": replicas}
        self.adapters[name] = spec
        before = self.plane.objects.get(name, {})
        kept = {key: part for key, part in before.get("spec", {}).items() if key == "resourceRefs"}
        metadata = {**before.get("metadata", {}), "name": name.name, "namespace": name.namespace}
        status = {"status": before["status"]} if "status" in before else {}
        plain = {"apiVersion": build.API, "kind": name.kind, "metadata": metadata, **status}
        self.plane.write({**plain, "spec": {**spec, **kept}})

    def unload(self, name: Name) -> None:
        """Want an adapter no more."""
        del self.adapters[name]
        self.plane.delete(name, by_hand=True)

    def stage(self, clusters: Iterable[str]) -> None:
        """Let the caches of both teams select these clusters."""
        self.staged = set(clusters)
        self.sights.staged.append((self.plane.now, frozenset(self.staged)))
        for name in self.fleet:
            self.publish(name)
        for team in TEAMS:
            self.plane.write(build.cache("weights", {"staged": "true"}, namespace=team))

    def declare(self) -> None:
        """Bring caches and adapters in line with what is wished, too."""
        super().declare()
        for name in self.wishes:
            self._address(name)
        if self.caching:
            self.stage(self.staged)
        for name in sorted(self.standing("ModelAdapter").keys() - self.adapters.keys()):
            self.plane.delete(name, by_hand=True)
        for name, spec in self.adapters.items():
            if "deletionTimestamp" not in self.plane.objects.get(name, {"metadata": {}})["metadata"]:
                self.load(name, spec["base"]["deploymentName"], spec["replicas"])

    def create(self, name: Name) -> None:
        """Create a deployment, and its address."""
        super().create(name)
        self._address(name)

    def _address(self, name: Name) -> None:
        """Create the address of a deployment, unless it is there."""
        selector = {"matchLabels": {"modelplane.ai/deployment": name.name}}
        metadata = {"name": name.name, "namespace": name.namespace}
        plain = {"apiVersion": build.API, "kind": "ModelService", "metadata": metadata}
        if name_of(plain) not in self.plane.objects:
            self.plane.write({**plain, "spec": {"endpoints": [{"selector": selector, "weight": 1}]}})

    def restore(self) -> None:
        """Restore etcd, and note which workloads it leaves that no Object manages any more."""
        super().restore()
        self.configs = {
            name.name: plain["metadata"]["labels"]["crossplane.io/composite"]
            for name, plain in self.plane.objects.items()
            if name.kind == "ClusterProviderConfig"
        }
        self.provider.released.clear()
        there = {(where, place) for where, cluster in self.remote.items() for place in ours_on(cluster)}
        self.forgotten = there - self._managers(leaving=True).keys()
        self.tidied = self.plane.now + self.draw.choice(TIDY)

    def _tidy(self) -> None:
        """Delete what a restore left of replicas that are not there, as docs/operations.md says."""
        self.forgotten -= self._managers(leaving=True).keys()
        if not self.forgotten or (self.plane.now < self.tidied and not self.is_calm):
            return
        names = [
            (plain["spec"]["clusterName"], f"{name.name}-")
            for name, plain in self.plane.objects.items()
            if name.kind == "ModelReplica"
        ]
        for where, place in sorted(self.forgotten):
            if not any(where == cluster and place[3].startswith(name) for cluster, name in names):
                self.remote[where].delete(place)
                self.forgotten.discard((where, place))

    # The provider, the clusters and the gateway

    def look(self) -> None:
        """Let everybody act once, or not."""
        self.provider.act()
        for words in self.provider.complaints:
            self.complain(words)
        self.provider.complaints.clear()
        for where, cluster in sorted(self.remote.items()):
            sleeps = self.asleep[where] = max(0, self.asleep.get(where, 0) - 1)
            idle = {place for place in cluster.objects if sleeps or self._late(self.is_late[1])}
            cluster.tick(idle)
        gateway.report(self.plane)
        self._shared()
        self._tidy()
        self._autoscale()
        for words in self.sights.look(self):
            self.complain(words)
        for name, plain in self.replicas().items() if self.is_calm else ():
            if condition(plain, "ModelAccepted").get("reason") == "NameTaken":
                self.plane.delete(name, by_hand=True)  # As the message says.
        self.plane.after(LOOK, self.look)

    def _late(self, chance: float) -> bool:
        return not self.is_calm and self.pods.random() < chance

    def _lead(self, config: str) -> Cluster | None:
        """Return the cluster that a ProviderConfig leads to; None where it is gone."""
        name = self.configs.get(config, "")
        return self.remote.get(name) if name in self.fleet else None

    def _managers(self, *, leaving: bool = False) -> dict[tuple[str, Place], list[str]]:
        """Return which Objects manage each object of a cluster, those that are deleted too if asked."""
        managers: dict[tuple[str, Place], list[str]] = {}
        for name, plain in (self.plane.objects.of_kind if leaving else self.standing)("Object").items():
            if plain["spec"].get("managementPolicies") != ["Observe"]:
                where = self.configs.get(plain["spec"]["providerConfigRef"]["name"], "")
                place = place_of(plain["spec"]["forProvider"]["manifest"])
                managers.setdefault((where, place), []).append(f"{name.namespace}/{name.name}")
        return managers

    def _shared(self) -> None:
        """Complain of what two Objects manage, and of it once: each undoes what the other does."""
        several = {key: names for key, names in self._managers().items() if len(names) > 1}
        self.shared = {key: self.shared.get(key, self.plane.now) for key in several}
        for key, since in self.shared.items():
            if self.plane.now - since > SHARED:
                self.complain(f"{several[key]} manage one {key[1][1]} since {since:.0f} s")

    def _autoscale(self) -> None:
        """Let autoscalers ask for what the load needs, by measurements that are never exact."""
        if not round(self.plane.now / LOOK) % HPA:
            for name, load in sorted(self.loads.items()):
                noise = 1.0 if self.is_calm else self.pods.uniform(0.8, 1.2)
                self.edit(name, replicas=max(1, min(self.size.replicas, ceil(load * noise))))

    # What happens

    def fail(self, replica: Name) -> None:
        """Let the pods of a replica be gone at once."""
        for cluster, place in self.workloads(replica):
            cluster.pods = [pod for pod in cluster.pods if pod.workload != place]

    def say_nothing(self) -> None:
        """Cut a cluster off, or let its controllers sleep, or let both be over."""
        name = self.draw.choice(sorted(self.fleet))
        if self.draw.random() < 0.5:
            self.remote[name].reachable = not self.remote[name].reachable
        else:
            self.asleep[name] = self.draw.choice((0, 10, 40))
        self.provider.watches = self.pods.random() < 0.5

    def calm(self) -> None:
        """Let everybody act at once, too."""
        super().calm()
        self.is_calm = self.provider.quiet = True
        if self.caching:
            self.stage(self.fleet)
        self.asleep.clear()
        for cluster in self.remote.values():
            cluster.reachable = True

    # The truth

    def workloads(self, replica: Name) -> list[tuple[Cluster, Place]]:
        """Return the workloads that a replica wrote last, or shares with a namesake, and where they are."""
        composed = (
            self.plane.composites[replica].composed.values() if replica in self.plane.composites else ()
        )
        places = []
        for child in composed:
            plain = self.plane.objects.get(child)
            if (
                plain is None
                or child.kind != "Object"
                or plain["spec"].get("managementPolicies") == ["Observe"]
            ):
                continue
            config = plain["spec"]["providerConfigRef"]["name"]
            if (cluster := self._lead(config)) is None:
                continue
            place = place_of(plain["spec"]["forProvider"]["manifest"])
            is_ours = cluster.managers.get(place) == child or (self.configs[config], place) in self.shared
            places += (
                [(cluster, place)] if is_ours and place[1] in WORKLOADS and place in cluster.objects else []
            )
        return places

    def waits(self, replica: Plain) -> bool:
        """Whether a pod of a replica on a cluster that is there has no node, or there is no pod."""
        if replica["spec"]["clusterName"] not in self.fleet:
            return False
        pods = [pod for cluster, place in self.workloads(name_of(replica)) for pod in cluster.mine(place)]
        return not pods or not all(pod.node for pod in pods)

    def may_wait(self, replica: Plain) -> bool:
        """Let one that preempts wait for what is paused, while nothing else could be taken.

        A paused deployment gives nobody up (docs/threats.md), and keeps the notes that it has.
        """
        where = replica["spec"]["clusterName"]
        others = [one for one in self.replicas().values() if one["spec"]["clusterName"] == where]
        names = {f"{name.namespace}/{name.name}": name for name in self.replicas()}
        ways = self.plane.objects[Name("InferenceCluster", "", where)].get("status", {}).get("givesWay", ())
        asked = {owner(self.plane.objects[names[way["replica"]]]) for way in ways if way["replica"] in names}
        paused = {name[1:] for name, wish in self.wishes.items() if is_paused(wish)}
        spared = [
            one for one in others if one["metadata"].get("annotations", {}).get(SPARE, "0") not in ("", "0")
        ]
        able = {owner(one) for one in spared if rank(self, one) < rank(self, replica)}
        waits = bool(asked) and able <= paused and bool(replica["metadata"]["labels"].get(PREEMPTING))
        return waits or super().may_wait(replica)

    def unfinished(self) -> list[str]:
        """Return what is not as it must be in the end, on the clusters, too."""
        complaints = super().unfinished()
        wanted: set[tuple[int, Place]] = set()
        for name, plain in self.replicas().items():
            for cluster, place in self.workloads(name):
                wanted.add((id(cluster), place))
                images = {image_of(template) for template in written(cluster.objects[place])}
                images |= {image_of(pod.template) for pod in cluster.mine(place)}
                if "epp" not in place[3] and (
                    images != {image(plain)} or not all(pod.ready for pod in cluster.mine(place))
                ):
                    complaints.append(f"{place[3]} runs {sorted(images)}, and {image(plain)} is wanted")
        for where, cluster in sorted(self.remote.items()):
            stray = [
                place[3]
                for place in ours_on(cluster)
                if (id(cluster), place) not in wanted and where in self.fleet
            ]
            complaints += [f"{stray} are left on {where}"] if stray else []
        return complaints + self._misrouted() + self._misloaded()

    def _misloaded(self) -> list[str]:
        """Return which adapters are on too few replicas, and which replicas list others than they hold.

        Where several were placed on one slot at once, the replica lists as many as it has slots.
        """
        complaints, placed, ways = [], defaultdict[Name, set[str]](set), defaultdict[Name, set[str]](set)
        for name, plain in self.standing("ModelAdapterPlacement").items():
            placed[Name("ModelReplica", name.namespace, plain["spec"]["replica"])].add(
                plain["spec"]["adapter"]
            )
        for name, plain in self.standing("ModelEndpoint").items():
            labels = plain["metadata"]["labels"]
            adapter = Name("ModelAdapter", name.namespace, labels.get("modelplane.ai/adapter", ""))
            ways[adapter].add(labels.get("modelplane.ai/replica", ""))
        for name, wish in self.adapters.items():
            base, on = Name("", name.namespace, wish["base"]["deploymentName"]), set()
            bases = {one: plain for one, plain in self.replicas().items() if owned(plain, base)}
            for replica, plain in bases.items():
                lists, held = listed(self.remote[plain["spec"]["clusterName"]], replica.name), placed[replica]
                on |= {replica.name} if name.name in lists else set()
                if not lists <= held or len(lists) != min(SLOTS, len(held)):
                    complaints.append(f"{replica.name} lists {sorted(lists)}, and holds {sorted(held)}")
            free = sorted(one.name for one in bases if len(placed[one]) < SLOTS and one.name not in on)
            if len(on) > wish["replicas"] or (free and len(on) < wish["replicas"]):
                complaints.append(f"{name.name} is on {sorted(on)}, and {free} have room: {wish}")
            if bases and ways[name] != on:  # No replica at all is doubt: what led to one stays.
                complaints.append(
                    f"{name.name} is on {sorted(on)}, and its endpoints lead to {sorted(ways[name])}"
                )
        return complaints

    def _misrouted(self) -> list[str]:
        """Return the addresses of models that do not lead to all endpoints there are."""
        complaints = []
        endpoints = self.standing("ModelEndpoint")
        for wish in self.wishes:
            of = [
                one
                for one in endpoints.values()
                if one["metadata"]["labels"].get("modelplane.ai/deployment") == wish.name
            ]
            mine = [one for one in of if one["metadata"]["namespace"] == wish.namespace]
            routes = [
                plain
                for name, plain in self.standing("HTTPRoute").items()
                if name.namespace == wish.namespace
            ]
            routes = [
                plain
                for plain in routes
                if plain["metadata"]["labels"]["crossplane.io/composite"] == wish.name
            ]
            shares = gateway.shares(self.plane.objects, routes[0]) if routes and mine else {}
            if mine and (not shares or "" in shares):
                complaints.append(
                    f"the route of {wish.name} leads to {sorted(shares)}, {len(mine)} endpoints stand"
                )
        return complaints


def _autoscale(day: WholeDay) -> None:
    """An autoscaler begins with a deployment, or its load changes, or it is taken away."""
    name = day.draw.choice(sorted(day.wishes))
    if day.loads.pop(name, 0.0) == 0.0 or day.draw.random() < 0.7:
        day.loads[name] = day.draw.choice((0.5, 1.0, 1.9, 2.5, 3.3))


def adapter_name(base: Name, number: int) -> Name:
    """Return the name of an adapter of a deployment."""
    return Name("ModelAdapter", base.namespace, f"{base.name}-{number}")


def _adapt(day: WholeDay) -> None:
    """An adapter of some base is wanted, or on another number of replicas, or not any more."""
    base = day.draw.choice(sorted(day.wishes))
    name = adapter_name(base, day.draw.choice((0, 1, 2)))
    if name in day.adapters and day.draw.random() < 0.3:
        day.unload(name)
    elif "deletionTimestamp" not in day.plane.objects.get(name, {"metadata": {}})["metadata"]:
        day.load(name, base.name, day.draw.choice((1, 1, 2, 3)))


def _press(day: WholeDay) -> None:
    """Somebody of the highest class there is wants more than there may be, or as little as before."""
    name = max(sorted(day.wishes), key=lambda name: value_of(day.wishes[name]))
    most = day.size.replicas
    day.edit(name, replicas=day.draw.choice((1, most - 1, most, most + 1)))


def _stage(day: WholeDay) -> None:
    """Caches select other clusters."""
    names = sorted(day.fleet)
    day.stage(day.draw.sample(names, day.draw.randrange(1, len(names) + 1)))


def _uncache(day: WholeDay) -> None:
    """Somebody deletes the cache of a team."""
    day.plane.delete(Name("ModelCache", day.draw.choice(TEAMS), "weights"), by_hand=True)


class PressingDay(WholeDay):
    """A day of classes in which the highest often wants more, and nobody can spare a replica."""

    RANKED = 1.0

    def happenings(self) -> tuple[Callable[[Any], None], ...]:
        """Let somebody often press."""
        return (*super().happenings(), *(_press,) * 20)

    def wish(self, name: Name) -> Plain:
        """Let no replica that serves be missed."""
        plain = super().wish(name)
        plain["spec"]["placement"]["disruption"] = {"maxUnavailable": 0, "maxSurge": 1}
        return plain

"""Find objects that are allowed and will not work: pods that cannot serve, and rules of the documentation.

Three mistakes make a pod useless: no model is named, the engine listens where the probe does not ask (another
port, or its own pod alone), and its parallelism counts on more GPUs than its pods request. Command lines are
read as vLLM, SGLang and text-generation-inference take them: arguments in the script of a shell included,
variables with a value that the manifest states, and underscores for dashes in the names of flags.

What a schema can say is in the XRDs and checked from there (`admission`). These are the rules about several
objects at once, or about what the schema cannot see: each is a function below, and its code has a row in
docs/ci.md. An advisory is a warning: the API server takes the object.

An object that refers to another is only doubted where the files hold any of that kind: who keeps deployments
in one repository and the fleet in another hears nothing. A rule that could be wrong about a working fleet is
no rule here, for `lint` runs in pipelines that it would stop.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from function.api import InferenceCluster, SchedulerConfig
from function.api.adapter import ADAPTER_LABEL
from function.api.declared_cluster import EXISTING, DeclaredCluster
from function.api.expressible import DECODE_PORT, PORT
from function.api.fault import Malformed
from function.api.model import mapping, mappings, number as whole_number
from function.api.names import DNS_SUBDOMAIN, POOL_LABEL
from function.api.replica import DEPLOYMENT_LABEL
from function.api.text import counted
from function.api.workload import HUGGING_FACE, LEADER_ADDRESS, RANK, flag_value
from function.cli.bad_input import BadInput, nearest
from function.cli.worlds.derive import complete_all
from function.cluster.drift import LiveRules, of_classes
from function.deployment.forecast import over_guaranteed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from function.cli.admission import FieldPath
    from function.cli.worlds.manifest import Manifest, Manifests

# Pods that cannot serve: the manifest alone proves it, before a GPU is taken.
#
# Such a pod is placed, pulls its image, loads or fails after minutes, and nothing above it says why. Nothing
# is said of an engine whose command line is not understood, or that starts several processes: a false alarm
# would make people switch the check off.
#
#   mistakes_of ▶ every shape ▶ every engine ▶ EngineMember (what its command line says) ▶ the three rules

PodMistake = tuple["FieldPath", str, str]
"""The field, the code and the message."""

TENSOR = ("--tensor-parallel-size", "-tp", "--tp-size", "--tp", "--num-shard")
PIPELINE = ("--pipeline-parallel-size", "-pp", "--pp-size")
DATA_HERE = ("--data-parallel-size-local", "-dpl")
DATA_IN_ALL = ("--data-parallel-size", "-dp", "--dp-size")
DATA = (*DATA_HERE, *DATA_IN_ALL)
ELSEWHERE = ("--data-parallel-rank", "--data-parallel-external-lb", "--data-parallel-hybrid-lb")
"""With one of these, other processes run the other ranks."""
MODEL = ("--model", "--model-path", "--config")
GIVEN_ONCE = (TENSOR, PIPELINE, DATA_HERE, DATA_IN_ALL, MODEL[:2], ("--port",), ("--max-model-len",))
"""Flags, each with all of its names, of which an engine takes the last value."""
TGI = "text-generation"
DEFAULT_PORTS = {"sglang": "30000", TGI: "80"}
"""Where engines listen that are told no port, by how their program and image begin; vLLM listens on ours."""
STARTING = 6
"""Words of a command line in which its program is looked for: a shell and an interpreter come before it."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NETWORK = ("rdma", "linkType", "dra.net", "nic.")
"""Words that only a selector of network devices has."""
SPEC: FieldPath = ("spec", "template", "spec")
_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
"""A variable in an argument: as Kubernetes expands it, and as a shell does."""
GANG_VARIABLES = (LEADER_ADDRESS, RANK)
_OURS = re.compile(r"\$[({]?(MODELPLANE_\w+)")
SHELLS = ("sh", "bash", "dash", "zsh")
_SLIPS = (
    (re.compile(r"^[\u2013\u2014\u2212]+(?=\w)"), "--", "begins with a long dash"),
    (re.compile(r"^-(?=[a-z]+(-[a-z]+)+(=|$))"), "--", "begins with one dash"),
    (re.compile(r"^(--.*?\w)\s+(?=\S)", re.DOTALL), r"\1=", "is a flag and its value as one argument"),
)
"""Arguments that vLLM refuses: how each begins, what is meant there, and what is wrong."""
_SHELL_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)\}|(?:^|=)\$([A-Z_][A-Z0-9_]*)$")
"""A variable as only a shell expands it: Kubernetes takes $(NAME). A key may have a dollar sign within."""
_EXPANDED = re.compile(r"(?<!\$)\$\((\w+)\)")
_UNSTATED = re.compile(r".*_(SERVICE|PORT)(_\w+)?|LWS_\w+|MODELPLANE_\w+")
"""Variables that a manifest does not state: of Services and of LeaderWorkerSet, and ours (`_of_a_gang`)."""
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PATH}(?:/{_PATH})*"
    r"(?::\w[\w.-]{0,127})?(?:@\w+:[0-9a-f]{32,})?",
    re.ASCII,
)
"""The name of an image, as container runtimes take it."""


class EngineMember:
    """A member of an engine, with its container and where it is written."""

    def __init__(self, path: FieldPath, plain: dict[str, Any]) -> None:
        self.path, self.plain = path, plain
        self.role = str(plain.get("role") or "Standalone")
        nodes = mapping(plain.get("worker")).get("nodes")
        self.pods = nodes if self.role == "Worker" and isinstance(nodes, int) else 1
        """Its pods in one copy of the engine."""
        self.pod = mapping(plain, "template", "spec")
        """The spec of its pods."""
        self.container: dict[str, Any] = next(iter(mappings(self.pod.get("containers"))), {})
        """Its container; empty where there is none."""
        self.where: FieldPath = (*path, "template", "spec", "containers", 0)
        self.field: FieldPath = (*self.where, "args") if self.container.get("args") else self.where
        """Where its arguments are written, or its container."""
        stated = mappings(self.container.get("env"))
        self._variables: dict[str, str] = {
            str(one.get("name")): one["value"] for one in stated if isinstance(one.get("value"), str)
        }
        """The variables of its environment whose values the manifest states."""
        self.variables = {str(one.get("name")) for one in stated}
        """The names of all of them."""
        self.written: dict[FieldPath, str] = {}
        """The words of its command and its arguments, as they are written, by where."""
        for part in ("command", "args"):
            words = self.container.get(part)
            for at, word in enumerate(words if isinstance(words, list) else ()):
                self.written[*self.where, part, at] = str(word)
        self.words = self._words()
        """The words that start the container, one by one: arguments may stand in the script of a shell."""
        self._image = str(self.container.get("image")).partition("@")[0].rpartition("/")[2]
        """The last part of its image's name."""

    def _words(self) -> list[str]:
        """Split its command line, with the variables put in."""
        expanded = (
            _VARIABLE.sub(
                lambda match: self._variables.get(next(filter(None, match.groups())), match[0]),
                word.replace("\\\n", " "),
            )
            for word in self.written.values()
        )
        return [_dashed(part.strip("'\"")) for word in expanded for part in word.split()]

    @property
    def is_scripted(self) -> bool:
        """Tell whether a shell starts it: then words are its, and not arguments."""
        stated = self.container.get("command") or self.container.get("args")
        words = stated if isinstance(stated, list) else ()
        return any(str(word).rpartition("/")[2] in SHELLS for word in words)

    @property
    def port(self) -> str:
        """The port that it listens on, as far as its command line or its program says; "" for our own."""
        starts = self.words[:STARTING] if self.container.get("command") else [self._image]
        names = [word.rpartition("/")[2] for word in starts]
        program = next((key for key in DEFAULT_PORTS if any(name.startswith(key) for name in names)), "")
        stated = self._variables.get("PORT", "") if program == TGI else ""
        return self.flag(("--port",)) or stated or DEFAULT_PORTS.get(program, "")

    @property
    def is_of_vllm(self) -> bool:
        """Tell whether its image is the one of vLLM, whose start is known; others may start anything."""
        return self._image.startswith("vllm-openai:")

    @property
    def runs_vllm(self) -> bool:
        """Tell whether it starts vLLM: by its command, else by its image."""
        if not self.container.get("command"):
            return "vllm" in self._image
        return any(word.rpartition("/")[2] == "vllm" or word.startswith("vllm.") for word in self.words)

    def flag(self, names: Iterable[str]) -> str:
        """The value of the first of several flags that is given; "" for none. The last time counts."""
        return flag_value(self.words, names).strip("'\"")

    def values(self, names: Collection[str]) -> list[str]:
        """Return every value of a flag that has several names, in order; "" where none follows."""
        values = []
        for at, word in enumerate(self.words):
            name, equals, value = word.partition("=")
            if name in names:
                values.append((value if equals else "".join(self.words[at + 1 : at + 2])).strip("'\""))
        return values

    def number(self, names: Iterable[str]) -> int:
        """The value of a flag as a number; 1 where it has none."""
        text = self.flag(names)
        return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < len("100000") else 1

    @property
    def model(self) -> str:
        """The model that it is told to serve, as vLLM takes it; "" for none."""
        words = self.words
        served = words.index("serve") + 1 if "serve" in words else 0
        positional = words[served : served + 1] if served or not self.container.get("command") else []
        return self.flag(MODEL) or next((word for word in positional if not word.startswith("-")), "")

    @property
    def gpus(self) -> int:
        """The devices that one pod asks for, those of a network aside; 0 where it asks for none."""
        requests = mappings(mapping(self.plain.get("nodeSelector")).get("devices"))
        devices = 0
        for request in requests:
            ways = mappings(request.get("firstAvailable")) or [request]
            selectors = (stated for way in ways for stated in mappings(way.get("selectors")))
            texts = " ".join(str(stated.get("cel")) for stated in selectors)
            is_network = str(request.get("name")).startswith("nic") or any(word in texts for word in NETWORK)
            if not is_network:
                # Of several ways the largest: too many GPUs are no mistake, too few are.
                counts = [way.get("count", 1) for way in ways]
                devices += max((count for count in counts if isinstance(count, int)), default=1)
        return devices


def _dashed(word: str) -> str:
    """A flag as it is documented: vLLM takes underscores in its name, too."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if name.startswith("--") else word


def _engines(manifest: Manifest) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yield every engine of every shape, with its path."""
    template = manifest.replica_template
    shapes: list[tuple[FieldPath, dict[str, Any]]] = [(SPEC, template)]
    shapes += [
        ((*SPEC, "alternatives", at), shape)
        for at, shape in enumerate(mappings(template.get("alternatives")))
    ]
    for path, shape in shapes:
        for at, engine in enumerate(mappings(shape.get("engines"))):
            yield (*path, "engines", at), engine


def _members(path: FieldPath, engine: dict[str, Any]) -> list[EngineMember]:
    """The members of an engine, each with its path."""
    listed_members = enumerate(mappings(engine.get("members")))
    return [EngineMember((*path, "members", at), member) for at, member in listed_members]


def mistakes_of(manifest: Manifest) -> Iterator[PodMistake]:
    """Yield the mistakes that keep a deployment's pods from serving, whatever fleet they are on.

    Every shape is looked at, the alternatives too: the scheduler may choose any of them.
    """
    template = manifest.replica_template
    brought = bool(template.get("modelCacheRef") or mapping(template.get("serving")).get("model"))
    for path, engine in _engines(manifest):
        members = _members(path, engine)
        for member in members:
            # An image that is started without a command is pointed to the model that the deployment names.
            is_pointed = brought and not member.container.get("command")
            if member.runs_vllm and not member.model and not is_pointed:
                text = "names no model, so vLLM serves its default: give --model=ORG/NAME, or a modelCacheRef"
                yield member.field, "NoModel", text
            # A decode engine listens behind its sidecar (`advisories`), and a process beside may be the one
            # that listens on the serving port.
            is_alone = not any(word.endswith(("&", "|")) and word != "&&" for word in member.words)
            port, host = member.port, member.flag(("--host",))
            serves = member.role != "Worker" and engine.get("phase") != "Decode" and is_alone
            if serves and port.isdigit() and port.lstrip("0") != str(PORT):
                text = f"listens on {port}, and requests and the probe come to {PORT}: --port={PORT}"
                yield member.field, "ServingPort", text
            if serves and host in LOOPBACK:
                text = f"listens on {host}, where only its own pod reaches it: --host=0.0.0.0"
                yield member.field, "ServingPort", text
            yield from _unstartable(member)
        yield from _too_wide(members)
        yield from _of_a_gang(members)


def _unstartable(member: EngineMember) -> Iterator[PodMistake]:
    """Yield arguments that vLLM refuses for how they are written, and an image that no runtime pulls."""
    for path, word in member.written.items() if member.runs_vllm and not member.is_scripted else ():
        flag, equals, value = word.partition("=")
        for pattern, right, wrong in _SLIPS:
            meant, slips = pattern.subn(right, flag)
            if slips:
                yield path, "BadArgument", f'"{word}" {wrong}: write {meant}{equals}{value}'
                break
    yield from _unrunnable(member)
    yield from _unexpanded(member)
    for at, volume in enumerate(mappings(member.pod.get("volumes"))):
        name = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        if isinstance(name, str) and not DNS_SUBDOMAIN.fullmatch(name):
            path = (*member.where[:-2], "volumes", at, "persistentVolumeClaim", "claimName")
            text = f'"{name}" is no name of a claim: pods take those of their own namespace'
            yield path, "InvalidValue", text
    image = member.container.get("image")
    if isinstance(image, str) and image and not _IMAGE.fullmatch(image):
        host, slash, rest = image.rpartition("://")[2].strip().rstrip(":@").partition("/")
        name, colon, tag = rest.partition(":")
        meant = f"{host}{slash}{name.lower()}{colon}{tag}"
        hint = f"; did you mean {meant}?" if meant != image and _IMAGE.fullmatch(meant) else ""
        yield (*member.where, "image"), "BadImage", f'"{image}" is no name of an image{hint}'


def _unrunnable(member: EngineMember) -> Iterator[PodMistake]:
    """Yield a command that is no program, and arguments that what is started takes for something else."""
    command, args = (
        [word for path, word in member.written.items() if path[-2] == part] for part in ("command", "args")
    )
    shell = command[:1] and command[0].rpartition("/")[2] in SHELLS
    if command and command[0].startswith("-"):
        text = f'"{command[0]}" is no program: flags belong into args'
        yield (*member.where, "command", 0), "BadArgument", text
    elif command and command[0] != "".join(command[0].split()):
        text = f'"{command[0]}" is no program: write {json.dumps(command[0].split())}'
        yield (*member.where, "command", 0), "BadArgument", text
    elif shell and command[-1] == "-c" and args and args[0].startswith("-"):
        text = (
            f'{command[0]} -c takes its first argument as the script, found "{args[0]}": write it all as one'
        )
        yield (*member.where, "args", 0), "BadArgument", text
    elif not command and member.is_of_vllm and args and args[0] in ("vllm", "serve"):
        text = f'"{args[0]}" repeats what the image starts: leave it out'
        yield (*member.where, "args", 0), "BadArgument", text


def _unexpanded(member: EngineMember) -> Iterator[PodMistake]:
    """Yield variables that stay as they are written, and numbers of GPUs that are none."""
    if not member.runs_vllm or member.is_scripted:
        return
    for path, word in member.written.items():
        if match := _SHELL_VARIABLE.search(word):
            name, meant = match[1] or match[2], match[0].lstrip("=")
            text = f'"{word}": no shell expands {meant} here, Kubernetes takes $({name})'
            yield path, "BadArgument", text
        for name in _EXPANDED.findall(word):
            if name not in member.variables and not _UNSTATED.fullmatch(name):
                text = f"there is no variable {name}{_meant(name, member.variables)}"
                yield path, "UnknownVariable", text
    for flag in (*TENSOR, *PIPELINE, *DATA):
        least = 0 if flag in DATA_HERE else 1  # A node that only takes requests has no rank.
        for value in member.values((flag,))[-1:]:
            is_whole = value.isascii() and value.isdigit() and (value.strip("0") or not least)
            if "$" not in value and not is_whole:
                text = f"{flag} takes a whole number of at least {least}, found "
                yield member.field, "BadArgument", text + (f'"{value}"' if value else "none")


def _of_a_gang(members: list[EngineMember]) -> Iterator[PodMistake]:
    """Yield a number of nodes that the gang has not, and variables that its pods have not."""
    pods = sum(member.pods for member in members)
    for member in members:
        nodes = member.flag(("--nnodes",))
        if nodes.isdigit() and nodes.lstrip("0") != str(pods):
            text = f"counts on {nodes} nodes, and the engine has {counted(pods, 'pod')}: --nnodes={pods}"
            yield member.field, "GangSize", text
        there = GANG_VARIABLES if member.role in ("Leader", "Worker") else ()
        words = " ".join(member.words)
        read = {name for name in _OURS.findall(words) if f"{name}=" not in words}  # A script may set it.
        for name in sorted(read.difference(there, member.variables)):
            meant = _meant(name, there) or ("" if there else "; only the pods of a gang have such")
            yield member.field, "UnknownVariable", f"there is no variable {name}{meant}"


def _too_wide(members: list[EngineMember]) -> Iterator[PodMistake]:
    """Yield the mistake of an engine whose arguments count on more GPUs than its pods have.

    Nothing is said where one of the members asks for no devices: its GPUs may come in another way.
    """
    serving = next((member for member in members if member.role != "Worker"), None)
    if serving is None or not all(member.gpus for member in members):
        return
    data = 1 if any(flag in " ".join(serving.words) for flag in ELSEWHERE) else serving.number(DATA)
    needs = serving.number(TENSOR) * serving.number(PIPELINE) * data
    has = sum(member.gpus * member.pods for member in members)
    if needs > has:
        pods = sum(member.pods for member in members)
        where = "its pod asks" if pods == 1 else f"its {pods} pods ask"
        text = f"the arguments count on {needs} GPUs (tensor, pipeline and data parallel), {where} for {has}"
        yield serving.field, "TooFewGPUs", text


def first_serving(manifest: Manifest) -> EngineMember | None:
    """Return the serving member of the first engine; None where there is none."""
    path, engine = next(_engines(manifest), ((), {}))
    return next((member for member in _members(path, engine) if member.role != "Worker"), None)


# Advice about several objects at once, or about fields that no schema can judge.

Advisory = tuple["Manifest", str, "FieldPath", str]
"""The object, the code, the field and the message."""

ENDPOINT_LABELS = {DEPLOYMENT_LABEL: "ModelDeployment", ADAPTER_LABEL: "ModelAdapter"}
"""Labels of endpoints that say which object they are of."""
GANG_RELEASE = "1.37"
"""The first release of Kubernetes that has PodGroups."""
DEFAULT_RANK = 16
"""The rank of an adapter, and the largest that an engine takes, where nothing is said."""


def advisories(manifests: Manifests) -> Iterator[Advisory]:
    """Yield every advisory on the objects, in the order of kinds."""
    for manifest in manifests["ModelDeployment"]:
        yield from _cache(manifest, manifests["ModelCache"])
        yield from _limit(manifest, manifests["InferenceCluster"])
        yield from _containers(manifest)
    for manifest in manifests["ModelAdapter"]:
        yield from _weights(manifest)
        yield from _base(manifest, manifests["ModelDeployment"])
    for manifest in manifests["ModelService"]:
        yield from _endpoints(manifest, manifests)
    for manifest in manifests["InferenceCluster"]:
        yield from _nodes_of_two_pools(manifest)
        yield from _reached(manifest)
        yield from _across_nodes(manifest, manifests["WorkloadConfig"])
        yield from _gangs(manifest, manifests["SchedulerConfig"])
    rules = LiveRules(classes=[one.content for one in manifests["DeviceClass"]])
    for manifest in manifests["InferenceClass"]:
        entries = mappings(manifest.spec.get("devices"))
        for code, message in of_classes(entries, rules):
            yield manifest, code, ("spec", "devices"), message
    for manifest in manifests["SchedulerConfig"]:
        yield from _over_guaranteed(manifest, manifests)
    clusters = {cluster.name for cluster in manifests["InferenceCluster"]}
    for manifest in manifests["ModelReplica"]:
        name = manifest.spec.get("clusterName")
        if clusters and isinstance(name, str) and name not in clusters:
            message = f'no InferenceCluster "{name}" in the files'
            yield manifest, "UnknownCluster", ("spec", "clusterName"), message


def _meant(name: str, names: Iterable[str]) -> str:
    """The name that was probably meant, as the end of a message; empty where none is near."""
    near = nearest(name, names, most=1)
    return f"; did you mean {near[0]}?" if near else ""


def _absent(manifest: Manifest, kind: str, name: object, others: list[Manifest]) -> str:
    """Say that the namespace of an object has none of a kind by this name; empty where nothing is amiss."""
    identities = {other.identity for other in others}
    if not others or not isinstance(name, str) or (manifest.namespace, name) in identities:
        return ""
    elsewhere = [other.namespace for other in others if other.name == name]
    meant = _meant(name, [other.name for other in others if other.namespace == manifest.namespace])
    where = f"; there is one in namespace {elsewhere[0]}" if elsewhere else meant
    return f'no {kind} "{name}" in namespace {manifest.namespace} in the files{where}'


def _cache(manifest: Manifest, caches: list[Manifest]) -> Iterator[Advisory]:
    """A ModelCache is looked for in the deployment's namespace; without it nothing new is placed."""
    name = mapping(manifest.replica_template.get("modelCacheRef")).get("name")
    if message := _absent(manifest, "ModelCache", name, caches):
        yield manifest, "UnknownCache", ("spec", "template", "spec", "modelCacheRef", "name"), message


def _nodes_of_two_pools(manifest: Manifest) -> Iterator[Advisory]:
    """Nodes that two pools select are counted twice, and take the pods of one (docs/clusters.md)."""
    pools = mappings(manifest.spec.get("nodePools"))
    selectors = [mapping(pool.get("nodeSelector")) or {POOL_LABEL: pool.get("name")} for pool in pools]
    for at, selector in enumerate(selectors):
        for before, other in enumerate(selectors[:at]):
            if selector.items() >= other.items() or other.items() >= selector.items():
                wider = selector if other.items() >= selector.items() else other
                labels = ",".join(f"{key}={value}" for key, value in sorted(wider.items()))
                names = f"{pools[before].get('name')} and {pools[at].get('name')}"
                message = f"pools {names} select the same nodes ({labels}): each counts them as its own"
                yield manifest, "SharedNodes", ("spec", "nodePools", at, "nodeSelector"), message


def _over_guaranteed(manifest: Manifest, manifests: Manifests) -> Iterator[Advisory]:
    """More nodes are guaranteed than the pools have on which they are: not all can be had at once."""
    try:
        quotas = SchedulerConfig.parse(manifest.content).quotas
        read = [InferenceCluster.parse(cluster) for cluster in complete_all(manifests).clusters]
    except (Malformed, BadInput):
        return  # It was said already.
    for at, message in over_guaranteed(quotas, read) if read else ():
        yield manifest, "OverGuaranteed", ("quotas", at, "guaranteed", "nodes"), message


def _across_nodes(manifest: Manifest, configs: list[Manifest]) -> Iterator[Advisory]:
    """Yield wishes in WorkloadConfig that the scheduler cannot count (docs/api.md, acrossNodes)."""
    wishes = ("podsAcrossNodes", "replicasAcrossNodes")
    stated = [wish for config in configs for wish in wishes if config.content.get(wish) == "Required"]
    for at, pool in enumerate(mappings(manifest.spec.get("nodePools"))):
        if stated and pool.get("accounting") == "Device" and not pool.get("acrossNodes"):
            text = f"{stated[0]}: Required of WorkloadConfig is not counted on a pool that charges devices"
            yield manifest, "AcrossNodes", ("spec", "nodePools", at), f"{text}: say acrossNodes here"


def _gangs(manifest: Manifest, configs: list[Manifest]) -> Iterator[Advisory]:
    """Yield gangs that wait for what the release of the cluster has not (docs/selectors.md, Gangs).

    The schema refuses them beside another release; one that is left out is the scheduler's default.
    """
    stated = next((config.content.get("celVersion") for config in configs), None)
    default = stated or SchedulerConfig.model_fields["cel_version"].default
    is_bound = mapping(manifest.spec.get("scheduling")).get("gangs") is not None
    if is_bound and "celVersion" not in manifest.spec and default != GANG_RELEASE:
        message = f"PodGroups are of Kubernetes {GANG_RELEASE}, and the cluster counts as {default}"
        path = ("spec", "scheduling", "gangs")
        yield manifest, "ReleaseLacks", path, f'{message}: say celVersion: "{GANG_RELEASE}"'


def _limit(manifest: Manifest, clusters: list[Manifest]) -> Iterator[Advisory]:
    """So many replicas on so few clusters can never be placed (docs/api.md, maxReplicasPerCluster)."""
    spec = manifest.spec
    most, wanted = mapping(spec.get("placement")).get("maxReplicasPerCluster"), spec.get("replicas")
    if not clusters or not isinstance(most, int) or not isinstance(wanted, int):
        return
    labels = mapping(manifest.replica_template, "clusterSelector", "matchLabels").items()
    chosen = [one for one in clusters if labels <= mapping(one.metadata.get("labels")).items()]
    if chosen and most * len(chosen) < wanted:
        path = ("spec", "placement", "maxReplicasPerCluster")
        take = "cluster takes" if len(chosen) == 1 else "clusters take"
        message = f"{wanted} replicas are wanted, and {len(chosen)} {take} {most} each at most"
        yield manifest, "NeverPlaced", path, message


def _containers(manifest: Manifest) -> Iterator[Advisory]:
    """A mount names a volume of its pod; a Decode engine leaves the serving port to its sidecar.

    Of the first a replica composes nothing, of the second no pod serves (docs/workloads.md).
    """
    for path, engine in _engines(manifest):
        for member in _members(path, engine):
            leads = engine.get("phase") == "Decode" and member.role != "Worker"
            if leads and member.container and member.flag(("--port",)) in ("", str(PORT)):
                message = f"a Decode engine must listen elsewhere than on {PORT}: --port={DECODE_PORT}"
                yield manifest, "DecodePort", member.where, message
            for flags in GIVEN_ONCE:
                values = member.values(flags)
                if len(set(values)) > 1 and not member.is_scripted:  # A script may start several programs.
                    text = f"{flags[0]} is given several times ({', '.join(values)}): the last counts"
                    yield manifest, "GivenTwice", member.field, text
            names = [str(volume.get("name")) for volume in mappings(member.pod.get("volumes"))]
            for index, mount in enumerate(mappings(member.container.get("volumeMounts"))):
                name = str(mount.get("name"))
                if name not in names:
                    message = f'no volume "{name}" in the template{_meant(name, names)}'
                    yield manifest, "UnknownVolume", (*member.where, "volumeMounts", index, "name"), message


def _weights(manifest: Manifest) -> Iterator[Advisory]:
    """Engines load an adapter by the name of a repository, or by a path (docs/adapters.md): no scheme."""
    source = manifest.spec.get("source")
    scheme, separator, rest = source.partition("://") if isinstance(source, str) else ("", "", "")
    if separator:
        meant = f": write {rest}" if f"{scheme}://" == HUGGING_FACE else ""
        message = f'no engine loads an adapter from {scheme}://, found "{source}"{meant}'
        yield manifest, "UnknownSource", ("spec", "source"), message


def _base(manifest: Manifest, deployments: list[Manifest]) -> Iterator[Advisory]:
    """An adapter is placed on replicas of its base that have room for it (docs/adapters.md)."""
    name = mapping(manifest.spec.get("base")).get("deploymentName")
    if not deployments or not isinstance(name, str):
        return
    field = ("spec", "base", "deploymentName")
    if message := _absent(manifest, "ModelDeployment", name, deployments):
        yield manifest, "UnknownBase", field, message
        return
    base = next(one for one in deployments if one.identity == (manifest.namespace, name))
    engines = mappings(base.replica_template.get("engines"))
    rooms = [mapping(engine.get("adapters")) for engine in engines if engine.get("adapters")]
    if not rooms:
        yield manifest, "NeverPlaced", field, f"no engine of {name} has room for adapters"
        return
    least = min(whole_number(room.get("maxRank"), DEFAULT_RANK) for room in rooms)
    rank = whole_number(manifest.spec.get("rank"), DEFAULT_RANK)
    if rank > least:
        message = f"rank {rank}, and {name} takes adapters up to rank {least}: set adapters.maxRank there"
        yield manifest, "NeverPlaced", ("spec", "rank") if "rank" in manifest.spec else field, message
    for path, engine in _engines(base):
        if any(manifest.name in _served_names(member.words) for member in _members(path, engine)):
            message = f"{name} serves its base model by this name, and requests would reach that"
            yield manifest, "NameTaken", ("metadata", "name"), message


def _endpoints(manifest: Manifest, manifests: Manifests) -> Iterator[Advisory]:
    """A service selects endpoints of its own namespace, by what they are of (docs/routing.md)."""
    for at, entry in enumerate(mappings(manifest.spec.get("endpoints"))):
        for label, kind in ENDPOINT_LABELS.items():
            name = mapping(entry, "selector", "matchLabels").get(label)
            if message := _absent(manifest, kind, name, manifests[kind]):
                field: FieldPath = ("spec", "endpoints", at, "selector", "matchLabels", label)
                yield manifest, "NoEndpoints", field, message


def _reached(manifest: Manifest) -> Iterator[Advisory]:
    """How a cluster is reached, which no schema describes: other sources have fields of their own."""
    cluster = mapping(manifest.spec.get("cluster"))
    source = cluster.get("source")
    if isinstance(source, str) and source != EXISTING and source.casefold() == EXISTING.casefold():
        message = f'another source than {EXISTING}, so another step has to make it, found "{source}"'
        yield manifest, "UnknownSource", ("spec", "cluster", "source"), f"{message}; did you mean {EXISTING}?"
    if source == EXISTING and cluster.get("existing") is not None:
        try:
            DeclaredCluster.parse({**manifest.content, "spec": {"cluster": cluster}})
        except Malformed as error:
            for fault in error.faults:
                path = tuple(fault.path.split("."))
                yield manifest, "BadAccess", path, str(fault).removeprefix(f"{fault.path}: ")
    for at, pool in enumerate(mappings(manifest.spec.get("nodePools"))):
        nodes, most = pool.get("nodeCount"), pool.get("maxNodeCount")
        if isinstance(nodes, int) and isinstance(most, int) and nodes > most:
            message = f"{nodes} nodes are above maxNodeCount {most}, and replicas are placed on {most}"
            yield manifest, "TooManyNodes", ("spec", "nodePools", at, "nodeCount"), message


def _served_names(words: list[str]) -> list[str]:
    """Return the names that an engine answers to: one word or several after the flag."""
    names: list[str] = []
    for at, word in enumerate(words):
        if word.startswith("--served-model-name="):
            names.append(word.partition("=")[2])
        elif word == "--served-model-name":
            names += takewhile(lambda other: not other.startswith("-"), words[at + 1 :])
    return names

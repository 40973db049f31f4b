"""Names on the workload cluster and keys in the composition, each rule of naming once.

R is the replica, E an engine. A name is what Modelplane v0.3 gave it wherever Kubernetes accepts that one, so
that a cluster full of running workloads keeps them; a name that Kubernetes refuses is mended:

- Services and LeaderWorkerSets are DNS-1035 labels: no leading digit, no dot, at most 63 characters.
- The pods of a LeaderWorkerSet carry its name, an index and a revision in one label, so it has at most 46.
- What stands in a label's value has at most 63.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from function.api.model import mapping
from function.api.names import (
    API_VERSION,
    BASE_LENGTH,
    DIGEST_LENGTH,
    NAME_LENGTH,
    NamespacedName,
    child_name,
    dns_1035_name,
    is_dns_1035,
    is_dns_label,
    is_dns_subdomain,
)
from function.api.replica import CLUSTER_LABEL, DEPLOYMENT_LABEL, INDEX_LABEL
from function.api.workload import ROLES
from function.boundary import Document, Request, Requirement, Shape, Unreadable, text_at

# Objects of two namespaces that would be one object on their cluster: replicas of one name, and volumes.
#
# A replica's name is made of the deployment's name, the cluster and an index, not of the namespace, and
# without `remoteNamespace: Same` all pods are in one namespace of the cluster. The scheduler takes no index
# whose name another replica on the cluster has; but deployments of one name in two namespaces that are
# created at once do not see each other's replicas yet, and a hand may make one of any name. Workloads,
# claims and routes of both would have one name, and each would replace the other's.
#
# The volume of a ModelCache is named after namespace and cache, joined by a dash: team-a/weights and
# team/a-weights have one, and pods of both would write to it. Its name stays what it was, so the other
# spellings are looked up by name; a name that is too long to be whole is compared with those of all caches.
#
# With `namesakes: Refuse` whoever came first has the name, and nothing is composed for the other.

NAMESAKES, CACHES = "namesakes", "caches"
_NOT_YET = "9999"
"""When one was created that a file has before any API server: it comes after all others."""
_LABELS = (CLUSTER_LABEL, DEPLOYMENT_LABEL)
_READ_LABELS: Shape = dict.fromkeys((*_LABELS, INDEX_LABEL))
_SHAPE: Shape = {
    "metadata": {
        "name": None,
        "namespace": None,
        "creationTimestamp": None,
        "labels": _READ_LABELS,
    },
    "spec": {"clusterName": None},
}


def required(request: Request) -> Iterator[Requirement]:
    """Yield what namesakes are found by: replicas of deployments of this name on this cluster, and caches.

    Nothing where they are not looked for. The input is read by itself, because the rest of it may be invalid.
    """
    config = request.input or {}
    if config.get("namesakes") == "Refuse" and config.get("remoteNamespace") != "Same":
        yield from _replicas(request)
        yield from _caches(request)


def _replicas(request: Request) -> Iterator[Requirement]:
    """Yield nothing for a replica without these labels: a hand made it.

    A deployment's name that is cut in those of its replicas may be another's there. The index, where it has
    one, is a part of the name too, and leaves its siblings out: each of their writes would wake it.
    """
    labels = mapping(_metadata(_read(request.composite)).get("labels"))
    stated = [(label, labels[label]) for label in (*_LABELS, INDEX_LABEL) if _is_text(labels.get(label))]
    if {label for label, _ in stated}.issuperset(_LABELS):
        is_whole = len(labels[DEPLOYMENT_LABEL]) <= BASE_LENGTH
        yield Requirement(
            *(NAMESAKES, API_VERSION, "ModelReplica"),
            match_labels=tuple(stated if is_whole else stated[:1]),
            watched=is_whole,
        )


def _caches(request: Request) -> Iterator[Requirement]:
    """Yield the ModelCaches whose volume may have one name, the replica's own among them; nothing for one."""
    namespace, cache = _cache_of(request)
    whole = f"{namespace}-{cache}"
    if not (namespace and cache):
        return
    if whole not in cache_claim_name(namespace, cache):
        yield Requirement(CACHES, API_VERSION, "ModelCache")
        return
    dashes = (at for at, character in enumerate(whole) if character == "-")
    spellings = [(whole[:at], whole[at + 1 :]) for at in dashes]
    spellings = [(first, rest) for first, rest in spellings if is_dns_label(first) and is_dns_subdomain(rest)]
    for number, (first, rest) in enumerate(spellings if len(spellings) > 1 else ()):
        name = f"{CACHES}-{number}"
        yield Requirement(name, API_VERSION, "ModelCache", match_name=rest, namespace=first)


def _cache_of(request: Request) -> NamespacedName:
    """Return the ModelCache that a replica mounts, "" as its name for none."""
    cache = text_at(request.composite, "spec", "modelCacheRef", "name")
    return text_at(request.composite, "metadata", "namespace"), cache


def earlier_namesake(request: Request) -> str:
    """Return the namespace of the replica that has this one's name on this cluster, "" where none has.

    The one that was created first has it; of two in one second, that of the namespace that sorts first.
    """
    ours = _read(request.composite)
    holders = {
        _standing(theirs)
        for document in request.required.get(NAMESAKES, ())
        if _place(theirs := _read(document)) == _place(ours)
    }
    first = min(holders, default=("", ""))
    return first[1] if holders and first < _standing(ours) else ""


def earlier_cache(request: Request) -> str:
    """Return the ModelCache, as `namespace/name`, whose volume ours would be, "" for none.

    The one that was created first has it. One that does not exist comes after all that do.
    """
    ours = _cache_of(request)
    caches: dict[NamespacedName, tuple[str, str]] = {}
    for requirement in _caches(request):
        for document in request.required.get(requirement.name, ()):
            cache = _read(document)
            namespace, name = (str(_metadata(cache).get(key) or "") for key in ("namespace", "name"))
            caches[namespace, name] = _standing(cache)
    standing = caches.pop(ours, (_NOT_YET, ours[0]))
    claim = cache_claim_name(*ours)
    earlier = min(
        (
            (theirs, cache)
            for cache, theirs in caches.items()
            if cache_claim_name(*cache) == claim and theirs < standing
        ),
        default=None,
    )
    return "/".join(earlier[1]) if earlier is not None else ""


def _read(document: Document) -> dict[str, Any]:
    try:
        return document.project(_SHAPE)
    except Unreadable:
        return {}


def _metadata(replica: dict[str, Any]) -> dict[str, Any]:
    return mapping(replica.get("metadata"))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _place(replica: dict[str, Any]) -> tuple[object, object]:
    """Return what decides what its objects on the cluster are called."""
    return _metadata(replica).get("name"), mapping(replica.get("spec")).get("clusterName")


def _standing(replica: dict[str, Any]) -> tuple[str, str]:
    """Return when it was created, as the API server writes it so that texts sort, and its namespace."""
    metadata = _metadata(replica)
    created, namespace = (metadata.get(key) for key in ("creationTimestamp", "namespace"))
    return str(created or _NOT_YET), str(namespace or "")


WORKLOAD, CLAIM, PODS, BUDGET, SECRET = "model-serving", "resource-claim", "pods", "budget", "secret"
SERVICE, SEEN = "inference-service", "see-serving"
"""On KServe: the one object that is applied, and what its controller makes of each engine, looked at only."""
SERVICE_KEY = WORKLOAD
"""The key of the one object; those of workloads go on with the name of an engine."""
POOL, ROUTE, NAMESPACE = "inference-pool", "model-route", "namespace"
PICKER, PICKER_SERVICE, PICKER_CONFIG = "epp", "epp-service", "epp-config"
PICKER_ACCOUNT, PICKER_ROLE, PICKER_BINDING = "epp-serviceaccount", "epp-role", "epp-rolebinding"
ROUTING = (
    *(POOL, ROUTE, PICKER, PICKER_SERVICE, PICKER_CONFIG),
    *(PICKER_ACCOUNT, PICKER_ROLE, PICKER_BINDING),
)
"""Keys of what takes requests to the serving pods."""

GANG_LENGTH = 46
SERVICE_LENGTH = GANG_LENGTH - len("-kserve-mn-prefill")
"""Characters that an LLMInferenceService may have for its gangs to have a valid name."""
APART = 12
"""Hex digits in a name that is cut so short that the replica's own digest is cut away: alone they must keep
the replicas of many deployments apart that begin alike."""
REVISION_LENGTH = 12
"""Characters that a StatefulSet of a gang adds to its name in a label: two dashes and a revision of ten."""

_ROLES = "|".join(role.lower() for role in ROLES)
_CLAIM_KEY = re.compile(rf"{CLAIM}-(?P<engine>.+)-(?P<role>{_ROLES})(-(?P<digest>[0-9a-f]{{8}}))?")


class Key(NamedTuple):
    """The meaning of one of our keys."""

    what: str
    """One of `WORKLOAD`, `CLAIM`, `PODS`, `BUDGET`, `SECRET`, `NAMESPACE`, `SERVICE`, `SEEN`, or a key of
    `ROUTING`."""
    of: str = ""
    """The engine, or the name of the secret."""
    role: str = ""
    """The member's role in lower case, for a claim."""


@lru_cache(maxsize=4_096)
def read_key(base: str) -> Key | None:
    """Read a key back, without what marks a successor (`fail_static.base_of`). None for what is not ours."""
    if base in ROUTING or base == NAMESPACE:
        return Key(base)
    if base == SERVICE_KEY:
        return Key(SERVICE)
    claim = _CLAIM_KEY.fullmatch(base)
    if claim:
        return Key(CLAIM, claim["engine"], claim["role"])
    for prefix in (WORKLOAD, SEEN, PODS, BUDGET, SECRET):
        rest = base.removeprefix(f"{prefix}-")
        if rest and rest != base:
            return Key(prefix, rest)
    return None


def workload_key(engine: str) -> str:
    """Key of an engine's Deployment or LeaderWorkerSet."""
    return f"{WORKLOAD}-{engine}"


def claim_key(engine: str, role: str, digest: str = "") -> str:
    """Key of a member's claim template; a later generation has the digest of its spec."""
    return "-".join(part for part in (CLAIM, engine, role.lower(), digest) if part)


def deployment_name(replica: str, engine: str) -> str:
    """Name of an engine's Deployment, and of the label that selects its pods.

    The endpoint picker of a replica too long for `R-epp` has the name that an engine called epp would get; no
    engine's name ends in a dash.
    """
    name = _subdomain(child_name(replica, engine), replica, engine)
    return name if name != picker_name(replica) else deployment_name(replica, f"{engine}-")


def gang_name(replica: str, engine: str) -> str:
    """Name of an engine's LeaderWorkerSet."""
    name = child_name(replica, engine)
    return (
        name
        if len(name) <= GANG_LENGTH and is_dns_1035(name)
        else _mended(replica, engine, limit=GANG_LENGTH)
    )


def legacy_gang_name(replica: str, engine: str, copies: int) -> str:
    """Return the longer name that v0.3 gave a LeaderWorkerSet, "" where its pods could not be created."""
    name = child_name(replica, engine)
    longest = NAME_LENGTH - REVISION_LENGTH - len(str(copies - 1))
    return name if len(name) <= longest and is_dns_1035(name) else ""


def claim_name(replica: str, engine: str, role: str, digest: str = "") -> str:
    """Name of a member's claim template."""
    parts = (replica, engine, role.lower(), "devices", *((digest,) if digest else ()))
    return _subdomain(child_name(*parts), *parts)


def service_name(replica: str) -> str:
    """Name of the LLMInferenceService. What its controller makes of it has the name with a suffix."""
    return (
        replica
        if len(replica) <= SERVICE_LENGTH and is_dns_1035(replica)
        else _mended(replica, limit=SERVICE_LENGTH)
    )


def pool_name(replica: str) -> str:
    """Name of the InferencePool."""
    return _joined(replica, "pool")


def picker_name(replica: str) -> str:
    """Name of the endpoint picker's objects, and of the label that selects its pods."""
    return _joined(replica, "epp")


def picker_service_name(replica: str) -> str:
    """Name of the endpoint picker's Service."""
    name = picker_name(replica)
    return name if is_dns_1035(name) else _mended_label(name)


def serving_label(replica: str) -> str:
    """Value of the label that the pool selects pods by."""
    return replica if len(replica) <= NAME_LENGTH else child_name(replica)


def budget_name(replica: str, engine: str) -> str:
    """Name of an engine's PodDisruptionBudget."""
    return _subdomain(child_name(replica, engine, "budget"), replica, engine, "budget")


def secret_name(replica: str, secret: str) -> str:
    """Name of a mirrored Secret: one for each replica, so that none loses it when another leaves."""
    return _subdomain(child_name(replica, "secret", secret), replica, "secret", secret)


def cache_claim_name(namespace: str, cache: str) -> str:
    """Name of the PersistentVolumeClaim that holds a ModelCache."""
    return child_name("modelcache", namespace, cache)


def _joined(replica: str, what: str) -> str:
    name = f"{replica}-{what}"
    return name if len(name) <= NAME_LENGTH else _subdomain(child_name(replica, what), replica, what)


def _subdomain(name: str, *parts: str) -> str:
    """Return the name itself where it is a DNS subdomain: a cut may end in a dot, which none may."""
    return name if is_dns_subdomain(name) else _mended(*parts)


def _mended(*parts: str, limit: int = NAME_LENGTH) -> str:
    """Return a DNS-1035 label for what the parts name, apart from every other by the digest of the parts."""
    prefix = "m-" if parts[0][:1].isdigit() else ""
    is_whole = len(prefix + "-".join(parts)) <= limit - DIGEST_LENGTH - 1
    digits = DIGEST_LENGTH if is_whole or limit == NAME_LENGTH else APART
    return dns_1035_name(*parts, limit=limit, digits=digits)


def _mended_label(name: str) -> str:
    """Return a DNS-1035 label: `m-` goes before a leading digit, a dot costs a digest."""
    prefixed = f"m-{name}" if name[:1].isdigit() else name
    return prefixed if is_dns_1035(prefixed) else _mended(name)

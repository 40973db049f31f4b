"""Names on the workload cluster and keys in the composition, each rule of naming once.

R is the replica, E an engine. A name is what Modelplane v0.3 gave it wherever Kubernetes accepts that one, so
that a cluster full of running workloads keeps them; a name that Kubernetes refuses is mended:

- Services and LeaderWorkerSets are DNS-1035 labels: no leading digit, no dot, at most 63 characters.
- The pods of a LeaderWorkerSet carry its name, an index and a revision in one label, so it has at most 46.
- What stands in a label's value has at most 63.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from function.api import names
from function.api.names import DIGEST_LENGTH, DNS_1035, NAME_LENGTH, child_name, dns_1035_name
from function.api.workload import ROLES
from function.fail_static import base_of

T = TypeVar("T")

WORKLOAD, CLAIM, PODS, BUDGET, SECRET = "model-serving", "resource-claim", "pods", "budget", "secret"
GROUP = "pod-group"
"""What binds the pods of a gang together; the key goes on with the engine and a digest."""
SERVICE, SEEN = "inference-service", "see-serving"
"""On KServe: the one object that is applied, and what its controller makes of each engine, looked at only."""
SERVICE_KEY = WORKLOAD
"""The key of the one object; those of workloads go on with the name of an engine."""
ADAPTERS = "adapters"
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
_GROUP_KEY = re.compile(rf"{GROUP}-(?P<engine>.+)-[0-9a-f]{{8}}")


class Key(NamedTuple):
    """The meaning of one of our keys."""

    what: str
    """One of `WORKLOAD`, `CLAIM`, `GROUP`, `PODS`, `BUDGET`, `SECRET`, `NAMESPACE`, `SERVICE`, `SEEN`,
    `ADAPTERS`, or a key of `ROUTING`."""
    of: str = ""
    """The engine, or the name of the secret."""
    role: str = ""
    """The member's role in lower case, for a claim."""


@lru_cache(maxsize=4_096)
def read_key(key: str) -> Key | None:
    """Read a key back, that of a successor (`fail_static.key_of`) as what it succeeds; None for another's."""
    base = base_of(key)
    if base in ROUTING or base in (NAMESPACE, ADAPTERS):
        return Key(base)
    if base == SERVICE_KEY:
        return Key(SERVICE)
    claim = _CLAIM_KEY.fullmatch(base)
    if claim:
        return Key(CLAIM, claim["engine"], claim["role"])
    group = _GROUP_KEY.fullmatch(base)
    if group:
        return Key(GROUP, group["engine"])
    for prefix in (WORKLOAD, SEEN, PODS, BUDGET, SECRET):
        rest = base.removeprefix(f"{prefix}-")
        if rest and rest != base:
            return Key(prefix, rest)
    return None


def what_of(key: str) -> str:
    """Return what stands under a key, as `Key.what`; "" for a key that is not ours."""
    read = read_key(key)
    return "" if read is None else read.what


def among(observed: Mapping[str, T], *what: str) -> list[T]:
    """Return what is observed under our keys of these kinds, successors too."""
    return [one for key, one in observed.items() if what_of(key) in what]


def deployment_name(replica: str, engine: str) -> str:
    """Name of an engine's Deployment, and of the label that selects its pods.

    The endpoint picker of a replica too long for `R-epp` has the name that an engine called epp would get; no
    engine's name ends in a dash.
    """
    name = part_name(replica, engine)
    return name if name != joined_name(replica, PICKER) else deployment_name(replica, f"{engine}-")


def gang_name(replica: str, engine: str) -> str:
    """Name of an engine's LeaderWorkerSet."""
    return _mended(replica, engine, limit=GANG_LENGTH)


def legacy_gang_name(replica: str, engine: str, copies: int) -> str:
    """Return the longer name that v0.3 gave a LeaderWorkerSet, "" where its pods could not be created."""
    name = child_name(replica, engine)
    longest = NAME_LENGTH - REVISION_LENGTH - len(str(copies - 1))
    return name if len(name) <= longest and DNS_1035.fullmatch(name) else ""


def claim_name(replica: str, engine: str, role: str, digest: str = "") -> str:
    """Name of a member's claim template."""
    return part_name(replica, engine, role.lower(), "devices", *((digest,) if digest else ()))


def service_name(replica: str) -> str:
    """Name of the LLMInferenceService. What its controller makes of it has the name with a suffix."""
    is_valid = len(replica) <= SERVICE_LENGTH and DNS_1035.fullmatch(replica)
    return replica if is_valid else _mended(replica, limit=SERVICE_LENGTH)


def joined_name(replica: str, what: str) -> str:
    """Name of what a replica has once: `R-what` as v0.3 has it, or with a digest where that is too long.

    The InferencePool is `pool`; `epp` names the objects of the endpoint picker and the label of its pods.
    """
    name = f"{replica}-{what}"
    return name if len(name) <= NAME_LENGTH else part_name(replica, what)


def picker_service_name(replica: str) -> str:
    """Name of the endpoint picker's Service."""
    name = joined_name(replica, PICKER)
    if DNS_1035.fullmatch(name):
        return name
    # What `m-` does not mend has a dot, which costs a digest: v0.3 had no such Service that worked.
    prefixed = f"m-{name}"
    return prefixed if DNS_1035.fullmatch(prefixed) else _mended(name)


def serving_label(replica: str) -> str:
    """Value of the label that the pool selects pods by."""
    return replica if len(replica) <= NAME_LENGTH else child_name(replica)


def cache_claim_name(namespace: str, cache: str) -> str:
    """Name of the PersistentVolumeClaim that holds a ModelCache."""
    return child_name("modelcache", namespace, cache)


def part_name(*parts: str) -> str:
    """Name of a part of a replica: the `child_name` of these, mended where that was cut at a dot."""
    name = child_name(*parts)
    return name if names.DNS_SUBDOMAIN.fullmatch(name) else _mended(*parts)


def _mended(*parts: str, limit: int = NAME_LENGTH) -> str:
    """Return a DNS-1035 label for what the parts name, apart from every other by the digest of the parts.

    It is `child_name` of the parts where that is such a label and short enough.
    """
    prefix = "m-" if parts[0][:1].isdigit() else ""
    is_whole = len(prefix + "-".join(parts)) <= limit - DIGEST_LENGTH - 1
    digits = DIGEST_LENGTH if is_whole or limit == NAME_LENGTH else APART
    return dns_1035_name(*parts, limit=limit, digits=digits)

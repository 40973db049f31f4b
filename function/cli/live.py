"""A connection to one control plane: lists in pages, single objects, and failures that say what to do.

Only `get` and `list` are ever sent. Credentials come from a kubeconfig, exec plugins included, or in a pod
from its service account, as kubectl finds them; refreshed ones are not written back. The Kubernetes client
takes half a second to import: that happens only here, and only when something is read.

The file opens with the table of what is read, each kind with the ClusterRole that allows it. A kind that is
not served is empty, except where a control plane without it is none of a fleet. Every failure becomes
`BadInput` with the verb, the resource and what would help.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import frozen
from function.cli.bad_input import BadInput, closest
from function.cli.group import EXTRA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import JsonObject

# The kinds that are read: those that decide, those that some commands show, and the devices of a cluster.


@frozen
class Resource:
    """A kind as the API server serves it."""

    kind: str
    plural: str
    group: str = "modelplane.ai"
    version: str = "v1alpha1"
    required: bool = False
    """A control plane without it is none of a fleet, so that it may not be missing."""
    role: str = "example/operate/reader.yaml"
    """The file with the ClusterRole that allows it to be read."""

    @property
    def name(self) -> str:
        """`modeldeployments.modelplane.ai`, as RBAC and kubectl name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


DEPLOYMENTS = Resource("ModelDeployment", "modeldeployments", required=True)
CLUSTERS = Resource("InferenceCluster", "inferenceclusters", required=True)
REPLICAS = Resource("ModelReplica", "modelreplicas", required=True)
FLEET = (
    DEPLOYMENTS,
    CLUSTERS,
    REPLICAS,
    Resource("InferenceClass", "inferenceclasses"),
    Resource("ModelEndpoint", "modelendpoints"),
    Resource("ModelCache", "modelcaches"),
)
"""The kinds that a decision reads."""
ADAPTERS = (
    Resource("ModelAdapter", "modeladapters"),
    Resource("ModelAdapterPlacement", "modeladapterplacements"),
)
"""The kinds that are placed on replicas; deployments are placed without them."""
BY_KIND = {resource.kind: resource for resource in (*FLEET, *ADAPTERS)}
COMPOSITIONS = Resource("Composition", "compositions", "apiextensions.crossplane.io", "v1")
"""Where the inputs of the function's steps stand."""
WORKLOADS = (
    Resource("Object", "objects", "kubernetes.m.crossplane.io"),
    Resource("ObservedObjectCollection", "observedobjectcollections", "kubernetes.m.crossplane.io"),
)
"""The kinds that `why` reads to go on below the cluster."""
EVENTS = Resource("Event", "events", "events.k8s.io", "v1")
"""Read by `history`, of one namespace."""
DEVICES = "example/operate/device-reader.yaml"
SLICES = tuple(
    Resource("ResourceSlice", "resourceslices", "resource.k8s.io", version, role=DEVICES)
    for version in ("v1", "v1beta2", "v1beta1")
)
NODES = Resource("Node", "nodes", "", "v1", required=True, role=DEVICES)
"""Read of a cluster itself by `drift` and `class`; ResourceSlices in the versions it may serve."""
RULES = tuple(
    tuple(Resource(kind, plural, "resource.k8s.io", version, role=DEVICES) for version in versions)
    for kind, plural, versions in (
        ("ResourceClaimTemplate", "resourceclaimtemplates", ("v1", "v1beta2")),
        ("DeviceClass", "deviceclasses", ("v1", "v1beta2")),
        ("DeviceTaintRule", "devicetaintrules", ("v1", "v1beta2", "v1alpha3")),
    )
)
"""Read there by `drift` too, in the newest version that is served."""
DEVICE_CLASSES = RULES[1]
"""Those of them that `class` and `cluster` read, for the names that claims give."""


# Explain a failed request to the control plane, and say what to do about it.
#
# The client raises its own error for an answer that is no success, and urllib3's for no answer. Both are
# told apart by what they carry, so that this module imports neither.

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, GONE = 401, 403, 404, 410
"""Statuses of answers. Gone: the server has forgotten where a list was to be continued."""
_USER = re.compile(r'User "(?P<user>[^"]*)"')
_OBJECT_AT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>:? ?")


def refusal(error: Exception, where: str, verb: str, resource: Resource, namespace: str) -> BadInput:
    """Say what kept a resource from being read.

    Each status has another remedy: new credentials, a role, an installation, or more time. Those that are
    not known are passed on as the server says them.
    """
    status = _status(error)
    what = f"{verb} {resource.name}{f' in namespace {namespace}' if namespace else ''}"
    if status == UNAUTHORIZED:
        return BadInput(f"{where}: {what}: the credentials are not accepted, or have expired")
    if status == FORBIDDEN:
        message = _message(error)
        match = _USER.search(message)
        who = f' for user "{match["user"]}"' if match else ""
        return BadInput(
            f"{where}: {what}: forbidden{who}; {resource.role} has a ClusterRole that allows it"
            f"{'' if match else f' ({message})'}"
        )
    if status == NOT_FOUND:
        return BadInput(
            f"{where}: {what}: the CRD {resource.name} with version {resource.version} is not installed; "
            "is this the control plane? docs/install.md installs it"
        )
    if status is not None:
        return BadInput(f"{where}: {what}: {status} {_message(error)}")
    return BadInput(f"{where}: {what}: {_unreachable(error)}")


def _status(error: Exception) -> int | None:
    """The status of the answer; None when there was none."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) and status else None


def _message(error: Any) -> str:
    """Return the server's own message: that of its Status, else the start of its text."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        plain = json.loads(body)
    except ValueError:
        plain = None
    message = plain.get("message") if isinstance(plain, dict) else None
    return str(message or " ".join(body.split())[:200] or error.reason)


def _unreachable(error: Exception) -> str:
    """Why there was no answer: urllib3 wraps the reason, and names objects that nobody knows."""
    reason = getattr(error, "reason", None)
    text = " ".join(_OBJECT_AT.sub("", str(reason or error)).split())
    kind = type(reason or error).__name__
    if "Timeout" in kind:
        return f"no answer in time: {text}; --request-timeout gives it longer"
    if "SSL" in kind or "certificate" in text.lower():
        return f"the server's certificate is not accepted: {text}"
    return f"cannot be reached: {text}"


PAGE = 500
"""Objects asked for at a time, as kubectl does."""
RESTARTS = 3
"""So often a list is begun anew whose continuation the server has forgotten."""
CONNECT_SECONDS = 10.0
"""Seconds until a server that does not take the connection is given up."""
BUSY = (429, 503)
"""Answers of a server that asks to be asked again later."""
ATTEMPTS = 4


@frozen
class Target:
    """Which control plane to read; empty values are kubectl's defaults."""

    context: str = ""
    kubeconfig: str = ""
    seconds: float = 30.0
    """Seconds until a request that is not answered is given up."""

    @property
    def words(self) -> list[str]:
        """The options that name it on a command line, quoted for a shell."""
        named = {"--context": self.context, "--kubeconfig": self.kubeconfig}
        return [quote(word) for option, value in named.items() if value for word in (option, value)]

    @property
    def kubectl(self) -> str:
        """How a command line begins that asks it: `kubectl --context production`."""
        return " ".join(("kubectl", *self.words))


class ControlPlane:
    """One control plane. Raises BadInput when it cannot be connected to, or does not answer."""

    def __init__(self, target: Target) -> None:
        """Find the credentials; nothing is sent yet.

        A server that is busy is asked again, as kubectl does; one that cannot be reached is not, as
        somebody waits.
        """
        kubernetes, urllib3 = _modules()
        configuration, self.title, self.namespace = _configured(kubernetes, target)
        configuration.retries = urllib3.Retry(
            ATTEMPTS, connect=0, read=0, redirect=0, other=0, status_forcelist=BUSY, backoff_factor=0.5
        )
        self._library, self._client = kubernetes.client, kubernetes.client.ApiClient(configuration)
        self._api = kubernetes.client.CustomObjectsApi(self._client)
        self._failures = (
            kubernetes.client.ApiException,
            kubernetes.config.ConfigException,
            urllib3.exceptions.HTTPError,
            OSError,
        )
        self._timeout = (min(CONNECT_SECONDS, target.seconds), target.seconds)
        self._where = f"{self.title} ({configuration.host})"

    def objects(self, resource: Resource, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """List a kind, in all namespaces or in one, each with apiVersion and kind; [] where it is not served.

        All pages are of one moment. Where the server has forgotten it, the list begins anew.
        """
        listed = self.served(resource, namespace, labels)
        return listed if listed is not None else []

    def served(self, resource: Resource, namespace: str = "", labels: str = "") -> list[JsonObject] | None:
        """List a kind as `objects` does; None where it is not served and need not be.

        A server forgets where a long list was to be continued (410): the list then begins anew, a few
        times.

        Raises:
            BadInput: with the resource, the reason and the remedy.
        """
        version = f"{resource.group}/{resource.version}".lstrip("/")
        for again in reversed(range(RESTARTS)):
            try:
                pages = list(self._pages(resource, namespace, labels))
            except self._failures as error:
                status = _status(error)
                if again and status == GONE:
                    continue
                if status == NOT_FOUND and not resource.required:
                    return None
                raise refusal(error, self._where, "list", resource, namespace) from None
            content = (plain for page in pages for plain in page.get("items") or ())
            return [{**plain, "apiVersion": version, "kind": resource.kind} for plain in content]
        raise AssertionError("the last failure is raised")

    def get(self, resource: Resource, name: str, namespace: str) -> JsonObject | None:
        """One object, or None where there is none."""
        where = (resource.group, resource.version, namespace, resource.plural, name)
        try:
            content: JsonObject = self._api.get_namespaced_custom_object(
                *where, _request_timeout=self._timeout
            )
        except self._failures as error:
            if _status(error) == NOT_FOUND:
                return None
            raise refusal(error, self._where, "get", resource, namespace) from None
        return content

    def deployment(self, namespace: str, name: str) -> tuple[JsonObject | None, list[JsonObject]]:
        """One deployment, None where there is none, and the replicas that say they are of it."""
        deployment = self.get(DEPLOYMENTS, name, namespace)
        return deployment, self.objects(REPLICAS, namespace, f"{DEPLOYMENT_LABEL}={name}")

    def _pages(self, resource: Resource, namespace: str, labels: str) -> Iterator[JsonObject]:
        """Yield the pages of a list; each names the place where the next begins."""
        token = ""
        while True:
            page = self._page(resource, namespace, labels, token)
            yield page
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def _page(self, resource: Resource, namespace: str, labels: str, token: str) -> JsonObject:
        """Ask for one page of a kind, in all namespaces or in one."""
        paging = {"limit": PAGE, **({"_continue": token} if token else {})}
        chosen = {"label_selector": labels} if labels else {}
        more = {**paging, **chosen, "_request_timeout": self._timeout}
        if not resource.group:  # The core group has another path; typed objects are of no use here.
            # Its models take half a second to import, and few verbs list there.
            core = self._library.CoreV1Api(self._client)
            answer = getattr(core, f"list_{resource.kind.lower()}")(_preload_content=False, **more)
            core_page: JsonObject = json.loads(answer.data)
            return core_page
        if namespace:
            where = (resource.group, resource.version, namespace, resource.plural)
            page: JsonObject = self._api.list_namespaced_custom_object(*where, **more)
        else:
            page = self._api.list_cluster_custom_object(
                resource.group, resource.version, resource.plural, **more
            )
        return page


def _modules() -> tuple[Any, Any]:
    """The Kubernetes client and urllib3. Raises BadInput where the extra is not installed."""
    try:
        import kubernetes.client  # noqa: PLC0415 - it takes long, and is an extra
        import kubernetes.config  # noqa: PLC0415 - as above
        import urllib3  # noqa: PLC0415 - as above
    except ImportError:
        raise BadInput(
            f"reading a control plane needs the Kubernetes client: pip install '{EXTRA}'; "
            "or give files to a command that reads them"
        ) from None
    # That a certificate is not looked at was said in the kubeconfig; kubectl does not repeat it either.
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return kubernetes, urllib3


def _configured(kubernetes: Any, target: Target) -> tuple[Any, str, str]:
    """The client's configuration, what to call the control plane, and the context's namespace.

    In a pod the service account counts, unless a context or a kubeconfig is named.

    Raises:
        BadInput: where no kubeconfig is there, or one that the client cannot read.
    """
    configuration = kubernetes.client.Configuration()
    config = kubernetes.config
    where = target.kubeconfig or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    is_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and not (target.kubeconfig or target.context)
    # KUBECONFIG may list several files, of which one is enough.
    is_there = any(Path(part).is_file() for part in where.split(os.pathsep) if part)
    if not (is_pod or is_there):
        instead = "give --kubeconfig, set KUBECONFIG, or name files to read: fleet-scheduler plan fleet.yaml"
        raise BadInput(f"no kubeconfig: {where} is not there; {instead}")
    try:
        if not is_there:
            config.load_incluster_config(client_configuration=configuration)
            return configuration, "the control plane of this pod", "default"
        context = _context(config, where, target.context)
        with _credentials(f"{where}: context {context['name']}"):
            config.load_kube_config(where, context["name"], configuration, persist_config=False)
    except BadInput:
        raise
    except (TypeError, AttributeError, KeyError):
        raise BadInput(f"{where}: is no kubeconfig") from None
    except Exception as error:  # noqa: BLE001 - YAML, exec plugins, certificates: all of it is the user's
        raise BadInput(f"{where}: {' '.join(str(error).split())}") from None
    if not str(configuration.host).startswith(("https://", "http://")):
        raise BadInput(
            f'{where}: context {context["name"]}: server: expected https://..., found "{configuration.host}"'
        )
    namespace = str((context.get("context") or {}).get("namespace") or "default")
    return configuration, f"context {context['name']}", namespace


MOST_LOGGED = 100
"""Errors of the client that are kept while credentials are looked for, of which the first is shown."""


@contextmanager
def _credentials(where: str) -> Iterator[None]:
    """Raise what the client only logs: where an exec plugin fails, it goes on without credentials."""
    import logging.handlers  # noqa: PLC0415 - as much as the client, and only with it

    logged, root = logging.handlers.BufferingHandler(MOST_LOGGED), logging.getLogger()
    logged.setLevel(logging.ERROR)
    root.addHandler(logged)
    try:
        yield
    finally:
        root.removeHandler(logged)
    if logged.buffer:
        raise BadInput(f"{where}: no credentials: {' '.join(logged.buffer[0].getMessage().split())}")


def _context(config: Any, where: str, wanted: str) -> JsonObject:
    """The context that was asked for, else the current one. Raises BadInput when there is no such."""
    contexts, current = config.list_kube_config_contexts(where)
    if not wanted:
        chosen: JsonObject = current
        return chosen
    by_name: dict[str, JsonObject] = {str(context["name"]): context for context in contexts}
    if wanted not in by_name:
        raise BadInput(f'{where}: no context "{wanted}"; {closest(wanted, by_name)}')
    return by_name[wanted]


# The names of what a control plane has: what a shell completes, and where a deployment is looked for.


def identities(plane: ControlPlane, kind: str) -> list[tuple[str, str]]:
    """Namespace and name of every object of a kind of a control plane. Raises BadInput."""
    metadata = (plain["metadata"] for plain in plane.objects(BY_KIND[kind]))
    return [(str(entry.get("namespace") or ""), str(entry["name"])) for entry in metadata]


# Read the devices of a cluster: ResourceSlices, from the cluster itself and not from its control plane.


def newest(cluster: ControlPlane, resources: Iterable[Resource]) -> list[JsonObject] | None:
    """The objects of a kind in the first of some versions that is served; None where none is.

    Kinds of Dynamic Resource Allocation are served in other versions from release to release; the first of
    `resources` is the newest.
    """
    served = (cluster.served(resource) for resource in resources)
    return next((listed for listed in served if listed is not None), None)


def read_device_classes(cluster: ControlPlane) -> list[JsonObject]:
    """The DeviceClasses in the newest version that is served; empty where none is."""
    return newest(cluster, DEVICE_CLASSES) or []


def read_slices(cluster: ControlPlane) -> list[JsonObject]:
    """The ResourceSlices in the newest version that is served. Raises BadInput where there is none."""
    slices = newest(cluster, SLICES)
    if slices is None:
        versions = ", ".join(resource.version for resource in SLICES)
        raise BadInput(
            f"{cluster.title} serves no {SLICES[0].name} ({versions}): Dynamic Resource Allocation is on by "
            "default from Kubernetes 1.34; is it the cluster with the devices?"
        )
    if not slices:
        raise BadInput(f"{cluster.title} has no ResourceSlice: does a DRA driver run on it?")
    return slices

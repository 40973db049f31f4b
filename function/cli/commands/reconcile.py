"""`reconcile`: kubectl commands that make deployments reconcile now; by hand what a WatchOperation does.

The choice of deployments is that of the operation (`function.operations.handler`): those a change of a
cluster concerns. The annotation's value is the object's resourceVersion, so that running the same line
twice asks once.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import click

from function.api.names import RECONCILE_ANNOTATION
from function.boundary import NO_REUSE, PlainDocument, Request
from function.cli.bad_input import BadInput, closest
from function.cli.live import CLUSTERS, DEPLOYMENTS, REPLICAS, Target
from function.cli.options import Command, end, lenient, may_read_live
from function.cli.text import listed, note
from function.cli.worlds.inputs import read_manifests
from function.operations.handler import FLEET, WATCHED, Deployment, FleetState, read_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.cli.worlds.manifest import Manifests


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE|DIR...]")
@lenient
@click.option("--cluster", "clusters", multiple=True, help="Those with replicas on it. May be repeated.")
@click.option("--deployment", "names", multiple=True, help="NAMESPACE/NAME. May be repeated.")
@click.option("--all", "everyone", is_flag=True, help="Every deployment.")
@may_read_live
def reconcile(
    *,
    files: tuple[str, ...],
    clusters: tuple[str, ...],
    names: tuple[str, ...],
    everyone: bool,
    target: Target,
    live: bool,
) -> None:
    r"""Print the kubectl commands that make deployments reconcile now, not when their ttl runs out.

    Crossplane reconciles a deployment at once when its annotation crossplane.io/reconcile-requested-at
    changes. FILEs ("-" for standard input) are what the control plane has, or --live reads it; without
    either the command line that collects it is printed. Nothing is changed: look at what is printed, and
    pipe it to sh.

    Chosen are the deployments named, else those that a change of the clusters named concerns: with replicas
    there, with replicas on clusters that do not exist, and those that are short of replicas.

    Exit codes: 0 done, 1 bad input.

    \b
    Examples:
      fleet-scheduler reconcile --cluster gke-europe-west4
      fleet-scheduler reconcile --live --cluster gke-europe-west4 | sh
      kubectl get ic,mr,md -A -o json | fleet-scheduler reconcile - --cluster gke-europe-west4 | sh
    """
    if not (files or live):
        click.echo(_collecting(target, clusters, names, everyone=everyone))
        return
    manifests, errors = read_manifests(files, target if live else None)
    state = read_state(_request(manifests), NO_REUSE)
    _note_strangers(manifests)
    where = "the control plane" if live else "the files"
    if not (state.deployments or state.clusters or manifests["ModelDeployment"]):
        # A pipe whose first half failed would reconcile nothing, and call it done.
        raise BadInput(f"there is no ModelDeployment and no InferenceCluster in {where}")
    if everyone:
        chosen = [deployment for deployment in state.deployments if not deployment.deleting]
    else:
        chosen = _named(state, names, where) if names else _concerned(state, clusters, where)
    click.echo("".join(f"{target.kubectl} {_annotate(deployment)}\n" for deployment in chosen), nl=False)
    end(errors, findings=False)


def _collecting(target: Target, clusters: Iterable[str], names: Iterable[str], *, everyone: bool) -> str:
    """The command line that collects what is read, and pipes it into this command with the same options."""
    options = [f"--cluster {quote(name)}" for name in clusters]
    options += [f"--deployment {quote(name)}" for name in names]
    options += ["--all"] if everyone else []
    options += target.words
    words = " ".join(("fleet-scheduler reconcile -", *options))
    kinds = ",".join(resource.name for resource in (CLUSTERS, REPLICAS, DEPLOYMENTS))
    return f"{target.kubectl} get {kinds} --all-namespaces -o json \\\n  | {words}"


def _request(manifests: Manifests) -> Request:
    """Build the request of an Operation after a deletion: the fleet, and no object that changed."""
    required = {
        name: tuple(PlainDocument(manifest.content) for manifest in manifests[kind])
        for name, kind in FLEET.items()
    }
    return Request(PlainDocument({}), required={**required, WATCHED: ()})


def _note_strangers(manifests: Manifests) -> None:
    """Say which deployments no control plane holds: those cannot be asked for anything."""
    strangers = [manifest for manifest in manifests["ModelDeployment"] if not manifest.metadata.get("uid")]
    if strangers:
        titles = [f"{manifest.namespace}/{manifest.name}" for manifest in strangers]
        note(f"left out, as they have no uid and so come from no control plane: {listed(titles)}")


def _named(state: FleetState, names: Iterable[str], where: str) -> list[Deployment]:
    """The deployments of some names. Raises BadInput.

    They come in the order of their titles, each once, however often it was named.
    """
    deployments = {
        f"{deployment.namespace}/{deployment.name}": deployment for deployment in state.deployments
    }
    for name in names:
        if name not in deployments:
            raise BadInput(f'no ModelDeployment "{name}" in {where}; {closest(name, deployments)}')
    return [deployments[name] for name in sorted(set(names))]


def _concerned(state: FleetState, clusters: Iterable[str], where: str) -> list[Deployment]:
    """The deployments that a change of some clusters concerns; without any, of none. Raises BadInput."""
    cluster_names = state.clusters.keys() | {
        name for deployment in state.deployments for name in deployment.clusters
    }
    for name in clusters:
        if name not in cluster_names:
            raise BadInput(f'no InferenceCluster "{name}" in {where}; {closest(name, cluster_names)}')
    changes = [replace(state, changed=name) for name in clusters] or [state]
    concerned = {deployment for change in changes for deployment in change.concerned()}
    return [deployment for deployment in state.deployments if deployment in concerned]


def _annotate(deployment: Deployment) -> str:
    """The words after kubectl. The token is the resource version: each write of the object has another.

    Raises:
        BadInput: for an object that no control plane stored, and for a name that no API server would take.
    """
    if not deployment.version:
        name = f"{deployment.namespace}/{deployment.name}"
        raise BadInput(
            f"ModelDeployment {name} has no resourceVersion: it does not come from a control plane"
        )
    words = (deployment.name, deployment.namespace, deployment.version)
    if not all(word.isprintable() for word in words):  # No API server takes such a name, nor should a shell.
        raise BadInput(f"ModelDeployment {deployment.namespace}/{deployment.name}: not a name")
    name, namespace, token = map(quote, words)
    target = f"modeldeployments.modelplane.ai {name} -n {namespace}"
    return f"annotate {target} {RECONCILE_ANNOTATION}={token} --overwrite"

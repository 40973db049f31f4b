"""`snapshot`: the command that collects a fleet into files, and the filter that leaves its secrets out.

The filter is the allow-list of recordings (`function.recording`): the fields that a decision reads,
and stand-ins for what is passed on unread. Objects are marked as cut down, so that `lint` does not take
what they lack for a mistake.
"""

from __future__ import annotations

from shlex import quote
from typing import Any

import click

from function.api.model import STANDARD, mapping
from function.api.text import counted
from function.cli.bad_input import BadInput
from function.cli.live import COMPOSITIONS, FLEET, Target
from function.cli.options import Command, end, lenient, may_read_live
from function.cli.patience import waiting
from function.cli.text import as_yaml, listed, note
from function.cli.worlds.inputs import read_manifests
from function.cli.worlds.manifest import SNAPSHOT
from function.cli.worlds.manifests import CONFIGS, KINDS
from function.recording import KINDS as ALLOWED, redacted_object


def command_line(target: Target, file: str) -> str:
    """The command line that collects everything the tools read into one file, secrets left out."""
    kinds = ",".join(resource.name for resource in (*FLEET, COMPOSITIONS))
    collect = f"{target.kubectl} get {kinds} --all-namespaces -o json"
    return f"{collect} \\\n  | fleet-scheduler snapshot - > {quote(file)}"


def _marked(plain: dict[str, Any]) -> dict[str, Any]:
    """Mark an object as cut down, so that nobody takes what it lacks for a mistake.

    A config is the input of a step, and has no metadata of its own to mark.
    """
    metadata = plain.get("metadata")
    if plain.get("kind") in CONFIGS or not isinstance(metadata, dict):
        return plain
    annotations = {**mapping(metadata.get("annotations")), SNAPSHOT: "true"}
    return {**plain, "metadata": {**metadata, "annotations": annotations}}


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE|DIR...]")
@lenient
@may_read_live
@click.option("--file", default="fleet.yaml", show_default=True, help="The file to name in the command line.")
def snapshot(files: tuple[str, ...], file: str, target: Target, *, live: bool) -> None:
    r"""Print the command line that collects a fleet; with FILEs or --live, write it without its secrets.

    Without either nothing is read and no cluster is asked: the kubectl command line is printed, for you to
    look at and run where you have access. It pipes into this command again.

    With FILEs ("-" for standard input) or --live, every object the tools read is written as YAML to
    standard output, cut down to the fields that a decision reads. Pod templates are replaced by stand-ins of
    the same size; annotations, managed fields and values of labels of deployments and replicas are left
    out. Every tool answers the same on the snapshot, but for what the stack of a cluster cannot express.

    Exit codes: 0 done, 1 bad input.

    \b
    Examples:
      fleet-scheduler snapshot --context production
      fleet-scheduler snapshot --context production --live > fleet.yaml
      kubectl get md,mr,ic,icl,mc,me -A -o json | fleet-scheduler snapshot - > fleet.yaml
    """
    if not (files or live):
        click.echo(command_line(target, file))
        return
    manifests, errors = read_manifests(files, target if live else None)
    if not any(manifests[kind] for kind in KINDS):
        # A pipe whose first half failed would leave an empty fleet, and call it done.
        raise BadInput(f"there is no object of a fleet in {'the control plane' if live else 'the files'}")
    for kind in KINDS:
        if manifests[kind] and kind not in ALLOWED:
            number = counted(len(manifests[kind]), "object")
            note(f"left out: {number} of kind {kind}, on which no placement depends")
    unlike = [
        manifest.name
        for manifest in manifests["InferenceCluster"]
        if manifest.spec.get("stack") not in (None, STANDARD)
    ]
    if unlike:
        note(f"pods become stand-ins, so what the stack cannot express is not known on {listed(unlike)}")
    objects = (
        _marked(redacted_object(manifest.content, ALLOWED[kind]))
        for kind in KINDS
        if kind in ALLOWED
        for manifest in manifests[kind]
    )
    with waiting("Writing"):
        text = as_yaml(*objects)
    click.echo(text, nl=False)
    end(errors, findings=False)

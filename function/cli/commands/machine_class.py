"""`class`: the InferenceClass of a machine type of the catalogue, or of the devices that drivers publish.

A machine type is data (`function.catalogue`). Devices are described from ResourceSlices, by the function
that the handler of clusters verifies classes with. Most of the file is about telling the two apart: a word
on the command line may be a machine type, a file, or a slip of either.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from function.catalogue import UnknownMachineType, entry, machine_types
from function.cli.bad_input import BadInput, closest
from function.cli.options import LIST_IS_TEXT, Command, end, lenient, output_option, reads_devices
from function.cli.text import complain, console, emit, listed, note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from function.boundary import JsonObject
    from function.cli.live import Target


MOST_NAMED = 10
"""Machine types that are named where a word is part of several."""


@click.command(name="class", cls=Command)
@click.argument("what", nargs=-1, metavar="[PROVIDER/MACHINETYPE | FILE|DIR...]")
@lenient
@click.option("--name", default="", help="The name of the class; default: made from the machine type.")
@click.option("--list", "list_all", is_flag=True, help="Name every machine type of the catalogue.")
@reads_devices
@output_option("yaml", "json", text="The form of the class.")
def describe_class(
    what: tuple[str, ...], name: str, devices_of: Target | None, output: str, *, list_all: bool
) -> None:
    r"""Write an InferenceClass: of a machine type of the catalogue, or of what drivers publish.

    A machine type prints what the catalogue has of it, memory as its driver reports it. ResourceSlices are
    read of a cluster, of --context or --kubeconfig, or stand in files (kubectl get resourceslices -o yaml):
    the class describes the devices of their nodes. Where DeviceClasses are there too, claims name one that
    selects the devices.

    Exit codes: 0 written, 2 written, and some nodes have other devices, 1 bad input.

    \b
    Examples:
      fleet-scheduler class --list
      fleet-scheduler class aws/p5en.48xlarge
      fleet-scheduler class --context gpu-1 --name h200
      kubectl --context gpu-1 get resourceslices -o yaml | fleet-scheduler class - --name h200
    """
    if list_all:
        if output == "json":
            raise BadInput(LIST_IS_TEXT)
        out, widest = console(), max(map(len, machine_types()))
        for machine_type in machine_types():
            out.say(f"{machine_type:{widest}}  {entry(machine_type)['spec']['description']}", markup=False)
        end((), findings=False)
    if devices_of is not None:
        if what:
            raise BadInput("--context and --kubeconfig read ResourceSlices: leave machine type and files out")
        from function.cli.live import ControlPlane, read_device_classes, read_slices  # noqa: PLC0415 - as below

        cluster = ControlPlane(devices_of)
        _print(read_slices(cluster), read_device_classes(cluster), name, output)
    if not what:
        raise BadInput(
            "name a machine type, files with ResourceSlices, or a cluster with --context; "
            "--list names the machine types"
        )
    if len(what) == 1 and "/" in what[0] and what[0] in machine_types():
        content = entry(what[0])
        made_from = re.sub(r"[/._]", "-", what[0]).lower()
        emit(output, _class(name or made_from, content["spec"]))
        console(stderr=True).say(f"revision {content['revision']}; {content['source']}", markup=False)
        end((), findings=False)
    _refuse_slip(what)
    from function.cli.worlds.derive import slices_of  # noqa: PLC0415 - as above
    from function.cli.worlds.inputs import read_manifests  # noqa: PLC0415 - the catalogue needs none of it

    manifests, errors = read_manifests(what)
    slices = slices_of(manifests)
    if not slices:
        raise BadInput(_nothing(what))
    _print(slices, [manifest.content for manifest in manifests["DeviceClass"]], name, output, errors)


def doubt(slices: Sequence[JsonObject]) -> None:
    """Say what a class cannot hold: devices of no one node, and several ways to cut one device.

    Devices that consume the counters of one GPU are not all there at once (docs/selectors.md, Partitions).
    """
    from function.api.model import mapping, mappings  # noqa: PLC0415 - the catalogue needs none of it

    specs = [mapping(content.get("spec")) for content in slices]
    elsewhere = sorted({str(spec.get("driver")) for spec in specs if not spec.get("nodeName")})
    cut = sorted(
        {
            str(spec.get("driver"))
            for spec in specs
            for device in mappings(spec.get("devices"))
            if device.get("consumesCounters") or mapping(device.get("basic")).get("consumesCounters")
        }
    )
    if elsewhere:
        note(f"left out: devices of {listed(elsewhere)} in slices that name no node")
    if cut:
        note(f"{listed(cut)} cuts devices in several ways, which are all counted: keep the entries of one")


def _print(
    slices: Iterable[JsonObject],
    device_classes: Sequence[JsonObject],
    name: str,
    output: str,
    errors: Sequence[str] = (),
) -> NoReturn:
    """Print the class of the nodes that publish these slices, and end. Raises BadInput."""
    from function.cluster.classes import NothingPublished, describe  # noqa: PLC0415 - as above

    stated = list(slices)
    doubt(stated)
    try:
        made = describe(stated, device_classes)
    except NothingPublished as error:
        raise BadInput(str(error)) from None
    emit(output, _class(name or "from-slices", made.spec))
    if made.others:
        complain([f"{made.others} of {made.nodes + made.others} nodes have other devices than this class"])
    end(errors, findings=made.others > 0)


def _refuse_slip(what: tuple[str, ...]) -> None:
    """Refuse a single word that is neither a file nor a machine type. Raises BadInput.

    What stands behind a slash is looked for among devices, and alone in names too: people know that they
    have an H100, and not what their cloud calls the machine.
    """
    (word, *others) = what
    if not others and word != "-" and not Path(word).exists():
        # Who leaves the provider out means the type.
        types = {name.partition("/")[2]: name for name in machine_types()} if "/" not in word else {}
        described = {name: entry(name)["spec"]["description"].lower() for name in machine_types()}
        part = word.rpartition("/")[2].lower()
        having = [
            name
            for name, text in described.items()
            if part[1:] and (part in text or ("/" not in word and part in name.lower()))
        ]
        meant = closest(types.get(word, word), machine_types())
        if having and word not in types:  # A device or a make: H100, tpu, nvidia/gb200.
            meant = f"with it there is {listed(having, MOST_NAMED)}"
        raise BadInput(f"{word}: no such file or directory, and no machine type; {meant}")


def _nothing(what: tuple[str, ...]) -> str:
    """Say that the files have no ResourceSlice.

    Whoever gave a word may have meant a machine type, so the message of the catalogue is added.
    """
    try:
        entry(what[0])
    except UnknownMachineType as error:
        return f"there is no ResourceSlice in the files, and {error}"
    return "there is no ResourceSlice in the files"


def _class(name: str, spec: JsonObject) -> JsonObject:
    """An InferenceClass of this name. Raises BadInput where an API server would refuse it."""
    from function.api.names import API_VERSION  # noqa: PLC0415 - as above
    from function.cli.admission.kinds import writable  # noqa: PLC0415 - as above

    metadata = {"name": name}
    return writable({"apiVersion": API_VERSION, "kind": "InferenceClass", "metadata": metadata, "spec": spec})

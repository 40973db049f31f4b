"""`size`: the memory a model needs per GPU, the nodeSelector that asks for it, the pools that have it.

The estimate is arithmetic on a config.json (`sizing.memory`). The pools are not: for every usual split a
deployment is made up that asks for it, and the scheduler says where it fits, capacity counted apart.
docs/sizing.md has the formulas, and compares them with published figures.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource
from rich.table import Table

from function.catalogue import NETWORK_DRIVER
from function.cli.admission.kinds import writable
from function.cli.bad_input import BadInput
from function.cli.options import LIST_IS_TEXT, OUTPUT, Command, end, reads_fleet
from function.cli.sizing import manifest, models
from function.cli.sizing.manifest import Drivers, PoolFit, SizedFleet, selector
from function.cli.sizing.memory import BYTES, GIB, SUPPORTED_KINDS, TENSOR, Load, Need, needs, weights_total
from function.cli.text import (
    Screen,
    answered,
    as_yaml,
    console,
    emit,
    escape,
    listed,
    note,
    printable,
    slug,
    track,
)
from function.cli.worlds.inputs import Source, gather, review
from function.cli.worlds.world import world_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Sized = list[tuple[Need, list[PoolFit]]]
DEFAULT_CONTEXT = 8_192
QUESTIONS = {
    "tokens": "Tokens of one sequence, prompt and answer together",
    "batch": "Sequences at a time",
    "replicas": "Replicas",
    "namespace": "Namespace",
    "name": "Name of the deployment",
}
MEMORY_QUESTION = {"gpu_memory": "GiB of memory of a GPU"}
DEFAULT_MEMORY = 79
"""GiB of a GPU where no fleet says what there is: what the driver of one sold with 80 GB reports."""


def _pool_data(fit: PoolFit) -> dict[str, Any]:
    """One pool as plain data."""
    data = {
        "cluster": fit.cluster,
        "pool": fit.pool,
        "nodesPerReplica": fit.nodes,
        "replicasNow": fit.replicas,
    }
    return data | ({"barred": fit.barred} if fit.barred else {})


def _data(sized: models.SizedModel, load: Load, answer: Sized, drivers: Drivers) -> dict[str, Any]:
    """The whole answer as plain data; sizes are bytes, but for `memoryPerGPU` as a selector has it."""
    model = sized.architecture
    published = {"parametersPublished": round(sized.published * 1e9)} if sized.published else {}
    return {
        "estimate": True,
        **({"repository": sized.repository} if sized.repository else {}),
        "modelType": model.kind,
        "parameters": model.parameters,
        **published,
        "weightsBytes": round(weights_total(model, load.dtype)),
        "cacheBytesPerToken": round(model.cache_per_token(load.cache_dtype)),
        "dtype": load.dtype,
        "context": load.context,
        "batch": load.batch,
        "splits": [
            {
                "tensor": need.split.tensor,
                "pipeline": need.split.pipeline,
                "weightsBytesPerGPU": round(need.weights),
                "cacheBytesPerGPU": round(need.cache),
                **({"loadingBytesPerGPU": round(need.loading)} if need.loading else {}),
                "memoryPerGPU": f"{need.gibibytes}Gi",
                "nodeSelector": selector(need, drivers),
                "pools": [_pool_data(pool) for pool in pools],
            }
            for need, pools in answer
        ],
    }


def _heading(out: Screen, sized: models.SizedModel, load: Load, answer: Sized) -> None:
    """Print the model, and all that makes the estimate weaker than it looks."""
    model = sized.architecture
    out.say(
        f"{escape(sized.summary)}, {load.dtype}: "
        f"{weights_total(model, load.dtype) / GIB:.1f} GiB of weights; "
        f"KV cache {model.cache_per_token(load.cache_dtype) / 1024:.1f} KiB per token, "
        f"{load.batch} x {load.context} tokens",
        style="bold",
    )
    out.print("Estimates: see docs/sizing.md for the formulas and how near they come.", style="dim")
    if any(model.windows):
        kept, count = max(model.windows), sum(1 for window in model.windows if window)
        out.print(f"{count} of {model.layers} layers keep no more than their window of {kept} tokens.")
    if answer[0][0].loading:
        text = f"vLLM loads {model.dtype} weights whole before it converts them: GPU NEEDS has room for it."
        out.print(text, style="yellow")
    if model.kind not in SUPPORTED_KINDS:
        out.print(
            f"The formulas are not known to describe model_type {escape(model.kind)!r}.", style="yellow"
        )
    if model.encoders:
        out.print(f"The encoder beside the language model is not counted: {', '.join(model.encoders)}.")
    if model.context and load.context > model.context:
        out.print(f"The model was made for at most {model.context} tokens.", style="yellow")


def _where(pools: list[PoolFit], *, with_fleet: bool) -> str:
    """The pools in words: those that have room now, else those that fit and are full, or take nothing."""
    if not with_fleet:
        return ""
    ready = [f"{fit.cluster}/{fit.pool} ({fit.replicas})" for fit in pools if fit.replicas]
    full = [f"{fit.cluster}/{fit.pool}" for fit in pools if not fit.barred]
    barred = [f"{fit.cluster}/{fit.pool} ({fit.barred})" for fit in pools if fit.barred]
    none_now = [f"full: {listed(full, 2)}"] * bool(full) + [f"closed: {listed(barred, 2)}"] * bool(barred)
    return listed(ready, 4) or "; ".join(none_now) or "no pool"


def _show(sized: models.SizedModel, load: Load, answer: Sized, drivers: Drivers, *, with_fleet: bool) -> None:
    """Print a row for each split, then the nodeSelector of the smallest that has room."""
    out = console()
    _heading(out, sized, load, answer)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("TP", "PP", "WEIGHTS", "KV CACHE", "GPU NEEDS"):
        table.add_column(title, justify="right", no_wrap=True)
    if with_fleet:
        table.add_column("POOLS (REPLICAS NOW)", overflow="fold")
    for need, pools in answer:
        sizes = (f"{amount / GIB:.1f}" for amount in (need.weights, need.cache))
        cells = (str(need.split.tensor), str(need.split.pipeline), *sizes)
        where = (escape(_where(pools, with_fleet=with_fleet)),) if with_fleet else ()
        style = "" if not with_fleet or any(pool.replicas for pool in pools) else "dim"
        table.add_row(*cells, f"{need.gibibytes}Gi", *where, style=style)
    out.show(table, whole=5)
    best = _best(answer)
    if best is not None:
        need, pools = best
        there = f", on {pools[0].cluster}/{pools[0].pool}" if pools else ""
        out.print(
            f"\nThe smallest that fits: TP {need.split.tensor}, PP {need.split.pipeline}{there}:",
            style="bold",
        )
        text = as_yaml({"nodeSelector": selector(need, drivers)})
        out.print(text, end="", markup=False, soft_wrap=True)


def _best(answer: Sized) -> tuple[Need, list[PoolFit]] | None:
    """The split with the fewest GPUs that has room somewhere."""
    return next(((need, pools) for need, pools in answer if any(pool.replicas for pool in pools)), None)


def _chosen(answer: Sized, memory: int, *, with_fleet: bool) -> Need:
    """The split that a manifest is for: the one of fewest GPUs that has room, or that such GPUs can hold.

    Raises:
        BadInput: where no split has room on the fleet, or none fits GPUs of `memory` GiB.
    """
    if with_fleet:
        best = _best(answer)
        if best is None:
            raise BadInput(
                "no split has room on this fleet now; without FILEs the manifest is for --gpu-memory"
            )
        return best[0]
    chosen = next((need for need, _ in answer if need.gibibytes <= memory), None)
    if chosen is None:
        least = min(need.gibibytes for need, _ in answer)
        raise BadInput(
            f"no usual split fits GPUs of {memory}Gi; the widest needs {least}Gi of each: --gpu-memory"
        )
    return chosen


@click.command(cls=Command)
@click.argument("model", metavar="MODEL|CONFIG.JSON", required=False, shell_complete=models.ModelNames())
@reads_fleet
@click.option(
    "--dtype", type=click.Choice(sorted(BYTES)), help="Type of the weights. [default: what the config says]"
)
@click.option(
    "--kv-dtype",
    type=click.Choice(["bf16", "fp16", "fp8"]),
    default="bf16",
    show_default=True,
    help="Type of the KV cache.",
)
@click.option(
    "--max-model-len",
    "tokens",
    type=click.IntRange(1, 100_000_000),
    default=DEFAULT_CONTEXT,
    show_default=True,
    help="Tokens of one sequence, prompt and answer together.",
)
@click.option(
    "--batch", type=click.IntRange(1, 1_000_000), default=8, show_default=True, help="Sequences at a time."
)
@click.option("--driver", default="gpu.nvidia.com", show_default=True, help="The DRA driver of the GPUs.")
@click.option(
    "--nic-driver",
    help="The driver of the network devices that a gang asks for; '' asks for none. "
    f"[default: the fleet's, else {NETWORK_DRIVER}]",
)
@click.option("--manifest", "as_manifest", is_flag=True, help="Write a ModelDeployment instead.")
@click.option("--ask", "asks", is_flag=True, help="Write one, and ask on the terminal for what is not given.")
@click.option("--name", default="", help="Its name. [default: the model's]")
@click.option("--replicas", type=click.IntRange(0, 200), default=1, show_default=True, help="Its replicas.")
@click.option(
    "--image", default=manifest.IMAGE, show_default=True, help="The image of its engine, with vLLM."
)
@click.option("--repository", default="", help="Where its weights are. [default: as the model has it]")
@click.option(
    "--gpu-memory",
    type=click.IntRange(1, 100_000),
    default=DEFAULT_MEMORY,
    show_default=True,
    help="GiB of a GPU, for a manifest without FILEs.",
)
@click.option("--list", "list_models", is_flag=True, help="List the models that are known by name.")
@OUTPUT
def size(  # noqa: PLR0913 - one parameter per option
    *,
    model: str | None,
    source: Source,
    dtype: str | None,
    kv_dtype: str,
    tokens: int,
    batch: int,
    driver: str,
    nic_driver: str | None,
    as_manifest: bool,
    asks: bool,
    name: str,
    replicas: int,
    image: str,
    repository: str,
    gpu_memory: int,
    list_models: bool,
    output: str,
) -> None:
    r"""Estimate the memory a model needs per GPU, and write the ModelDeployment that serves it.

    MODEL is one of --list, or a Hugging Face config.json (a local file). For the usual splits (tensor
    parallel within a node, pipeline parallel over nodes) it shows the weights and the KV cache of the
    fullest GPU, and the memory a GPU must have for both, the engine's own needs and a tenth of reserve.
    With FILEs or --context, it asks the scheduler which pools of that fleet fit each split and how many
    replicas have room now, and prints the nodeSelector for the smallest split that fits: one GPU before
    several of a node before several nodes.

    With --manifest it writes a whole ModelDeployment for that split, in the namespace -n, else `default`;
    without a fleet for the smallest split that GPUs with --gpu-memory can hold. With --ask it does so
    after questions, each of which has a default, and says the command that needs none.

    All figures are estimates; docs/sizing.md has the formulas and compares them with published figures.

    Exit codes: 0 some split has room (or no fleet was given), 2 none has, 1 bad input.

    \b
    Examples:
      fleet-scheduler size llama-3.1-70b
      fleet-scheduler size config.json fleet.yaml --dtype fp8 --max-model-len 32768 --batch 16
      fleet-scheduler size kimi-k2 --manifest -n ml-team --gpu-memory 140 | kubectl apply -f -
      fleet-scheduler size --ask fleet.yaml > deployment.yaml
    """
    if list_models:
        if output != "table":
            raise BadInput(LIST_IS_TEXT)
        out = console()
        for entry in map(models.known_model, models.table()):
            published = f"{entry.published:7g} B  {entry.architecture.dtype:5}"
            out.say(f"{entry.name:29} {published}  {entry.repository}", markup=False)
        end((), findings=False)
    if asks:
        _ask(source)
    if not model:
        raise BadInput("name a model or its config.json; --list names the models, and --ask asks for it")
    sized = models.model(model)
    fleet, errors = _fleet(source)
    load_ = Load(dtype or sized.architecture.dtype, kv_dtype, tokens, batch)
    drivers = Drivers(driver, _nics(nic_driver, fleet), parted=bool(fleet and fleet.has_parts(driver)))
    widths = fleet.widths(driver) if fleet else [max(TENSOR)]
    estimates = needs(sized.architecture, load_, widths)
    answer = [
        (need, fleet.pools_for(need, drivers) if fleet else [])
        for need in track(estimates, "Asking the scheduler", total=len(estimates))
    ]
    if as_manifest:
        need = _chosen(answer, gpu_memory, with_fleet=fleet is not None)
        wish = manifest.Wish(name, source.namespace or "default", replicas, image, repository)
        made = writable(manifest.deployment(sized, load_, need, selector(need, drivers), wish))
        if output == "json":
            emit(output, made)
        else:  # The file itself says what in it is estimated.
            comments = "".join(f"# {printable(line)}\n" for line in manifest.remarks(sized, load_, need))
            click.echo(comments + as_yaml(made), nl=False)
        end(errors, findings=False)
    if output == "table":
        _show(sized, load_, answer, drivers, with_fleet=fleet is not None)
    else:
        emit(output, answered("Size", _data(sized, load_, answer, drivers)))
    end(errors, findings=fleet is not None and not _best(answer))


def _nics(given: str | None, fleet: SizedFleet | None) -> tuple[str, ...]:
    """The network drivers that a gang asks for: as given, else as the fleet publishes them."""
    if given is not None:
        return (given,) if given else ()
    published = fleet.nic_drivers() if fleet else ()
    if fleet and not published:
        note("no pool of the fleet publishes network devices, so no split over several nodes fits")
    return published or (NETWORK_DRIVER,)


def _fleet(source: Source) -> tuple[SizedFleet | None, tuple[str, ...]]:
    """The fleet, if one was given, and what is wrong with it: a control plane is only asked when named."""
    if source.target.context.isdigit():
        raise BadInput("--context names a context of the kubeconfig; tokens are --max-model-len")
    if not (source.files or source.target.context or source.target.kubeconfig):
        return None, ()
    manifests, _ = gather(source)
    errors = review(manifests)
    return SizedFleet(world_of(manifests.having("ModelDeployment", []))), errors


# Ask for the options that were not given, and say the command that needs no questions.
#
# For somebody who does not know the options yet. Questions go to standard error, so standard output stays the
# manifest and can be redirected. Each has a default; an answer that an option would refuse is asked again.
# Where the input ends before all is answered, that is an error, and nothing is written.


def _ask(source: Source) -> NoReturn:
    """Ask for what was not given, then write the manifest. Raises BadInput.

    The command is run again with the answers as its options, so that both ways write the same manifest. The
    first argument is taken for a file where one of that name is there.
    """
    context = click.get_current_context()
    values, files = context.params, source.files
    if values["model"] and not values["model"].endswith(".json") and Path(values["model"]).exists():
        files = (values["model"], *files)  # The first argument is the model, if there is one.
        context.set_parameter_source("model", ParameterSource.DEFAULT)
    values["files"] = files
    sized = models.model(
        ask(context, {"model": "Model, or its config.json (--list names models)"}, {})["model"]
    )
    longest = sized.architecture.context or values["tokens"]
    defaults = {
        "tokens": min(values["tokens"], longest),
        "name": slug(sized.name, "model"),
        "namespace": source.namespace or "default",
    }
    is_fleet = files or source.target.context or source.target.kubeconfig
    answered = ask(context, QUESTIONS | ({} if is_fleet else MEMORY_QUESTION), defaults)
    note(f"without questions: {without_questions(context, ['model', 'files', *answered], 'asks')} --manifest")
    context.invoke(size, **values | {"asks": False, "as_manifest": True})
    raise AssertionError("a command ends by itself")


class ModelName(click.ParamType[str]):
    """A model's name, its repository or the path of its config.json, which must exist."""

    name = "model"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as given. Raises UsageError, which a prompt shows before it asks again."""
        try:
            models.model(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)
        return value


def ask(context: click.Context, texts: dict[str, str], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values of the parameters in `texts`, in that order: as given, else as answered. Raises BadInput.

    The defaults are those of the parameters, but for those in `defaults`.
    """
    parameters = {parameter.name: parameter for parameter in context.command.params}
    for name, text in texts.items():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            continue
        parameter = parameters[name]
        is_argument = isinstance(parameter, click.Argument)
        default = defaults.get(name, None if is_argument else parameter.get_default(context))
        kind = ModelName() if is_argument else parameter.type
        try:
            context.params[name] = click.prompt(text, default=default, type=kind, err=True)
        except click.Abort:
            raise BadInput(f"--ask: no answer to {text!r}") from None
    return {name: context.params[name] for name in texts}


def without_questions(context: click.Context, answered: Iterable[str], flag: str) -> str:
    """The command line that needs no questions: what was given, one flag aside, and what was answered."""
    words: list[Any] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if name == flag or (name not in answered and is_default):
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words += value if isinstance(value, tuple) else [value]
        else:
            words += [parameter.opts[-1], *([] if getattr(parameter, "is_flag", False) else [value])]
    return f"{context.command_path} {shlex.join(map(str, words))}"

"""`size`: the memory a model needs per GPU, the nodeSelector that asks for it, the pools that have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from rich.table import Table

from function.cli.bad_input import BadInput
from function.cli.options import OUTPUT, Command, end, lenient
from function.cli.progress import track
from function.cli.sizing.architecture import Architecture, read_config
from function.cli.sizing.fitting import PoolFit, pools_for, selector
from function.cli.sizing.memory import BYTES, GIB, Load, Need, cache_per_token, needs, weights_total
from function.cli.text import console, emit, escape
from function.cli.worlds.inputs import read_manifests
from function.cli.worlds.memo import ParseMemo

if TYPE_CHECKING:
    from rich.console import Console

Answer = list[tuple[Need, list[PoolFit]]]
DEFAULT_CONTEXT = 8_192


def _config(path: str) -> Architecture:
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: is not JSON: {error}") from None
    return read_config(plain, path)


def _gib(amount: float) -> str:
    return f"{amount / GIB:.1f}"


def _pool_data(fit: PoolFit) -> dict[str, Any]:
    data = {
        "cluster": fit.cluster,
        "pool": fit.pool,
        "nodesPerReplica": fit.nodes,
        "replicasNow": fit.replicas,
    }
    return data | ({"barred": fit.barred} if fit.barred else {})


def _data(model: Architecture, load: Load, answer: Answer, driver: str) -> dict[str, Any]:
    return {
        "estimate": True,
        "modelType": model.kind,
        "parameters": model.parameters,
        "weightsBytes": round(weights_total(model, load.dtype)),
        "cacheBytesPerToken": round(cache_per_token(model, load.cache_dtype)),
        "dtype": load.dtype,
        "context": load.context,
        "batch": load.batch,
        "splits": [
            {
                "tensor": need.split.tensor,
                "pipeline": need.split.pipeline,
                "weightsBytesPerGPU": round(need.weights),
                "cacheBytesPerGPU": round(need.cache),
                "memoryPerGPU": f"{need.gibibytes}Gi",
                "nodeSelector": selector(need, driver),
                "pools": [_pool_data(pool) for pool in pools],
            }
            for need, pools in answer
        ],
    }


def _heading(out: Console, model: Architecture, load: Load) -> None:
    billions = model.parameters / 1e9
    out.print(
        f"{escape(model.kind or 'model')}: {billions:.2f} billion parameters, {load.dtype}: "
        f"{_gib(weights_total(model, load.dtype))} GiB of weights; "
        f"KV cache {cache_per_token(model, load.cache_dtype) / 1024:.1f} KiB per token, "
        f"{load.batch} x {load.context} tokens",
        style="bold",
        soft_wrap=True,
    )
    out.print("Estimates: see docs/sizing.md for the formulas and how near they come.", style="dim")
    if not model.is_supported:
        out.print(
            f"The formulas are not known to describe model_type {escape(model.kind)!r}.", style="yellow"
        )
    if model.context and load.context > model.context:
        out.print(f"The model was made for at most {model.context} tokens.", style="yellow")


def _where(pools: list[PoolFit], *, with_fleet: bool) -> str:
    if not with_fleet:
        return ""
    ready = [f"{fit.cluster}/{fit.pool} ({fit.replicas})" for fit in pools if fit.replicas]
    full = len(pools) - len(ready)
    return ", ".join([*ready[:4], *([f"{len(ready) - 4} more"] if len(ready) > 4 else [])]) or (  # noqa: PLR2004
        f"{full} {'pool fits' if full == 1 else 'pools fit'}, none has room now" if full else "no pool"
    )


def _show(model: Architecture, load: Load, answer: Answer, driver: str, *, with_fleet: bool) -> None:
    out = console()
    _heading(out, model, load)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("TP", "PP", "WEIGHTS", "KV CACHE", "GPU NEEDS"):
        table.add_column(title, justify="right", no_wrap=True)
    if with_fleet:
        table.add_column("POOLS (REPLICAS NOW)", overflow="fold")
    for need, pools in answer:
        cells = (str(need.split.tensor), str(need.split.pipeline), _gib(need.weights), _gib(need.cache))
        where = (escape(_where(pools, with_fleet=with_fleet)),) if with_fleet else ()
        style = "" if not with_fleet or any(pool.replicas for pool in pools) else "dim"
        table.add_row(*cells, f"{need.gibibytes}Gi", *where, style=style)
    out.print(table)
    best = _best(answer)
    if best is not None:
        need, pools = best
        there = f", on {pools[0].cluster}/{pools[0].pool}" if pools else ""
        out.print(
            f"\nThe smallest that fits: TP {need.split.tensor}, PP {need.split.pipeline}{there}:",
            style="bold",
        )
        text = yaml.safe_dump({"nodeSelector": selector(need, driver)}, sort_keys=False, width=1_000)
        out.print(text, end="", markup=False, soft_wrap=True)


def _best(answer: Answer) -> tuple[Need, list[PoolFit]] | None:
    """The split with the fewest GPUs that has room somewhere."""
    return next(((need, pools) for need, pools in answer if any(pool.replicas for pool in pools)), None)


@click.command(cls=Command)
@click.argument("config", metavar="CONFIG.JSON")
@click.argument("files", nargs=-1, metavar="[FILE|DIR...]")
@lenient
@click.option(
    "--dtype", type=click.Choice(sorted(BYTES)), help="Type of the weights. [default: what the config says]"
)
@click.option(
    "--kv-dtype",
    type=click.Choice(sorted(BYTES)),
    default="bf16",
    show_default=True,
    help="Type of the KV cache.",
)
@click.option(
    "--context",
    type=click.IntRange(1, 100_000_000),
    default=DEFAULT_CONTEXT,
    show_default=True,
    help="Tokens of one sequence, prompt and answer together.",
)
@click.option(
    "--batch", type=click.IntRange(1, 1_000_000), default=8, show_default=True, help="Sequences at a time."
)
@click.option("--driver", default="gpu.nvidia.com", show_default=True, help="The DRA driver of the GPUs.")
@OUTPUT
def size(  # noqa: PLR0913 - one parameter per option
    *,
    config: str,
    files: tuple[str, ...],
    dtype: str | None,
    kv_dtype: str,
    context: int,
    batch: int,
    driver: str,
    output: str,
) -> None:
    r"""Estimate the memory a model needs per GPU, from its Hugging Face config.json (a local file).

    For the usual splits (tensor parallel within a node, pipeline parallel over nodes) it shows the weights
    and the KV cache of the fullest GPU, and the memory a GPU must have for both, the engine's own needs and
    a tenth of reserve. With FILEs, it asks the scheduler which pools of that fleet fit each split and how
    many replicas have room now, and prints the nodeSelector for the smallest split that fits: one GPU
    before several of a node before several nodes.

    All figures are estimates; docs/sizing.md has the formulas and compares them with published figures.

    \b
    Exit codes: 0 some split has room (or no fleet was given), 2 none has, 1 bad input.

    \b
    Examples:
      fleet-scheduler size config.json
      fleet-scheduler size config.json fleet.yaml --dtype fp8 --context 32768 --batch 16
    """
    model = _config(config)
    load_ = Load(dtype or model.dtype, kv_dtype, context, batch)
    fleet, errors = read_manifests(files) if files else (None, ())
    reuse, estimates = ParseMemo(), needs(model, load_)
    answer = [
        (need, pools_for(fleet, need, driver, reuse) if fleet else [])
        for need in track(estimates, "Asking the scheduler", total=len(estimates))
    ]
    if output == "table":
        _show(model, load_, answer, driver, with_fleet=fleet is not None)
    else:
        emit(output, _data(model, load_, answer, driver))
    end(errors, findings=fleet is not None and not _best(answer))

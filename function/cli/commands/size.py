"""`size`: the memory a model needs per GPU, the nodeSelector that asks for it, the pools that have it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from rich.table import Table

from function.cli.common import FINDINGS, FINE, OUTPUT, Command, console, emit
from function.cli.progress import track
from function.cli.sizing.architecture import Architecture, read_config
from function.cli.sizing.fitting import PoolFit, pools_for, selector
from function.cli.sizing.memory import BYTES, GIB, Load, Need, cache_per_token, needs, weights_total
from function.cli.text import escape
from function.cli.worlds.manifests import Manifests, load
from function.cli.worlds.memory import Memory
from function.cli.worlds.parsing import BadInput

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


def _pool_data(each: PoolFit) -> dict[str, Any]:
    told = {
        "cluster": each.cluster,
        "pool": each.pool,
        "nodesPerReplica": each.nodes,
        "replicasNow": each.replicas,
    }
    return told | ({"barred": each.barred} if each.barred else {})


def _data(model: Architecture, load: Load, found: Answer, driver: str) -> dict[str, Any]:
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
                "tensor": each.split.tensor,
                "pipeline": each.split.pipeline,
                "weightsBytesPerGPU": round(each.weights),
                "cacheBytesPerGPU": round(each.cache),
                "memoryPerGPU": f"{each.gibibytes}Gi",
                "nodeSelector": selector(each, driver),
                "pools": [_pool_data(pool) for pool in pools],
            }
            for each, pools in found
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
    if not model.known:
        out.print(
            f"The formulas are not known to describe model_type {escape(model.kind)!r}.", style="yellow"
        )
    if model.context and load.context > model.context:
        out.print(f"The model was made for at most {model.context} tokens.", style="yellow")


def _where(pools: list[PoolFit], *, asked: bool) -> str:
    if not asked:
        return ""
    ready = [f"{each.cluster}/{each.pool} ({each.replicas})" for each in pools if each.replicas]
    full = len(pools) - len(ready)
    return ", ".join([*ready[:4], *([f"{len(ready) - 4} more"] if len(ready) > 4 else [])]) or (  # noqa: PLR2004
        f"{full} {'pool fits' if full == 1 else 'pools fit'}, none has room now" if full else "no pool"
    )


def _show(model: Architecture, load: Load, found: Answer, driver: str, *, asked: bool) -> None:
    out = console()
    _heading(out, model, load)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("TP", "PP", "WEIGHTS", "KV CACHE", "GPU NEEDS"):
        table.add_column(title, justify="right", no_wrap=True)
    if asked:
        table.add_column("POOLS (REPLICAS NOW)", overflow="fold")
    for each, pools in found:
        cells = (str(each.split.tensor), str(each.split.pipeline), _gib(each.weights), _gib(each.cache))
        where = (escape(_where(pools, asked=asked)),) if asked else ()
        style = "" if not asked or any(pool.replicas for pool in pools) else "dim"
        table.add_row(*cells, f"{each.gibibytes}Gi", *where, style=style)
    out.print(table)
    best = _best(found)
    if best is not None:
        each, pools = best
        there = f", on {pools[0].cluster}/{pools[0].pool}" if pools else ""
        out.print(
            f"\nThe smallest that fits: TP {each.split.tensor}, PP {each.split.pipeline}{there}:",
            style="bold",
        )
        told = yaml.safe_dump({"nodeSelector": selector(each, driver)}, sort_keys=False, width=1_000)
        out.print(told, end="", markup=False, soft_wrap=True)


def _best(found: Answer) -> tuple[Need, list[PoolFit]] | None:
    """The split with the fewest GPUs that has room somewhere."""
    return next(((each, pools) for each, pools in found if any(pool.replicas for pool in pools)), None)


@click.command(cls=Command)
@click.argument("config", metavar="CONFIG.JSON")
@click.argument("files", nargs=-1, metavar="[FILE|DIR...]")
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
    fleet: Manifests | None = load(files) if files else None
    reuse, estimates = Memory(), needs(model, load_)
    found = [
        (each, pools_for(fleet, each, driver, reuse) if fleet else [])
        for each in track(estimates, "Asking the scheduler", total=len(estimates))
    ]
    if output == "table":
        _show(model, load_, found, driver, asked=fleet is not None)
    else:
        emit(output, _data(model, load_, found, driver))
    sys.exit(FINE if fleet is None or _best(found) else FINDINGS)

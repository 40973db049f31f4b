"""Memory per GPU: weights, KV cache and what the engine itself takes, for one split of the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.cli.sizing.architecture import Architecture

GIB = 2**30
PLAIN = ("bf16", "fp16", "fp32")
"""Types of weights that an engine can convert; quantised ones stay what they are."""
LOADED_WHOLE = ("fp8",)
"""Types that vLLM v0.11.2 makes of plain weights only after it has loaded all of them: docs/sizing.md."""
BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625, "mxfp4": 0.53125}
"""Bytes of a weight. Four bits come with the scales of their groups: 4.5 bits; of blocks of 32: 4.25."""
ATTENTION_BYTES = {"mxfp4": 2.0}
"""Bytes of a weight of attention and norms, where they are not as the rest."""
EMBEDDING_BYTES = 2.0
"""Embeddings stay at 16 bits when the rest is quantised."""
WORKSPACE = 2 * GIB
"""Activations, communication buffers and graphs of an engine, per GPU: a round figure."""
USABLE = 0.9
"""The share of a GPU's memory an engine takes, as vLLM does by default."""
TENSOR, PIPELINE = (1, 2, 4, 8), (1, 2, 4)
"""The usual splits: within a node by tensors, over nodes by layers."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the model."""

    dtype: str
    cache_dtype: str
    context: int
    """Tokens of one sequence, prompt and answer."""
    batch: int
    """Sequences at a time."""


@dataclass(frozen=True, slots=True)
class Split:
    """So many GPUs of a node share every layer, so many nodes share the layers."""

    tensor: int
    pipeline: int


@dataclass(frozen=True, slots=True)
class Need:
    """Memory of the fullest GPU of a split, in bytes."""

    split: Split
    weights: float
    cache: float
    loading: float = 0.0
    """Weights as they are loaded, where the engine converts them afterwards."""

    @property
    def total(self) -> float:
        """What a GPU must have: everything, over the share that may be used, or what loading takes."""
        return max((self.weights + self.cache + WORKSPACE) / USABLE, self.loading + WORKSPACE)

    @property
    def gibibytes(self) -> int:
        """The same, rounded up: what a selector asks for."""
        return ceil(self.total / GIB)


def weights_total(model: Architecture, dtype: str) -> float:
    """Bytes of all weights."""
    ends = model.embedding * (1 if model.tied else 2)
    layers = sum(_layer(model, dtype, layer) for layer in range(model.layers))
    return layers + model.hidden * BYTES[dtype] + ends * max(BYTES[dtype], EMBEDDING_BYTES)


def _layer(model: Architecture, dtype: str, layer: int) -> float:
    """Bytes of the weights of one layer."""
    mlp = model.mlp(layer)
    return mlp * BYTES[dtype] + (model.layer(layer) - mlp) * ATTENTION_BYTES.get(dtype, BYTES[dtype])


def cache_per_token(model: Architecture, dtype: str) -> float:
    """Bytes of the KV cache of one token that every layer still looks at."""
    return model.cached * model.layers * BYTES[dtype]


def _stages(model: Architecture, pipeline: int) -> list[range]:
    """Layers of every stage, in order; the first stages have one more where they do not divide."""
    base, more = divmod(model.layers, pipeline)
    stages, start = [], 0
    for stage in range(pipeline):
        end = start + base + (stage < more)
        stages.append(range(start, end))
        start = end
    return stages


def _weights(model: Architecture, dtype: str, split: Split) -> float:
    """Bytes of weights on a GPU of the heaviest stage."""
    stages = _stages(model, split.pipeline)
    embedding = model.embedding * max(BYTES[dtype], EMBEDDING_BYTES)
    weights = []
    for number, layers in enumerate(stages):
        ends = (number == 0) + (number == len(stages) - 1 and (not model.tied or len(stages) > 1))
        weights.append(sum(_layer(model, dtype, layer) for layer in layers) + ends * embedding)
    return max(weights) / split.tensor


def _cache(model: Architecture, load: Load, split: Split) -> float:
    """Bytes of KV cache on a GPU of the stage whose layers keep the most tokens.

    Heads are divided among the GPUs of a node until each has one; a latent cache is held whole by each.
    """
    share = 1.0 if model.latent else max(1, ceil(model.kv_heads / split.tensor)) / model.kv_heads
    stages = _stages(model, split.pipeline)
    tokens = max(sum(model.tokens(layer, load.context) for layer in stage) for stage in stages)
    return model.cached * share * tokens * BYTES[load.cache_dtype] * load.batch


def possible(model: Architecture, split: Split) -> bool:
    """Whether the heads divide evenly and there is a layer for every stage.

    Engines divide the key-value heads too, or copy each to as many GPUs; a latent cache has none to divide.
    """
    heads = model.tensor_heads
    divides = heads % split.tensor == 0 or split.tensor % heads == 0
    return model.heads % split.tensor == 0 and divides and split.pipeline <= model.layers


def usual_splits() -> list[Split]:
    """One GPU, several of a node, then several whole nodes."""
    one_node = [Split(tensor, 1) for tensor in TENSOR]
    return one_node + [Split(max(TENSOR), pipeline) for pipeline in PIPELINE[1:]]


def need(model: Architecture, load: Load, split: Split) -> Need:
    """Estimate one split."""
    converted = load.dtype in LOADED_WHOLE and model.dtype in PLAIN
    loading = _weights(model, model.dtype, split) if converted else 0.0
    return Need(split, _weights(model, load.dtype, split), _cache(model, load, split), loading)


def needs(model: Architecture, load: Load) -> list[Need]:
    """Estimate every usual split that is possible."""
    return [need(model, load, split) for split in usual_splits() if possible(model, split)]

"""Memory per GPU: weights, KV cache and what the engine itself takes, for one split of the model.

The shape of a transformer is read from a Hugging Face `config.json` (`read_config`), its weights are counted
layer by layer (`Architecture`), and `need` estimates the fullest GPU of a split: tensors divide each layer
among the GPUs of a node, the pipeline divides the layers among nodes. Sizes are bytes unless a name says
otherwise; GiB are 2**30.

Estimates, all of them. docs/sizing.md has the formulas and a table against published figures. Left out:
activations beyond a round figure, LoRA adapters, speculative decoding, vision towers.

Nothing of the API is imported: a shell completes names of models with this module.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from function.boundary import frozen
from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

# A transformer's shape, read from a Hugging Face `config.json`, and how many weights it has where.

ENCODERS = frozenset({"bert", "roberta", "xlm-roberta"})
"""Model types that read a text at once: an MLP without a gate, learned positions, and no KV cache."""
SUPPORTED_KINDS = ENCODERS | frozenset(
    {
        "deepseek_v2",
        "deepseek_v3",
        "gemma",
        "gemma2",
        "gemma3_text",
        "glm4_moe",
        "gpt_oss",
        "kimi_k2",
        "llama",
        "mistral",
        "mixtral",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
    }
)
"""Model types whose layers these formulas describe.

They are encoders, and those with a gated MLP and grouped or latent attention.
"""


@frozen
class Latent:
    """Multi-head latent attention: keys and values are kept compressed."""

    query_rank: int
    """0: queries are not compressed."""
    rank: int
    content: int
    """Dimensions of a query or key head that carry no position."""
    position: int
    """Dimensions that carry the position; keys share them."""
    value: int


@frozen
class Experts:
    """A mixture of experts."""

    routed: int
    shared: int
    width: int
    """Inner width of one expert."""
    shared_width: int
    first: int
    """So many layers at the start are dense."""
    active: int
    """Experts a token is sent to."""


@frozen
class Architecture:
    """The properties of a model that decide its memory."""

    kind: str
    """model_type."""
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    """Dimensions of a head."""
    width: int
    """Inner width of the dense MLP."""
    vocabulary: int
    tied: bool
    """Input and output embeddings are one matrix."""
    context: int
    """The longest context it was made for; 0 when not told."""
    dtype: str
    latent: Latent | None = None
    experts: Experts | None = None
    windows: tuple[int, ...] = ()
    """Tokens that each layer looks back at, 0 for all of them; empty when every layer looks at all."""
    encoders: tuple[str, ...] = ()
    """Fields of the config that describe encoders of a multimodal model, which are not counted."""

    @property
    def embedding(self) -> int:
        """Weights of one embedding matrix; of an encoder, with those of the positions."""
        return (self.vocabulary + (self.context if self.kind in ENCODERS else 0)) * self.hidden

    @property
    def attention(self) -> int:
        """Weights of one layer's attention."""
        if self.latent is None:
            return self.hidden * self.head * (2 * self.heads + 2 * self.kv_heads)
        latent, key = self.latent, self.latent.content + self.latent.position
        direct = self.hidden * self.heads * key
        compressed = self.hidden * latent.query_rank + latent.query_rank * self.heads * key
        queries = compressed if latent.query_rank else direct
        down = self.hidden * (latent.rank + latent.position)
        up = latent.rank * self.heads * (latent.content + latent.value)
        return queries + down + up + self.heads * latent.value * self.hidden

    def mlp(self, layer: int) -> int:
        """Weights of one layer's MLP, all experts counted."""
        experts = self.experts
        if experts is None or layer < experts.first:
            return (2 if self.kind in ENCODERS else 3) * self.hidden * self.width
        routed = experts.routed * (3 * self.hidden * experts.width + self.hidden)
        return routed + experts.shared * 3 * self.hidden * experts.shared_width

    @property
    def parameters(self) -> int:
        """Weights altogether; each layer has two norms besides."""
        ends = self.embedding * (1 if self.tied else 2) + self.hidden
        rest = self.attention + 2 * self.hidden
        return sum(self.mlp(layer) + rest for layer in range(self.layers)) + ends

    def tokens(self, layer: int, context: int) -> int:
        """Tokens that a layer keeps of a sequence: with a sliding window, no more than that."""
        window = self.windows[layer] if self.windows else 0
        return min(context, window) if window else context

    @property
    def cached(self) -> int:
        """Values in the cache per token and layer, over all heads."""
        if self.kind in ENCODERS:  # It reads a text at once, and keeps nothing of it.
            return 0
        if self.latent is not None:
            return self.latent.rank + self.latent.position
        return 2 * self.kv_heads * self.head

    def cache_per_token(self, dtype: str) -> float:
        """Bytes of the KV cache of one token that every layer still looks at."""
        return self.cached * self.layers * BYTES[dtype]


LARGEST, MOST_LAYERS = 10**12, 10_000
"""Numbers of a config, and its layers, which are gone through one by one, are no larger."""


@frozen
class _Reader:
    """Reads numbers of a config and names the field that is wrong; of other types, a wrong one is unset."""

    plain: dict[str, Any]
    file: str

    def number(self, *names: str, default: int | None = None, most: int = LARGEST) -> int:
        """The first of several names that is there. Raises BadInput."""
        for name in names:
            value = self.plain.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise BadInput(f"{self.file}: {name}: expected a whole number, found {value!r}")
            if value > most:
                raise BadInput(f"{self.file}: {name}: expected at most {most}, found {value}")
            return value
        if default is None:
            raise BadInput(f"{self.file}: {names[0]}: required, but missing")
        return default

    def text(self, name: str) -> str:
        """A text of the config; empty where it is none."""
        value = self.plain.get(name)
        return value if isinstance(value, str) else ""


def _latent(read: _Reader) -> Latent | None:
    """The shape of latent attention; None where keys and values are kept whole."""
    rank = read.number("kv_lora_rank", default=0)
    if not rank:
        return None
    return Latent(
        read.number("q_lora_rank", default=0),
        rank,
        read.number("qk_nope_head_dim"),
        read.number("qk_rope_head_dim"),
        read.number("v_head_dim"),
    )


def _experts(read: _Reader, width: int) -> Experts | None:
    """The experts of a mixture; None for a dense model: a single expert is dense, too."""
    routed = read.number("n_routed_experts", "num_local_experts", "num_experts", default=0)
    if routed <= 1:
        return None
    inner = read.number("moe_intermediate_size", default=width)
    shared = read.number("shared_expert_intermediate_size", default=0)
    return Experts(
        routed,
        read.number("n_shared_experts", default=1 if shared else 0),
        inner,
        shared or inner,
        read.number("first_k_dense_replace", default=0),
        read.number("num_experts_per_tok", default=1),
    )


def _windows(read: _Reader, layers: int) -> tuple[int, ...]:
    """Return each layer's attention window: by `layer_types`, else by the model type's pattern.

    Empty when every layer looks at the whole sequence. A window makes the cache of a long sequence much
    smaller, so a wrong pattern would be a wrong estimate.
    """
    window = read.number("sliding_window", default=0)
    if not window or read.plain.get("use_sliding_window") is False:
        return ()
    kinds = read.plain.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    # The last layer of each group looks at everything; Gemma 2 states no pattern, and has groups of two.
    group = read.number(
        "sliding_window_pattern", default=2 if read.plain.get("model_type") == "gemma2" else 0
    )
    if group:
        return tuple(window if (layer + 1) % group else 0 for layer in range(layers))
    first = read.number("max_window_layers", default=0)
    return tuple(window if layer >= first else 0 for layer in range(layers))


def _dtype(read: _Reader) -> str:
    """The type of the weights: that of the quantization, else that of the tensors, else bf16.

    Raises:
        BadInput: where weights are quantised, and to how many bits is not said: half of them is no estimate.
    """
    stated = read.plain.get("quantization_config")
    quantization: dict[str, Any] = stated if isinstance(stated, dict) else {}
    method = quantization.get("quant_method")
    if not isinstance(method, str):
        name = read.text("torch_dtype") or read.text("dtype")
        return {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}.get(name, "bf16")
    if method == "mxfp4":
        return "mxfp4"
    words = f"{method} {quantization.get('quant_algo')}".lower()
    bits = _bits(quantization)
    if "fp8" in words:
        return "fp8"
    if "fp4" in words or (bits and bits <= 4):  # noqa: PLR2004
        return "int4"
    if bits is None or bits > 8:  # noqa: PLR2004
        where = f"{read.file}: quantization_config.bits"
        raise BadInput(f"{where}: expected 8 or fewer, as {method!r} does not say it, found {bits or 'none'}")
    return "int8"


def _bits(quantization: dict[str, Any]) -> int | None:
    """The bits of a quantised weight, of several groups the most; None where nothing says it.

    GPTQ and AWQ state it, bitsandbytes has a switch for each, compressed-tensors says it of every group.
    """
    groups = quantization.get("config_groups")
    weights = [
        group["weights"]
        for group in (groups.values() if isinstance(groups, dict) else ())
        if isinstance(group, dict) and isinstance(group.get("weights"), dict)
    ]
    switches = {8: "load_in_8bit", 4: "load_in_4bit"}
    stated = (quantization.get("bits"), *(weight.get("num_bits") for weight in weights))
    switched = (bits for bits, switch in switches.items() if quantization.get(switch) is True)
    return max((bits for bits in (*stated, *switched) if type(bits) is int), default=None)


def read_config(plain: object, file: str) -> Architecture:
    """Read a `config.json`. Raises BadInput with the field that is missing or wrong.

    Model types name the same thing differently, so most numbers have several names. A missing one gets the
    default that the libraries give it; without one, there is no estimate.
    """
    if not isinstance(plain, dict):
        raise BadInput(f"{file}: expected an object")
    encoders = tuple(name for name in ("vision_config", "audio_config") if isinstance(plain.get(name), dict))
    inner = plain.get("text_config")
    if isinstance(inner, dict):  # A multimodal model: the language model decides.
        plain = {**plain, **inner}
    read = _Reader(plain, file)
    hidden, heads = read.number("hidden_size", "n_embd"), read.number("num_attention_heads", "n_head")
    if not heads:
        raise BadInput(f"{file}: num_attention_heads: expected at least 1, found 0")
    width = read.number("intermediate_size", "n_inner", default=4 * hidden)
    layers = read.number("num_hidden_layers", "n_layer", most=MOST_LAYERS)
    return Architecture(
        kind=read.text("model_type"),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=read.number("num_key_value_heads", default=heads),
        head=read.number("head_dim", default=hidden // heads),
        width=width,
        vocabulary=read.number("vocab_size"),
        tied=plain.get("tie_word_embeddings") is True,
        context=read.number("max_position_embeddings", default=0),
        dtype=_dtype(read),
        latent=_latent(read),
        experts=_experts(read, width),
        windows=_windows(read, layers),
        encoders=encoders,
    )


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


@frozen
class Load:
    """The load that the model must carry."""

    dtype: str
    cache_dtype: str
    context: int
    """Tokens of one sequence, prompt and answer."""
    batch: int
    """Sequences at a time."""


@frozen
class Split:
    """So many GPUs of a node share every layer, so many nodes share the layers."""

    tensor: int
    pipeline: int


@frozen
class Need:
    """Memory of the fullest GPU of a split, in bytes."""

    split: Split
    weights: float
    cache: float
    loading: float = 0.0
    """Weights as they are loaded, where the engine converts them afterwards."""

    @property
    def gibibytes(self) -> int:
        """The memory that a GPU must have, rounded up, as a selector asks for it.

        That is the sum over the usable share of a GPU, or what loading takes where that is more.
        """
        serving = (self.weights + self.cache + WORKSPACE) / USABLE
        return ceil(max(serving, self.loading + WORKSPACE) / GIB)


def weights_total(model: Architecture, dtype: str) -> float:
    """Bytes of all weights."""
    ends = model.embedding * (1 if model.tied else 2)
    layers = sum(_layer(model, dtype, layer) for layer in range(model.layers))
    return layers + model.hidden * BYTES[dtype] + ends * max(BYTES[dtype], EMBEDDING_BYTES)


def _layer(model: Architecture, dtype: str, layer: int) -> float:
    """Bytes of the weights of one layer."""
    rest = model.attention + 2 * model.hidden  # Two norms.
    return model.mlp(layer) * BYTES[dtype] + rest * ATTENTION_BYTES.get(dtype, BYTES[dtype])


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
    """Bytes of weights on a GPU of the heaviest stage.

    Embeddings stand on the first and on the last stage; where both are one matrix and one stage, it is held
    once.
    """
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
    """Tell whether the heads divide evenly and there is a layer for every stage.

    Engines divide the key-value heads too, or copy each to as many GPUs; a latent cache has none to divide.
    """
    heads = model.heads if model.latent else model.kv_heads
    divides = heads % split.tensor == 0 or split.tensor % heads == 0
    return model.heads % split.tensor == 0 and divides and split.pipeline <= model.layers


def usual_splits(widths: Sequence[int]) -> list[Split]:
    """One GPU, several of a node, several whole nodes of so many GPUs: by GPUs, then by nodes."""
    nodes = {Split(width, pipeline) for width in widths for pipeline in PIPELINE[1:]}
    splits = {*(Split(tensor, 1) for tensor in TENSOR), *nodes}
    return sorted(splits, key=lambda split: (split.tensor * split.pipeline, split.pipeline))


def need(model: Architecture, load: Load, split: Split) -> Need:
    """Estimate one split."""
    converted = load.dtype in LOADED_WHOLE and model.dtype in PLAIN
    loading = _weights(model, model.dtype, split) if converted else 0.0
    return Need(split, _weights(model, load.dtype, split), _cache(model, load, split), loading)


def needs(model: Architecture, load: Load, widths: Sequence[int] = (max(TENSOR),)) -> list[Need]:
    """Estimate every usual split that is possible, on nodes of so many GPUs."""
    return [need(model, load, split) for split in usual_splits(widths) if possible(model, split)]

"""`size` against published figures, and against the scheduler it asks."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from function.catalogue import entry
from function.cli.bad_input import BadInput
from function.cli.sizing import models
from function.cli.sizing.memory import GIB, SUPPORTED_KINDS, Load, Split, need, read_config, weights_total
from hack.sizing_table import PAGE, refreshed
from tests.cli.command import completed, run, write
from tests.schema.admission import refusals
from tests.schema.crds import schema_of
from tests.support import build

ROOT = Path(__file__).parents[2]


def _model(name: str) -> Any:
    return models.known_model(name).architecture


def _config(name: str) -> dict[str, Any]:
    """The bundled configuration of a model."""
    facts: dict[str, Any] = json.loads((ROOT / "function" / "cli" / "sizing" / "models.json").read_text())
    return dict(facts[name]["config"])


BOUNDS = {
    "glm-4.5-air": (0.01, "published without digits behind the point"),
    "kimi-k2": (0.03, "published as one trillion"),
    "qwen3-embedding-0.6b": (0.01, "published with one digit"),
    "qwen3-embedding-4b": (0.01, "published with one digit"),
}
"""Where the estimate may be further from what was published than 0.3 %, and why."""


@pytest.mark.parametrize("name", [name for name, facts in models.table().items() if "config" in facts])
def test_parameters_are_those_published(name: str) -> None:
    bound, reason = BOUNDS.get(name, (0.003, "published to three digits"))
    assert abs(models.known_model(name).error) <= bound, reason


def test_the_shapes_are_known_and_described() -> None:
    assert len([name for name, facts in models.table().items() if "config" in facts]) == 24
    assert all(models.known_model(name).architecture.kind in SUPPORTED_KINDS for name in models.table())


@pytest.mark.parametrize(
    ("name", "gibibytes", "reason"),
    [
        ("gpt-oss-120b", 60.8, "model card: size of the checkpoint; experts have 4.25 bits, the rest 16"),
        ("gpt-oss-20b", 12.8, "model card: likewise"),
    ],
)
def test_mixed_weights_take_what_was_published(name: str, gibibytes: float, reason: str) -> None:
    assert weights_total(_model(name), "mxfp4") / GIB == pytest.approx(gibibytes, rel=0.005), reason


@pytest.mark.parametrize(
    ("name", "kilobytes", "reason"),
    [
        ("llama-3.1-405b", 516.096, "2 x 8 heads x 128 x 126 layers x 2 bytes"),
        ("deepseek-v3", 70.272, "(512 + 64) x 61 layers x 2 bytes: latent attention"),
        ("llama-3.1-8b", 131.072, "2 x 8 heads x 128 x 32 layers x 2 bytes"),
    ],
)
def test_the_cache_of_a_token_is_that_published(name: str, kilobytes: float, reason: str) -> None:
    assert _model(name).cache_per_token("bf16") == kilobytes * 1000, reason


def test_splits_share_what_can_be_shared() -> None:
    model, load = _model("llama-3.1-70b"), Load("bf16", "bf16", 8192, 4)
    one, eight = need(model, load, Split(1, 1)), need(model, load, Split(8, 1))
    assert one.weights == pytest.approx(weights_total(model, "bf16"), rel=1e-6), "but for the last norm"
    assert eight.weights == one.weights / 8
    assert eight.cache == one.cache / 8


def test_a_gpu_holds_at_least_one_head_and_a_whole_latent_cache() -> None:
    load = Load("bf16", "bf16", 8192, 4)
    few = read_config(_config("llama-3.1-8b") | {"num_key_value_heads": 2}, "x")
    assert need(few, load, Split(8, 1)).cache == need(few, load, Split(2, 1)).cache
    latent = _model("deepseek-v3")
    assert need(latent, load, Split(8, 1)).cache == need(latent, load, Split(1, 1)).cache


@pytest.mark.parametrize(
    ("quantization", "dtype", "reason"),
    [
        ({"quant_method": "awq", "bits": 4}, "int4", "AWQ says it"),
        ({"quant_method": "gptq", "bits": 8}, "int8", "GPTQ says it"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", "a switch"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", "the other switch"),
        ({"quant_method": "fp8"}, "fp8", "the method says it"),
        ({"quant_method": "fbgemm_fp8"}, "fp8", "Llama-3.1-405B-Instruct-FP8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", "checkpoints of NVIDIA"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "int4", "four bits and scales"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8}}}},
            "int8",
            "one group of eight bits",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 4}}, "b": {"weights": {"num_bits": 8}}},
            },
            "int8",
            "of two groups the one of more bits: too much memory is no mistake, too little is",
        ),
    ],
)
def test_quantised_weights_have_the_bits_that_their_config_states(
    quantization: dict[str, Any], dtype: str, reason: str
) -> None:
    config = _config("llama-3.1-8b") | {"quantization_config": quantization}
    assert read_config(config, "x").dtype == dtype, reason


def test_quantised_weights_of_unstated_bits_are_refused() -> None:
    """Whatever is guessed, half of the memory or more may be missing."""
    with pytest.raises(BadInput, match="bits: expected 8 or fewer, as 'quark' does not say it, found none"):
        read_config(_config("llama-3.1-8b") | {"quantization_config": {"quant_method": "quark"}}, "x")


def test_an_encoder_that_is_not_counted_is_named(tmp_path: Path) -> None:
    config = {"text_config": _config("llama-3.1-8b"), "vision_config": {"hidden_size": 1280}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ran = run("size", tmp_path)
    assert "not counted: vision_config" in ran.out, "a folder stands for the config.json in it"


def test_the_heaviest_stage_counts() -> None:
    model, load = _model("llama-3.1-8b"), Load("bf16", "bf16", 1, 1)
    halves = need(model, load, Split(1, 2))
    assert halves.weights > weights_total(model, "bf16") / 2 * 0.99
    assert need(model, load, Split(1, 32)).weights > weights_total(model, "bf16") / 32 * 2, (
        "an end is heavier"
    )


def test_the_table_of_the_docs_is_what_the_formulas_give() -> None:
    text = PAGE.read_text()
    assert refreshed(text) == text, "run `python -m hack.sizing_table`"


def _small() -> list[dict[str, Any]]:
    pools = [
        build.pool("h100", 2, [build.gpu(8, memory="80Gi")]),
        build.pool("l4", 1, [build.gpu(2, memory="24Gi")]),
    ]
    return [build.cluster("east", pools)]


def _splits(path: Path, *more: str) -> dict[tuple[int, int], Any]:
    ran = run("size", "llama-3.1-8b", path, "-o", "json", *more)
    return {(item["tensor"], item["pipeline"]): item for item in ran.data["splits"]}


def test_pools_are_those_the_scheduler_would_use(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _small())
    assert _splits(path)[8, 2]["pools"] == [], "the nodes of a gang need network devices"
    assert "no pool of the fleet publishes network devices" in run("size", "llama-3.1-8b", path).err
    splits = _splits(path, "--nic-driver", "")
    assert [pool["pool"] for pool in splits[1, 1]["pools"]] == ["h100"], "28Gi do not fit an L4"
    assert [pool["pool"] for pool in splits[2, 1]["pools"]] == ["l4", "h100"], "the tightest pool comes first"
    assert splits[8, 2]["pools"][0]["replicasNow"] == 1, "two nodes for one replica"
    selector = splits[1, 1]["nodeSelector"]
    parent = build.deployment(
        "chat", 9, [build.engine(members=[{**build.member(), "nodeSelector": selector}])]
    )
    planned = run("plan", write(tmp_path / "p.yaml", [*_small(), parent]))
    now = splits[1, 1]["pools"][0]["replicasNow"]
    assert f"Scheduled {now} of 9" in planned.out


def test_where_devices_are_charged_replicas_share_nodes(tmp_path: Path) -> None:
    pool = build.pool("h100", 3, [build.gpu(8, memory="80Gi")]) | {"accounting": "Device"}
    splits = _splits(write(tmp_path / "f.yaml", [build.cluster("east", [pool])]))
    now = {tensor: splits[tensor, 1]["pools"][0]["replicasNow"] for tensor in (1, 2, 8)}
    assert now == {1: 24, 2: 12, 8: 3}


def test_a_pool_that_takes_nothing_says_why_and_one_that_is_full_that_it_is(tmp_path: Path) -> None:
    pools = [build.pool("h100", 2, [build.gpu(8, memory="80Gi")])]
    tainted = build.cluster("east", pools, taints=[build.taint("burn-in")])
    empty = build.cluster("west", [build.pool("h100", 0, [build.gpu(8, memory="80Gi")])])
    ran = run("size", "llama-3.1-8b", write(tmp_path / "f.yaml", [tainted, empty]))
    assert "full: west/h100; closed: east/h100 (UntoleratedTaint)" in ran.out


def _parted() -> list[dict[str, Any]]:
    """A cluster with whole GPUs, some of which say so, and one with parts of a GPU."""
    whole = [build.pool("l4", 2, [build.gpu(8, memory="24Gi")]), build.pool("a10", 2, [build.gpu(8)])]
    whole[0]["devices"][0]["attributes"]["type"] = {"string": "gpu"}
    part = build.gpu(4, memory="40Gi")
    part["attributes"]["type"] = {"string": "mig"}
    return [build.cluster("east", whole), build.cluster("west", [build.pool("mig", 2, [part])])]


def test_a_model_is_not_split_over_parts_of_a_gpu(tmp_path: Path) -> None:
    """A process of CUDA sees one MIG instance, so there is nothing that tensors could be split over."""
    splits = _splits(write(tmp_path / "f.yaml", _parted()))
    assert "mig" in [pool["pool"] for pool in splits[1, 1]["pools"]]
    assert sorted(pool["pool"] for pool in splits[2, 1]["pools"]) == ["a10", "l4"]


@pytest.mark.parametrize(
    ("tensor", "model", "said", "reason"),
    [
        (2, "acme/unheard-of", True, "whatever the model is"),
        (2, "Qwen/Qwen3-8B", True, "a model that is known, too"),
        (1, "acme/unheard-of", False, "one part is a GPU to the one process"),
    ],
)
@pytest.mark.parametrize("command", ["lint", "plan"])
def test_a_split_that_may_land_on_parts_of_a_gpu_is_warned_of(
    *, command: str, tensor: int, model: str, said: bool, reason: str, tmp_path: Path
) -> None:
    member = build.member("Standalone", [build.request("gpu", tensor, "true")])
    member["template"]["spec"]["containers"][0] |= {
        "image": "vllm/vllm-openai:v0.11.2",
        "args": [f"--model={model}", f"--tensor-parallel-size={tensor}"],
    }
    parent = build.deployment("chat", 1, [build.engine(members=[member])])
    parent["metadata"] = {"name": "chat", "namespace": "ml"}  # No uid: a control plane does not hold it yet.
    ran = run(command, write(tmp_path / "f.yaml", [*_parted(), parent]))
    assert ("may get parts of one (MIG) on west/mig" in ran.out + ran.err) is said, reason


def test_the_tightest_pool_comes_first_however_its_memory_is_named(tmp_path: Path) -> None:
    """`memory` and `gpu.nvidia.com/memory` are one name where the driver is gpu.nvidia.com."""
    large = build.gpu(8) | {"capacity": {"gpu.nvidia.com/memory": {"value": "80Gi"}}}
    pools = [build.pool("large", 2, [large]), build.pool("small", 2, [build.gpu(8, memory="60Gi")])]
    splits = _splits(write(tmp_path / "f.yaml", [build.cluster("east", pools)]))
    assert [pool["pool"] for pool in splits[1, 1]["pools"]] == ["small", "large"]


def test_a_fleet_without_room_is_exit_code_2_and_none_is_fine(tmp_path: Path) -> None:
    tiny = [build.cluster("east", [build.pool("t4", 4, [build.gpu(1, memory="16Gi")])])]
    config = "llama-3.1-70b"
    assert run("size", config, write(tmp_path / "f.yaml", tiny)).code == 2
    ran = run("size", config)
    assert ran.code == 0
    assert "70.55 billion parameters" in ran.out
    assert "Estimates" in ran.out


def test_a_closed_cluster_fits_but_has_no_room_now(tmp_path: Path) -> None:
    objects = _small()
    objects[0]["spec"]["taints"] = [build.taint("maintenance")]
    (first, *_) = _splits(write(tmp_path / "f.yaml", objects))[1, 1]["pools"]
    assert (first["replicasNow"], first["barred"]) == (0, "UntoleratedTaint")


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        ("{", "is not JSON", "broken JSON"),
        ("[]", "expected an object", "a list is no config"),
        ("{}", "hidden_size: required, but missing", "a field that is needed"),
        (
            '{"hidden_size": "big", "num_attention_heads": 8}',
            "hidden_size: expected a whole number, found 'big'",
            "text",
        ),
        (
            '{"hidden_size": 64, "num_attention_heads": 0}',
            "num_attention_heads: expected at least 1",
            "no heads",
        ),
    ],
)
def test_bad_configs_are_named(text: str, message: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    ran = run("size", tmp_path / "config.json")
    assert ran.code == 1, reason
    assert message in ran.err, reason


def test_unknown_kinds_and_long_contexts_are_said(tmp_path: Path) -> None:
    plain = _config("llama-3.1-8b") | {"model_type": "mamba"}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": plain}))
    ran = run("size", tmp_path / "config.json", "--max-model-len", "1000000")
    assert "not known to describe model_type 'mamba'" in ran.out
    assert "at most 131072 tokens" in ran.out


@pytest.mark.parametrize(
    ("more", "tokens", "reason"),
    [
        ({}, [9_000] * 4, "no window"),
        ({"sliding_window": None}, [9_000] * 4, "a window that is none"),
        ({"sliding_window": 4096}, [4096] * 4, "every layer has it"),
        ({"sliding_window": 4096, "use_sliding_window": False}, [9_000] * 4, "it is not used"),
        ({"sliding_window": 10_000}, [9_000] * 4, "it is longer than the sequence"),
        (
            {"sliding_window": 512, "layer_types": ["full_attention", *["sliding_attention"] * 3]},
            [9_000, 512, 512, 512],
            "every layer is listed",
        ),
        (
            {"sliding_window": 512, "sliding_window_pattern": 2},
            [512, 9_000] * 2,
            "the last of a group is full",
        ),
        ({"sliding_window": 512, "model_type": "gemma2"}, [512, 9_000] * 2, "groups of two, by its type"),
        ({"sliding_window": 512, "max_window_layers": 3}, [9_000] * 3 + [512], "the first layers are full"),
    ],
)
def test_a_sliding_window_bounds_what_a_layer_keeps(
    more: dict[str, Any], tokens: list[int], reason: str
) -> None:
    model = read_config(_config("llama-3.1-8b") | {"num_hidden_layers": 4} | more, "x")
    assert [model.tokens(layer, 9_000) for layer in range(4)] == tokens, reason
    one = need(model, Load("bf16", "bf16", 9_000, 1), Split(1, 1))
    assert one.cache == sum(tokens) * 2 * 8 * 128 * 2, reason


def test_the_cache_counts_the_stage_that_keeps_most() -> None:
    config = _config("llama-3.1-8b") | {"num_hidden_layers": 4, "sliding_window": 512}
    model = read_config(config | {"max_window_layers": 2}, "x")
    load = Load("bf16", "bf16", 9_000, 1)
    assert need(model, load, Split(1, 2)).cache == 2 * 9_000 * 2 * 8 * 128 * 2


def test_shared_experts_are_counted() -> None:
    config = _config("glm-4.5-air")
    without = read_config(config | {"n_shared_experts": 0}, "x").parameters
    assert _model("glm-4.5-air").parameters - without == 45 * 3 * 4096 * 1408


def _eighty() -> list[dict[str, Any]]:
    return [build.cluster("east", [build.pool("h100", 4, [build.gpu(8, memory="81559Mi"), build.nic(8)])])]


@pytest.mark.parametrize("name", models.table())
def test_every_manifest_is_taken_by_the_api_and_has_a_place(name: str, tmp_path: Path) -> None:
    ran = run("size", name, "--manifest", "-n", "ml-team")
    (made,) = yaml.safe_load_all(ran.out)
    assert refusals(made, schema_of("ModelDeployment")) == []
    fleet = write(tmp_path / "fleet.yaml", _eighty())
    (tmp_path / "made.yaml").write_text(ran.out)
    planned = run("plan", fleet, tmp_path / "made.yaml")
    assert planned.code == 0, planned.out
    assert run("size", name, fleet, "--manifest", "-o", "json").data["kind"] == "ModelDeployment"


def test_a_gang_splits_layers_over_nodes_that_reach_each_other() -> None:
    (made,) = yaml.safe_load_all(run("size", "llama-3.1-405b", "--manifest").out)
    leader, worker = made["spec"]["template"]["spec"]["engines"][0]["members"]
    assert (leader["role"], worker["role"], worker["worker"]) == ("Leader", "Worker", {"nodes": 1})
    assert leader["nodeSelector"] == worker["nodeSelector"]
    assert [device["name"] for device in leader["nodeSelector"]["devices"]] == ["gpu", "nic"]
    words, others = (
        member["template"]["spec"]["containers"][0]["args"][0].split() for member in (leader, worker)
    )
    assert {"--tensor-parallel-size=8", "--pipeline-parallel-size=2", "--nnodes=2"} <= set(words) & set(
        others
    )
    assert set(words) ^ set(others) == {"--served-model-name=llama-3-1-405b", "--port=8000", "--headless"}


def test_a_manifest_says_what_is_estimated_and_how_near_it_comes() -> None:
    out = run("size", "glm-4.5-air", "--manifest").out
    assert out.startswith(
        "# glm-4.5-air (zai-org/GLM-4.5-Air): 106.85 billion parameters (published 106, +0.8%).\n"
    )
    assert "# Estimated for each GPU: " in out


@pytest.mark.parametrize(
    ("words", "message", "reason"),
    [
        (
            ["llama-3.1-80b"],
            'no model "llama-3.1-80b", and no such file; did you mean llama-3.1-8b or ',
            "a typo",
        ),
        (["acme/chat-7b"], "of any other, give its config.json", "a repository that is not listed"),
        ([], "name a model", "nothing was named"),
        (
            ["llama-3.1-405b", "--manifest", "--gpu-memory", "8"],
            "no usual split fits GPUs of 8Gi",
            "too small",
        ),
        (
            ["llama-3.1-8b", "--manifest", "--dtype", "int4"],
            "does not convert bf16 weights",
            "not on loading",
        ),
        (
            ["kimi-k2", "--manifest", "--dtype", "bf16"],
            "does not convert fp8 weights",
            "they stay what they are",
        ),
        (
            ["llama-3.1-8b", "--context", "32768"],
            "tokens are --max-model-len",
            "what the option used to mean",
        ),
    ],
)
def test_what_cannot_be_answered_is_said(words: list[str], message: str, reason: str) -> None:
    ran = run("size", *words)
    assert (ran.code, message in ran.err) == (1, True), (reason, ran.err)


def test_a_config_of_ones_own_needs_a_repository(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(_config("qwen3-8b")))
    assert "give --repository" in run("size", tmp_path / "config.json", "--manifest").err
    out = run("size", tmp_path / "config.json", "--manifest", "--repository", "me/mine", "--name", "mine").out
    assert "vllm serve me/mine" in out
    assert yaml.safe_load(out)["metadata"]["name"] == "mine"


@pytest.mark.parametrize(
    ("given", "repository", "context", "reason"),
    [
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1", 163_840, "the shape of V3, and other weights"),
        ("DeepSeek-V3", "deepseek-ai/DeepSeek-V3", 163_840, "not the update of March"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3-0324", 163_840, "the update, asked for"),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", 131_072, "not 3.1"),
        ("Qwen/Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B", 40_960, "not Instruct-2507, which takes 262,144"),
        ("qwen3-30b-a3b-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507", 262_144, "the later weights"),
        ("kimi-k2-instruct", "moonshotai/Kimi-K2-Instruct", 131_072, "a repository without its owner"),
        (
            "moonshotai/Kimi-K2-Instruct-0905",
            "moonshotai/Kimi-K2-Instruct-0905",
            262_144,
            "the later weights",
        ),
    ],
)
def test_a_name_means_the_weights_of_one_repository(
    given: str, repository: str, context: int, reason: str
) -> None:
    ran = run("size", given, "--manifest", "--gpu-memory", "190", "-o", "json")
    assert ran.code == 0, ran.err
    (member, *_) = ran.data["spec"]["template"]["spec"]["engines"][0]["members"]
    (words,) = member["template"]["spec"]["containers"][0]["args"]
    assert words.split()[:4] == ["exec", "vllm", "serve", repository], reason
    too_long = run("size", given, "--manifest", "--gpu-memory", "9999", "--max-model-len", context + 1)
    assert too_long.code == 1, reason
    assert f"{repository} was made for at most {context} tokens" in too_long.err, reason


@pytest.mark.parametrize("name", models.table())
def test_every_name_has_weights_of_its_own(name: str) -> None:
    repository = models.known_model(name).repository
    assert models.model(repository).name == models.model(name).name == name
    assert repository in run("size", name).out.splitlines()[0]


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Qwen/Qwen2.5-72B", "Qwen/Qwen2.5-72B-Instruct"),
        ("Qwen2.5-72B", "qwen2.5-72b"),  # Base weights under that name; the list's is that of others.
        ("Llama-3.1-70B", "llama-3.1-70b"),
    ],
)
def test_weights_that_are_not_known_are_refused_with_the_nearest(given: str, nearest: str) -> None:
    ran = run("size", given)
    assert ran.code == 1
    assert f"did you mean {nearest}" in ran.err


def test_a_repository_is_known_by_its_address_too() -> None:
    for given in ("https://huggingface.co/Qwen/Qwen3-8B", "qwen/qwen3-8b", "QWEN3-8B"):
        assert models.model(given).repository == "Qwen/Qwen3-8B"


def test_models_that_answer_with_vectors_and_scores_are_known_by_name(tmp_path: Path) -> None:
    ran = run("size", "bge-m3", "--manifest", "-o", "json")
    (member,) = ran.data["spec"]["template"]["spec"]["engines"][0]["members"]
    (words,) = member["template"]["spec"]["containers"][0]["args"]
    assert words.startswith("exec vllm serve BAAI/bge-m3 --runner=pooling ")
    assert _model("bge-m3").cache_per_token("bf16") == 0, "an encoder keeps nothing"
    (member, *_) = run("size", "Qwen/Qwen3-Reranker-0.6B", "--manifest", "-o", "json").data["spec"][
        "template"
    ]["spec"]["engines"][0]["members"]
    assert "Qwen3ForSequenceClassification" in member["template"]["spec"]["containers"][0]["args"][0]


def test_a_gang_is_as_wide_as_the_nodes_of_the_fleet_that_reach_others(tmp_path: Path) -> None:
    """On nodes of four GPUs, layers are split over nodes of four."""
    gb200 = build.pool("gb200", 4, entry("gcp/a4x-highgpu-4g")["spec"]["devices"])
    path = write(tmp_path / "fleet.yaml", [build.cluster("east", [gb200])])
    assert run("size", "deepseek-v3", path).code == 0
    splits = _splits(path)
    assert [pool["pool"] for pool in splits[4, 2]["pools"]] == ["gb200"]
    assert (8, 2) not in splits
    four = build.pool("l4", 2, entry("aws/g6.12xlarge")["spec"]["devices"])
    alone = _splits(write(tmp_path / "fleet.yaml", [build.cluster("east", [four])]))
    assert [pool["pool"] for pool in alone[4, 1]["pools"]] == ["l4"], "four GPUs of one node"


def test_models_are_completed_and_listed() -> None:
    assert completed(["size"], "qwen3-32") == ["qwen3-32b"]
    assert len(run("size", "--list").out.splitlines()) == len(models.table())


@pytest.mark.parametrize("verb", ["size", "class"])
def test_a_list_is_text_only(verb: str) -> None:
    """A program that asked for JSON would read a table."""
    ran = run(verb, "--list", "-o", "json")
    assert (ran.code, ran.out) == (1, "")
    assert "--list prints text only" in ran.err


def test_a_gang_asks_for_the_network_devices_that_the_fleet_has(tmp_path: Path) -> None:
    """Classes of the catalogue and of a fleet's own say different drivers: size asks for what is there."""

    def fleet(*drivers: str) -> Path:
        nics = ({**build.nic(8), "driver": driver} for driver in drivers)
        pools = [build.pool(f"p{at}", 4, [build.gpu(8, memory="80Gi"), nic]) for at, nic in enumerate(nics)]
        return write(tmp_path / "fleet.yaml", [build.cluster("east", pools)])

    def asked(split: dict[str, Any]) -> str:
        return str(split["nodeSelector"]["devices"][1]["selectors"][0]["cel"])

    catalogue = entry("gcp/a3-ultragpu-8g")["spec"]["devices"]
    pools = [build.pool("h200", 4, catalogue)]
    one = _splits(write(tmp_path / "fleet.yaml", [build.cluster("east", pools)]))[8, 2]
    assert (asked(one), len(one["pools"])) == ('device.driver == "dra.net"', 1)
    single = _splits(fleet("nic.nvidia.com"))[8, 2]
    assert (asked(single), len(single["pools"])) == ('device.driver == "nic.nvidia.com"', 1)
    both = _splits(fleet("nic.nvidia.com", "dra.net"))[8, 2]
    assert (asked(both), len(both["pools"])) == ('device.driver in ["dra.net", "nic.nvidia.com"]', 2)


def test_weights_that_are_converted_after_loading_need_room_to_load() -> None:
    """vLLM v0.11.2 loads plain weights whole before it makes them FP8."""
    published = need(_model("llama-3.1-70b"), Load("bf16", "bf16", 1, 1), Split(4, 1))
    converted = need(_model("llama-3.1-70b"), Load("fp8", "bf16", 1, 1), Split(4, 1))
    assert converted.loading == published.weights
    assert converted.gibibytes * GIB > published.weights
    assert need(_model("deepseek-v3"), Load("fp8", "bf16", 1, 1), Split(8, 1)).loading == 0
    ran = run("size", "llama-3.1-70b", "--dtype", "fp8")
    assert "vLLM loads bf16 weights whole before it converts them" in ran.out
    assert "# Loading takes " in run("size", "llama-3.1-70b", "--dtype", "fp8", "--manifest").out


FLEET = ROOT / "example" / "fleet"
ASKED = [
    (
        ["size", "--ask"],
        ["qwen3-33b", "qwen3-32b", "0", "4096", "", "2", "team", "my-model", "141"],
        "a model that nobody knows and no tokens at all are asked for again, an empty line is the default",
    ),
    (
        ["size", "--ask", "qwen3-32b", "--batch", "4"],
        ["4096", "", "", "", ""],
        "what is given is not asked for",
    ),
    (
        ["size", "--ask", ROOT / "example" / "fleet", "-n", "team"],
        ["qwen3-8b", "", "", "", ""],
        "a fleet has its own memory",
    ),
]


@pytest.mark.parametrize(("words", "answers", "reason"), ASKED)
def test_questions_end_in_the_manifest_of_the_command_that_they_name(
    words: list[Any], answers: list[str], reason: str
) -> None:
    asked = run(*words, stdin="".join(f"{answer}\n" for answer in answers))
    (line,) = (line for line in asked.err.splitlines() if "without questions: " in line)
    command = shlex.split(line.partition("without questions: ")[2])
    assert command[0] == "main", reason
    assert run(*command[1:]).out == asked.out.strip() + "\n", reason
    assert yaml.safe_load(asked.out)["kind"] == "ModelDeployment", reason


def test_without_an_answer_nothing_is_written() -> None:
    ran = run("size", "--ask", stdin="qwen3-32b\n")
    assert (ran.code, ran.out) == (1, "")
    assert "--ask: no answer to 'Tokens of one sequence" in ran.err

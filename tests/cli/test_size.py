"""`size` against published figures, and against the scheduler it asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from function.cli.sizing.architecture import read_config
from function.cli.sizing.memory import Load, Split, cache_per_token, need, weights_total
from hack.sizing_table import CONFIGS, PAGE, refreshed
from tests.cli.command import run, write
from tests.support import build

ROOT = Path(__file__).parents[2]


def _model(name: str) -> Any:
    return read_config(json.loads((CONFIGS / f"{name}.json").read_text()), name)


@pytest.mark.parametrize(
    ("name", "billions", "reason"),
    [
        ("llama-3.1-8b", 8.03, "model card: 8.03 B"),
        ("llama-3.1-70b", 70.6, "model card: 70.6 B"),
        ("llama-3.1-405b", 405.9, "model card: 405.9 B"),
        ("qwen3-8b", 8.19, "model card: 8.2 B, 6.95 B without embeddings"),
        ("mixtral-8x7b", 46.7, "the paper and the card: 46.7 B"),
        ("deepseek-v3", 671.0, "the report: 671 B"),
        ("kimi-k2", 1026.0, "the card: one trillion"),
    ],
)
def test_parameters_are_those_published(name: str, billions: float, reason: str) -> None:
    assert _model(name).parameters / 1e9 == pytest.approx(billions, rel=0.002), reason


@pytest.mark.parametrize(
    ("name", "kilobytes", "reason"),
    [
        ("llama-3.1-405b", 516.096, "2 x 8 heads x 128 x 126 layers x 2 bytes"),
        ("deepseek-v3", 70.272, "(512 + 64) x 61 layers x 2 bytes: latent attention"),
        ("llama-3.1-8b", 131.072, "2 x 8 heads x 128 x 32 layers x 2 bytes"),
    ],
)
def test_the_cache_of_a_token_is_that_published(name: str, kilobytes: float, reason: str) -> None:
    assert cache_per_token(_model(name), "bf16") == kilobytes * 1000, reason


def test_splits_share_what_can_be_shared() -> None:
    model, load = _model("llama-3.1-70b"), Load("bf16", "bf16", 8192, 4)
    one, eight = need(model, load, Split(1, 1)), need(model, load, Split(8, 1))
    assert one.weights == pytest.approx(weights_total(model, "bf16"), rel=1e-6), "but for the last norm"
    assert eight.weights == one.weights / 8
    assert eight.cache == one.cache / 8


def test_a_gpu_holds_at_least_one_head_and_a_whole_latent_cache() -> None:
    load = Load("bf16", "bf16", 8192, 4)
    few = read_config(
        json.loads((CONFIGS / "llama-3.1-8b.json").read_text()) | {"num_key_value_heads": 2}, "x"
    )
    assert need(few, load, Split(8, 1)).cache == need(few, load, Split(2, 1)).cache
    latent = _model("deepseek-v3")
    assert need(latent, load, Split(8, 1)).cache == need(latent, load, Split(1, 1)).cache


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
    ran = run("size", CONFIGS / "llama-3.1-8b.json", path, "-o", "json", *more)
    return {(item["tensor"], item["pipeline"]): item for item in ran.data["splits"]}


def test_pools_are_those_the_scheduler_would_use(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _small())
    splits = _splits(path)
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


def test_the_tightest_pool_comes_first_however_its_memory_is_named(tmp_path: Path) -> None:
    """`memory` and `gpu.nvidia.com/memory` are one name where the driver is gpu.nvidia.com."""
    large = build.gpu(8) | {"capacity": {"gpu.nvidia.com/memory": {"value": "80Gi"}}}
    pools = [build.pool("large", 2, [large]), build.pool("small", 2, [build.gpu(8, memory="60Gi")])]
    splits = _splits(write(tmp_path / "f.yaml", [build.cluster("east", pools)]))
    assert [pool["pool"] for pool in splits[1, 1]["pools"]] == ["small", "large"]


def test_a_fleet_without_room_is_exit_code_2_and_none_is_fine(tmp_path: Path) -> None:
    tiny = [build.cluster("east", [build.pool("t4", 4, [build.gpu(1, memory="16Gi")])])]
    config = CONFIGS / "llama-3.1-70b.json"
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
    plain = json.loads((CONFIGS / "llama-3.1-8b.json").read_text()) | {"model_type": "mamba"}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": plain}))
    ran = run("size", tmp_path / "config.json", "--context", "1000000")
    assert "not known to describe model_type 'mamba'" in ran.out
    assert "at most 131072 tokens" in ran.out

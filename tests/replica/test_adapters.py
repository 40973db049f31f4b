"""What an engine with room for adapters has besides, and the list that its loader follows."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from function.api.adapter import placement_name
from function.replica import adapters
from function.replica.adapters import MAX_BYTES, UPDATING
from tests.replica.build import (
    NAMESPACE,
    REPLICA,
    Scene,
    cluster,
    config,
    engine,
    gang,
    manifests,
    member,
    replica,
    run,
)
from tests.replica.provider import applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

ROOM = {"slots": 4, "maxRank": 32}
LOADER = "registry.k8s.io/gateway-api-inference-extension/lora-syncer:v1.2.1"


LIST = """\
{
  "vLLMLoRAConfig": {
    "name": "my-model-5ab63",
    "port": 8000,
    "ensureExist": {
      "models": [
        {
          "id": "support",
          "source": "acme/support"
        }
      ]
    },
    "ensureNotExist": {
      "models": []
    }
  }
}
"""


def placement(adapter: str, created: str = "2026-01-01T00:00:00Z", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelAdapterPlacement",
        "metadata": {
            "name": placement_name(adapter, REPLICA),
            "namespace": NAMESPACE,
            "creationTimestamp": created,
            "labels": {"modelplane.ai/adapter": adapter, "modelplane.ai/replica": REPLICA},
            **metadata,
        },
        "spec": {"adapter": adapter, "replica": REPLICA, "source": f"acme/{adapter}"},
    }


def scene(*adapters: dict[str, Any], room: dict[str, Any] | None = None, **options: Any) -> Scene:
    made = engine("main", member(**options)) | {"adapters": room or ROOM}
    return Scene(replica(made), more={"adapters": list(adapters)})


def pod(answer: Any, key: str = "model-serving-main") -> dict[str, Any]:
    spec: dict[str, Any] = manifests(answer)[key]["spec"]["template"]["spec"]
    return spec


def lists(answer: Any, file: str = "main.yaml") -> dict[str, Any]:
    content: dict[str, Any] = json.loads(manifests(answer)["adapters"]["data"][file])["vLLMLoRAConfig"]
    return content


@pytest.mark.parametrize("name", ["OTHER", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"])
def test_the_pod_of_a_gang_that_serves_loads_adapters_and_no_other(name: str) -> None:
    """Its switch stands once, whatever else the user sets."""
    made = gang("main", env=[{"name": name, "value": "x"}]) | {"adapters": ROOM}
    workload = manifests(run(Scene(replica(made), more={"adapters": []})))["model-serving-main"]
    leader, worker = (
        workload["spec"]["leaderWorkerTemplate"][part]["spec"]["containers"][0]
        for part in ("leaderTemplate", "workerTemplate")
    )
    switches = [[one["name"] for one in pod["env"]].count(UPDATING) for pod in (leader, worker)]
    assert switches == [1, name == UPDATING]
    assert [("--enable-lora" in pod["args"]) for pod in (leader, worker)] == [True, False]


def test_until_the_adapters_are_delivered_everything_stays() -> None:
    """A list without those that are placed would take them from pods that serve them."""
    before = scene(placement("a"))
    settled = before.but(observed=applied(run(before)))
    answer = run(settled.but(more={}))
    text = "Waiting for the adapters that are placed here; everything running is kept"
    assert answer.conditions["ModelAccepted"] == (False, "WaitingForAdapters", text)
    assert {key: made["spec"] for key, made in answer.desired.items()} == {
        key: made["spec"] for key, made in settled.observed.items()
    }


def test_adapters_that_nobody_asked_for_change_nothing() -> None:
    plain = Scene(replica())
    plain = plain.but(observed=applied(run(plain)))
    assert run(plain.but(more={"adapters": [placement("a")]})).same(run(plain))


def test_a_serving_pod_gets_flags_a_loader_and_the_list_as_a_volume() -> None:
    answer = run(scene(placement("support")))
    spec = pod(answer)
    (container,) = spec["containers"]
    assert container["args"] == ["--model=small", "--enable-lora", "--max-loras=4", "--max-lora-rank=32"]
    assert container["env"] == [{"name": "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "value": "True"}]
    name = f"{REPLICA}-adapters"
    assert spec["volumes"][-1] == {"name": "adapters", "configMap": {"name": name}}
    (loader,) = spec["initContainers"]
    assert loader == {
        "name": "adapter-loader",
        "image": LOADER,
        "restartPolicy": "Always",
        "env": [{"name": "DYNAMIC_LORA_ROLLOUT_CONFIG", "value": "/adapters/main.yaml"}],
        "volumeMounts": [{"name": "adapters", "mountPath": "/adapters", "readOnly": True}],
    }
    assert manifests(answer)["adapters"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"main.yaml": LIST},
    }


@pytest.mark.parametrize(("adapters", "source"), [(512 * 16, 20), (300, 2048)])
def test_a_list_is_bounded_by_what_is_stored_and_the_replica_says_who_waits(
    adapters: int, source: int
) -> None:
    """A ConfigMap holds 1 MiB, and an Object holds it twice, with every quotation mark escaped."""
    engines = [engine(f"e{at}") | {"adapters": {"slots": 512, "overcommit": 16}} for at in range(8)]
    asked = [placement(f"a{at:04}") for at in range(adapters)]
    for entry in asked:
        entry["spec"]["source"] = "\u00e9" * (source // 2) + '"' * (source // 2)
    scene = Scene(replica(*engines), more={"adapters": asked})
    answer = run(scene.but(observed=applied(run(scene))))
    listed = [entry["id"] for entry in lists(answer, "e0.yaml")["ensureExist"]["models"]]
    assert len(json.dumps(manifests(answer)["adapters"])) < MAX_BYTES + 8 * 400
    assert 0 < len(listed) < adapters
    assert listed == [entry["spec"]["adapter"] for entry in asked[: len(listed)]], (
        "the first ones have a turn"
    )
    text = f"{adapters - len(listed)} adapters wait: the list of adapters is full (393216 bytes)"
    assert answer.conditions["ModelAccepted"][2] == text


BOUNDS = [
    ("what fits to the byte is listed, and so is what left", 0, 0, ["long", "newer"], ["left"]),
    ("one byte less, and the last adapter waits", -1, 0, ["long"], ["left"]),
    ("one byte less of all, and what left is not named", 0, -1, ["long", "newer"], []),
]


@pytest.mark.parametrize(("reason", "spare", "spare_of_all", "there", "left"), BOUNDS)
def test_engines_with_room_share_the_bytes_of_their_lists(
    reason: str,
    spare: int,
    spare_of_all: int,
    there: list[str],
    left: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = [*(engine(name) | {"adapters": ROOM} for name in ("one", "two")), engine("without")]
    asked = [
        placement(name * 9, created) for name, created in (("long", "2026-01-01"), ("newer", "2026-01-02"))
    ]
    before = Scene(replica(*engines), more={"adapters": [*asked, placement("left" * 9)]})
    after = before.but(observed=applied(run(before)), more={"adapters": asked})
    # An Object has an entry as JSON in JSON, in a frame of at most 120 bytes.
    size = {
        name: 120 + len(json.dumps(json.dumps([name * 9, f"acme/{name * 9}"])))
        for name in ("long", "newer", "left")
    }
    used = size["long"] + size["newer"]
    monkeypatch.setattr(adapters, "MAX_PRESENT", 2 * used + spare)
    monkeypatch.setattr(adapters, "MAX_BYTES", 2 * (used + size["left"] + spare_of_all))
    answer = run(after)
    content = lists(answer, "one.yaml")
    assert [content[key]["models"] for key in ("ensureExist", "ensureNotExist")] == [
        [{"id": name * 9, "source": f"acme/{name * 9}"} for name in names] for names in (there, left)
    ]
    waits = f"{2 - len(there)} adapter waits: the list of adapters is full (393216 bytes)"
    assert answer.conditions["ModelAccepted"][2] == ("" if len(there) == 2 else waits)


def test_a_full_list_counts_who_waits_behind_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large adapter that is listed keeps its turn before three small ones that were created earlier."""
    large, small = placement("z" * 60, "2026-01-02"), [placement(name, "2026-01-01") for name in "abc"]
    before = scene(large)
    after = scene(*small, large).but(observed=applied(run(before)))
    monkeypatch.setattr(adapters, "MAX_PRESENT", 500)
    answer = run(after)
    assert [model["id"] for model in lists(answer)["ensureExist"]["models"]] == ["a", "z" * 60]
    assert "2 adapters wait" in answer.conditions["ModelAccepted"][2]


def test_all_that_is_said_of_an_accepted_model_fits_into_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a refusal are cut, so that they push out nothing else."""
    asked = scene(placement("a"), metadata={"labels": {"modelplane.ai/x": "y"}})
    seen = applied(run(asked))
    monkeypatch.setattr(adapters, "MAX_PRESENT", 10)
    text = (
        "Reserved keys are left out of pods; pods that run with them have them until their next edit:"
        " modelplane.ai/x (engine main, Standalone); 1 adapter waits: the list of adapters is full"
    )
    said = run(asked.but(observed=seen)).conditions["ModelAccepted"][2]
    assert said == f"{text} (393216 bytes)"
    refused = {"status": "False", "message": f"update failed: {'x' * 400}"}
    seen["model-route"]["status"]["conditions"][0] |= refused
    said = run(asked.but(observed=seen)).conditions["ModelAccepted"][2]
    words = f"update failed: {'x' * 304}…"
    assert said.startswith(f"Not applied: HTTPRoute default/{REPLICA} ({words}); {text[:80]}")


def test_a_full_list_keeps_what_it_has_and_names_nobody_who_waits_as_absent() -> None:
    room = {"slots": 512, "overcommit": 16}
    young = [placement(f"b{at:04}", "2026-01-02T00:00:00Z") for at in range(6_000)]
    before = scene(*young, room=room)
    has = lists(run(before))["ensureExist"]["models"]
    older = placement("a-older", "2026-01-01T00:00:00Z")
    answer = run(scene(older, *young[1:], room=room).but(observed=applied(run(before))))
    assert lists(answer)["ensureExist"]["models"] == [{"id": "a-older", "source": "acme/a-older"}, *has[1:]]
    assert lists(answer)["ensureNotExist"]["models"] == [has[0]]


FLAGS = [
    (
        "what the user says is the user's",
        {"args": ["--enable-lora", "--max-loras", "2"]},
        ["--max-lora-rank=32"],
    ),
    (
        "a shell takes no arguments for its engine",
        {"command": ["/bin/sh", "-c", "vllm serve x"], "args": []},
        [],
    ),
    (
        "those beyond the slots of a batch wait in the memory of the host",
        {"room": {"slots": 4, "overcommit": 2}},
        ["--enable-lora", "--max-loras=4", "--max-lora-rank=16", "--max-cpu-loras=8"],
    ),
    (
        "a command of its own does",
        {"command": ["vllm", "serve", "x"], "args": []},
        ["--enable-lora", "--max-loras=4", "--max-lora-rank=32"],
    ),
]


@pytest.mark.parametrize(("reason", "options", "expected"), FLAGS, ids=[case[0] for case in FLAGS])
def test_flags(reason: str, options: dict[str, Any], expected: list[str]) -> None:
    args = pod(run(scene(**options)))["containers"][0]["args"]
    assert args == [*options.get("args", ["--model=small"]), *expected]


def test_of_a_gang_the_leader_has_the_loader() -> None:
    made = gang() | {"adapters": ROOM}
    answer = run(Scene(replica(made), more={"adapters": []}))
    template = manifests(answer)["model-serving-main"]["spec"]["leaderWorkerTemplate"]
    assert "initContainers" in template["leaderTemplate"]["spec"]
    assert "initContainers" not in template["workerTemplate"]["spec"]


def test_a_decode_engine_is_reached_behind_its_sidecar() -> None:
    phases = [engine(name.lower(), phase=name) | {"adapters": ROOM} for name in ("Prefill", "Decode")]
    answer = run(Scene(replica(*phases, mode="PrefillDecode"), more={"adapters": [placement("a")]}))
    assert (lists(answer, "prefill.yaml")["port"], lists(answer, "decode.yaml")["port"]) == (8000, 8001)


def test_slots_go_to_the_first_that_were_created() -> None:
    late, first = placement("a", "2026-01-02T00:00:00Z"), placement("b")
    leaving = placement("c", "2025-01-01T00:00:00Z", deletionTimestamp="2026-01-03T00:00:00Z")
    answer = run(scene(late, first, leaving, room={"slots": 1}))
    assert [model["id"] for model in lists(answer)["ensureExist"]["models"]] == ["b"]


def test_what_leaves_is_named_until_it_comes_back() -> None:
    asked = scene(placement("a"), placement("b"))
    observed = applied(run(asked))
    gone = asked.but(observed=observed, more={"adapters": [placement("b")]})
    answer = run(gone)
    assert [model["id"] for model in lists(answer)["ensureNotExist"]["models"]] == ["a"]
    assert answer.status["adapters"] == [{"name": "a"}, {"name": "b"}], (
        "the cluster still has the list of before"
    )
    assert lists(run(gone.but(observed=applied(answer)))) == lists(answer), "it is named for a while"
    back = run(asked.but(observed=applied(answer)))
    assert lists(back)["ensureNotExist"]["models"] == []
    assert [model["id"] for model in lists(back)["ensureExist"]["models"]] == ["a", "b"]


def test_one_that_cannot_be_read_keeps_the_weights_that_it_was_listed_with() -> None:
    asked = scene(placement("a"), placement("b"))
    odd = placement("a") | {"spec": 7}
    answer = run(asked.but(observed=applied(run(asked)), more={"adapters": [odd, placement("b")]}))
    assert [model["source"] for model in lists(answer)["ensureExist"]["models"]] == ["acme/a", "acme/b"]


def moved(answer: Answer) -> list[tuple[str, str]]:
    """Return names and weights of the list beside that of the namespace before."""
    key = next(key for key in answer.desired if key.startswith("adapters."))
    models = json.loads(manifests(answer)[key]["data"]["main.yaml"])["vLLMLoRAConfig"]["ensureExist"][
        "models"
    ]
    return [(model["id"], model["source"]) for model in models]


SAME = config(remoteNamespace="Same")


def not_running(observed: dict[str, Any]) -> dict[str, Any]:
    """Return what is observed of a replica without workloads: only such a one moves."""
    return {key: made for key, made in observed.items() if not key.startswith("model-serving")}


def test_it_keeps_them_where_its_replica_moves_to_another_namespace() -> None:
    asked = scene(placement("a"), placement("b"))
    odd = {"adapters": [placement("a") | {"spec": 7}, placement("b")]}
    moving = asked.but(observed=not_running(applied(run(asked))), more=odd, input=SAME)
    answer = run(moving)
    assert moved(answer) == [("a", "acme/a"), ("b", "acme/b")]
    assert moved(run(moving.but(observed=applied(answer)))) == moved(answer)


def test_who_waits_is_counted_by_the_list_that_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a replica moves, the list of before stands beside it, and has others in another order."""
    large, small = placement("z" * 60, "2026-01-02"), [placement(name, "2026-01-01") for name in "abc"]
    before = scene(*small)
    both = applied(run(before.but(observed=not_running(applied(run(before))), input=SAME)))
    key = next(key for key in both if key.startswith("adapters."))
    both[key] = copy.deepcopy(both[key])
    manifest = both[key]["spec"]["forProvider"]["manifest"]
    manifest["data"] = manifests(run(scene(large)))["adapters"]["data"]
    monkeypatch.setattr(adapters, "MAX_PRESENT", 500)
    answer = run(scene(*small, large).but(observed=both, input=SAME))
    assert [name for name, _ in moved(answer)] == ["a", "z" * 60]
    assert "2 adapters wait" in answer.conditions["ModelAccepted"][2]


@pytest.mark.parametrize("labels", [{}, {"modelplane.ai/adapter": "c"}], ids=["no name", "no weights"])
def test_one_that_cannot_be_read_and_was_never_listed_is_loaded_by_nobody(labels: dict[str, str]) -> None:
    """The loader would ask the engine for weights without a name, or for a name without weights."""
    odd = placement("c", labels=labels)
    odd["spec"] = {} if labels else {"source": "acme/c"}
    answer = run(scene(placement("a"), odd))
    assert [model["id"] for model in lists(answer)["ensureExist"]["models"]] == ["a"]


def test_what_is_configured_is_what_the_list_on_the_cluster_says() -> None:
    """Whatever else somebody wrote into it there; while no list is seen, what was said before stays."""
    asked = scene(placement("a"))
    observed = applied(run(asked))
    data = observed["adapters"]["status"]["atProvider"]["manifest"]["data"]
    observed["adapters"]["status"]["atProvider"]["manifest"]["data"] = {"a.txt": "not a list", **data}
    assert run(asked.but(observed=observed)).status["adapters"] == [{"name": "a"}]
    composed = {key: made for key, made in observed.items() if key != "adapters"}
    assert run(asked.but(observed=composed)).conditions["ModelAccepted"] == (True, "Accepted", "")
    unseen = asked.but(observed=applied(run(asked), adapters="nothing"))
    assert "adapters" not in run(unseen).status
    said = unseen.replica | {"status": {"adapters": [{"name": "b"}]}}
    assert run(unseen.but(replica=said)).status["adapters"] == [{"name": "b"}]


def test_a_list_that_no_engine_wants_any_more_stays_until_no_pod_mounts_it() -> None:
    asked = scene(placement("a"))
    observed = applied(run(asked))
    without = Scene(replica(engine()), observed=observed)
    assert "adapters" in run(without).desired
    rolled_out = applied(run(without))
    assert "adapters" not in run(without.but(observed=rolled_out)).desired


def test_kserve_runs_no_engine_with_room() -> None:
    made = replica(engine() | {"adapters": ROOM}, cache="small")
    asked = Scene(made, cluster(stack="KServe"), more={"adapters": []})
    answer = run(asked)
    assert answer.conditions["ModelAccepted"][1] == "StackCannotExpress"
    assert "its pods get no loader of adapters" in answer.conditions["ModelAccepted"][2]


def test_the_gateway_leads_nobody_to_the_api_of_loading() -> None:
    first, guard = manifests(run(scene()))["model-route"]["spec"]["rules"]
    assert first["matches"] == [{"path": {"type": "PathPrefix", "value": f"/{NAMESPACE}/{REPLICA}/"}}]
    assert guard == {
        "matches": [
            {"path": {"type": "PathPrefix", "value": f"/{NAMESPACE}/{REPLICA}/v1/{name}_lora_adapter"}}
            for name in ("load", "unload")
        ]
    }
    (only,) = manifests(run(Scene(replica())))["model-route"]["spec"]["rules"]
    assert only == first

"""A changed claim is a new template, and the old one stays while pods may need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.replica.build import Scene, claim, cluster, engine, gang, manifests, member, replica, run
from tests.replica.provider import applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

FIRST = "resource-claim-main-standalone"


def claiming(count: int, *selectors: str) -> list[Any]:
    return [engine("main", member(claims=[claim("gpu", count, *selectors)]))]


def referred(answer: Answer) -> str:
    """Return the template that the pods of the engine `main` refer to."""
    spec = manifests(answer)["model-serving-main"]["spec"]["template"]["spec"]
    return str(spec["resourceClaims"][0]["resourceClaimTemplateName"])


def generation(answer: Answer) -> str:
    """Return the key of the template that the pods refer to."""
    name = referred(answer)
    return next(key for key, manifest in manifests(answer).items() if manifest["metadata"]["name"] == name)


def test_a_changed_claim_is_a_new_template_and_the_old_one_stays_until_every_copy_runs_with_it() -> None:
    scene = Scene(replica(*claiming(8)))
    before = run(scene)
    edited = scene.edited(engines=claiming(4))
    first = run(edited.but(observed=applied(before)))
    second = generation(first)
    assert second != FIRST
    assert second.startswith(f"{FIRST}-")
    assert manifests(first)[FIRST] == manifests(before)[FIRST]
    assert first.ready == first.desired.keys(), "a replica that serves keeps its endpoint"

    updating = applied(first)
    updating["model-serving-main"]["status"]["atProvider"]["manifest"]["status"]["updatedReplicas"] = 0
    assert FIRST in run(edited.but(observed=updating)).desired

    unseen = applied(first)
    unseen["model-serving-main"]["status"]["atProvider"]["manifest"]["metadata"]["generation"] = 2
    assert FIRST in run(edited.but(observed=unseen)).desired

    behind = applied(first)
    behind["model-serving-main"]["metadata"]["generation"] = 2
    behind["model-serving-main"]["status"]["conditions"][0]["observedGeneration"] = 1
    assert FIRST in run(edited.but(observed=behind)).desired

    stale = applied(first)
    old = stale["model-serving-main"]["status"]["atProvider"]["manifest"]["spec"]["template"]["spec"]
    old["resourceClaims"][0]["resourceClaimTemplateName"] = referred(before)
    assert FIRST in run(edited.but(observed=stale)).desired

    done = run(edited.but(observed=applied(first)))
    assert done.desired.keys() == first.desired.keys() - {FIRST}
    assert generation(done) == second
    last = run(edited.but(observed=applied(done)))
    assert last.desired == done.desired
    assert last.settled


def test_an_edit_taken_back_uses_the_template_that_is_still_there() -> None:
    scene = Scene(replica(*claiming(8)))
    before = run(scene)
    first = run(scene.edited(engines=claiming(4)).but(observed=applied(before)))
    back = run(scene.but(observed=applied(first, "started")))
    assert generation(back) == FIRST
    assert manifests(back)["model-serving-main"] == manifests(before)["model-serving-main"]


def test_an_edit_taken_back_after_the_old_template_left_makes_a_third() -> None:
    scene = Scene(replica(*claiming(8)))
    edited = scene.edited(engines=claiming(4))
    first = run(edited.but(observed=applied(run(scene))))
    done = run(edited.but(observed=applied(first)))
    back = run(scene.but(observed=applied(done)))
    assert generation(back) not in (FIRST, generation(done))


def test_a_new_template_is_named_after_replica_engine_and_role() -> None:
    """All pods of a cluster share a namespace: one of another replica would have other devices."""
    named = []
    for name in ("chat", "code"):
        engines = [gang(part, claims=[claim(count=8)]) for part in ("a", "b")]
        scene = Scene(replica(*engines, name=name))
        edited = scene.edited(engines=[gang(part, claims=[claim(count=4)]) for part in ("a", "b")])
        made = manifests(run(edited.but(observed=applied(run(scene)))))
        named += [one["metadata"]["name"] for key, one in made.items() if key.startswith("resource-claim")]
    assert len(named) == len(set(named)) == 2 * 2 * 2 * 2


def test_a_claim_is_ready_once_it_is_on_the_cluster_itself() -> None:
    """Beside others that are there a new one is not, and its pods wait for it."""
    scene = Scene(replica(engine("main")))
    observed = applied(run(scene))
    answer = run(scene.edited(engines=[engine("main"), engine("more")]).but(observed=observed))
    assert answer.desired.keys() - answer.ready == {"resource-claim-more-standalone", "model-serving-more"}
    assert run(scene.but(observed={FIRST: observed[FIRST]})).ready == {FIRST}


def test_every_part_of_a_claim_is_in_its_template() -> None:
    tolerated = {"key": "health", "operator": "Equal", "value": "poor", "effect": "NoExecute"}
    requests = [
        {**claim("gpu", 8, "true", "false"), "tolerations": [tolerated]},
        {"name": "nic", "deviceClassName": "rdma", "count": 1},
    ]
    constraints = [
        {"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"},
        {"matchAttribute": "a/b"},
    ]
    made = {**member(claims=requests), "deviceConstraints": constraints}
    template = manifests(run(Scene(replica(engine("main", made)))))[FIRST]
    assert template["spec"]["spec"]["devices"] == {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "gpu.nvidia.com",
                    "count": 8,
                    "selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "false"}}],
                    "tolerations": [tolerated],
                },
            },
            {"name": "nic", "exactly": {"deviceClassName": "rdma", "count": 1}},
        ],
        "constraints": constraints,
    }


def test_a_member_that_stops_claiming_keeps_its_template_until_its_pods_are_replaced() -> None:
    scene = Scene(replica(gang("main")))
    before = run(scene)
    leader = member("Leader", claims=[])
    edited = scene.edited(engines=[engine("main", leader, member("Worker", nodes=1))])
    first = run(edited.but(observed=applied(before)))
    assert "resource-claim-main-leader" in first.desired
    group = manifests(first)["model-serving-main"]["spec"]["leaderWorkerTemplate"]
    assert "resourceClaims" not in group["leaderTemplate"]["spec"], "its pods would wait for a template"
    assert "resourceClaims" in group["workerTemplate"]["spec"]
    assert "resource-claim-main-leader" not in run(edited.but(observed=applied(first))).desired


def test_a_toggled_namespace_moves_no_template_under_its_key() -> None:
    """Only a replica that does not run yet goes to another namespace, perhaps with a claim template there."""
    scene = Scene(replica(*claiming(8)), cluster())
    before = run(scene)
    observed = applied(before)
    for key in [key for key in observed if key.startswith("model-serving")]:
        del observed[key]
    after = run(scene.but(input={"remoteNamespace": "Same"}, observed=observed))
    assert manifests(after)[FIRST] == manifests(before)[FIRST]
    assert len([key for key in after.desired if key.startswith(FIRST)]) == 2

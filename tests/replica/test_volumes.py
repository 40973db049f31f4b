"""Volumes, mounts and resources of a template: what pods get of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replica.build import Scene, cluster, config, engine, gang, manifests, member, replica, run

Plain = dict[str, Any]

VOLUMES: list[Plain] = [
    {"name": "templates", "configMap": {"name": "chat", "items": [{"key": "a", "path": "a.jinja"}]}},
    {"name": "token", "secret": {"secretName": "hf", "defaultMode": 256}},
    {"name": "compiled", "emptyDir": {"sizeLimit": "20Gi"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}},
]
MOUNTS: list[Plain] = [
    {"name": "templates", "mountPath": "/templates", "readOnly": True},
    {"name": "token", "mountPath": "/token"},
    {"name": "compiled", "mountPath": "/root/.cache", "subPath": "vllm"},
    {"name": "data", "mountPath": "/data"},
]
SHM = {"name": "dshm", "mountPath": "/dev/shm"}  # noqa: S108 - a mount, not our file


def with_fields(
    made: Plain, volumes: list[Plain] | None = None, mounts: list[Plain] | None = None, **resources: Plain
) -> Plain:
    """Return an engine whose members have volumes, mounts and resources."""
    for one in made["members"]:
        spec = one["template"]["spec"]
        spec["volumes"] = VOLUMES if volumes is None else volumes
        spec["containers"][0]["volumeMounts"] = MOUNTS if mounts is None else mounts
        spec["containers"][0]["resources"] = resources
    return made


def pods(scene: Scene) -> list[Plain]:
    """Return the specs of all pods of an engine called main."""
    made = manifests(run(scene))
    if "model-serving" in made:
        spec = made["model-serving"]["spec"]
        return [spec[field] for field in ("template", "worker") if field in spec]
    spec = made["model-serving-main"]["spec"]
    if "template" in spec:
        return [spec["template"]["spec"]]
    both = spec["leaderWorkerTemplate"]
    return [both["leaderTemplate"]["spec"], both["workerTemplate"]["spec"]]


KSERVE = cluster(stack="KServe")
ASKED: Plain = {"requests": {"cpu": 16.0, "memory": "128Gi"}, "limits": {"memory": "192Gi"}}
SCENES = [
    ("a pod", Scene(replica(with_fields(engine(), **ASKED), cache="w")), 1),
    ("both of a gang", Scene(replica(with_fields(gang(), **ASKED), cache="w")), 2),
    ("a pod of KServe", Scene(replica(with_fields(engine(), **ASKED), cache="w"), cluster=KSERVE), 1),
]


@pytest.mark.parametrize(("reason", "scene", "count"), SCENES, ids=lambda value: str(value)[:20])
def test_pods_get_them_after_what_they_have_anyway(reason: str, scene: Scene, count: int) -> None:
    made = pods(scene)
    assert len(made) == count, reason
    for spec in made:
        [container] = spec["containers"]
        assert spec["volumes"][-4:] == VOLUMES, reason
        assert container["volumeMounts"][0]["mountPath"] == SHM["mountPath"]
        assert container["volumeMounts"][-4:] == MOUNTS, reason
        assert container["resources"] == {
            "claims": [{"name": "devices"}],
            "requests": {"cpu": "16", "memory": "128Gi"},
            "limits": {"memory": "192Gi"},
        }, reason


@pytest.mark.parametrize("on", [cluster(), KSERVE], ids=["Standard", "KServe"])
def test_a_template_that_declares_none_is_as_it_was(on: Plain) -> None:
    plain = Scene(replica(cache="w"), cluster=on)
    assert (
        run(plain).desired
        == run(plain.but(replica=replica(with_fields(engine(), [], []), cache="w"))).desired
    )


def test_a_mirrored_secret_is_mounted_under_its_name_there() -> None:
    scene = Scene(replica(with_fields(engine())), input=config(secrets="Mirror"))
    made = manifests(run(scene))
    [spec] = pods(scene)
    (mounted,) = (volume["secret"] for volume in spec["volumes"] if volume["name"] == "token")
    assert made["secret-hf"]["metadata"]["name"] == mounted["secretName"] != "hf"
    assert mounted["defaultMode"] == 256


EMPTY: Plain = {"name": "a", "emptyDir": {}}
AT: Plain = {"name": "a", "mountPath": "/a"}
REFUSED: list[tuple[str, Plain, str]] = [
    ("files of a node", {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}, "found hostPath"),
    ("a volume of ours", {"volumes": [{"name": "dshm", "emptyDir": {}}]}, "pods have a volume dshm already"),
    ("one of KServe's", {"volumes": [{"name": "kserve-a", "emptyDir": {}}]}, "a volume kserve-a already"),
    ("no source", {"volumes": [{"name": "a"}]}, "found none"),
    ("two sources", {"volumes": [EMPTY | {"secret": {}}]}, "found emptyDir, secret"),
    (
        "the volume of a cache",
        {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "modelcache-b-w"}}]},
        "modelcache-b-w is the volume of a ModelCache: set modelCacheRef",
    ),
    ("a name twice", {"volumes": [EMPTY, EMPTY]}, '"a" is used twice'),
    ("a place twice", {"volumes": [EMPTY], "mounts": [AT, AT]}, '"/a" is used twice'),
    ("no such volume", {"mounts": [AT]}, 'no volume "a"'),
    ("shared memory", {"mounts": [SHM | {"name": "a"}]}, "/dev/shm is mounted already"),  # noqa: S108
    ("written otherwise", {"mounts": [AT | {"mountPath": "//dev/./shm/"}]}, "/dev/shm is mounted already"),  # noqa: S108
    (
        "a place twice, written otherwise",
        {"volumes": [EMPTY], "mounts": [AT, AT | {"mountPath": "/a/"}]},
        "twice",
    ),
    ("in the weights", {"mounts": [AT | {"mountPath": "/mnt/models/x"}]}, "is mounted already"),
    ("no absolute path", {"mounts": [AT | {"mountPath": "a"}]}, "expected an absolute path"),
    ("a device", {"limits": {"nvidia.com/gpu": 1.0}}, "asked for in nodeSelector.devices"),
    ("no quantity", {"requests": {"memory": "much"}}, "memory: expected a quantity"),
    ("digits that no API server reads", {"requests": {"cpu": "\u0663"}}, "cpu: expected a quantity"),
]


@pytest.mark.parametrize(("reason", "fields", "expected"), REFUSED, ids=[reason for reason, _, _ in REFUSED])
def test_what_is_refused_is_named_and_changes_nothing(reason: str, fields: Plain, expected: str) -> None:
    """Where an XRD lets it through: nothing is composed of it, and what runs stays."""
    made = with_fields(engine("main", member()), **{"volumes": [], "mounts": [], **fields})
    answer = run(Scene(replica(made)))
    status, reason_given, message = answer.conditions["ModelAccepted"]
    assert (status, reason_given, answer.desired) == (False, "Malformed", {}), reason
    assert expected in message, reason

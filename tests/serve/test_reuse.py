"""The memory of parsed objects is bounded, and never changes what is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.boundary import PlainDocument
from function.boundary.memory import OVERHEAD, Memory, Session
from function.server.settings import Settings
from function.wire import WireDocument, write
from tests.serve.server import Server, run
from tests.support import build


def document(name: str, version: int = 1, *, padding: int = 0) -> WireDocument:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return WireDocument(
        write.struct({"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": "x" * padding})
    )


def name(read: Any) -> Any:
    return read.plain()["metadata"]["name"]


def version(read: Any) -> Any:
    return read.plain()["metadata"]["resourceVersion"]


def counts(session: Session) -> tuple[int, int]:
    return session.parses, session.reuses


def test_an_unchanged_object_is_parsed_once_and_a_changed_one_again() -> None:
    memory = Memory(1 << 20)
    first, second = Session(memory), Session(memory)
    fleet = [document(f"c{number}") for number in range(100)]
    assert [first.parsed(manifest, version) for manifest in fleet] == ["1"] * 100
    fleet[7] = document("c7", version=2)
    assert [second.parsed(manifest, version) for manifest in fleet] == ["1"] * 7 + ["2"] + ["1"] * 92
    assert (counts(first), counts(second)) == ((100, 0), (1, 99))


def test_two_readers_of_one_object_do_not_share() -> None:
    session = Session(Memory(1 << 20))
    assert [session.parsed(document("a"), parse) for parse in (name, version, name)] == ["a", "1", "a"]
    assert counts(session) == (2, 1)


@pytest.mark.parametrize("read", [PlainDocument({"metadata": {"name": "a"}}), WireDocument(write.struct({}))])
def test_what_has_no_identity_is_parsed_every_time(read: Any) -> None:
    memory = Memory(1 << 20)
    session = Session(memory)
    for _ in range(2):
        session.parsed(read, lambda document: document.plain())
    assert (counts(session), memory.entries) == ((2, 0), 0)


def test_without_a_memory_everything_is_parsed() -> None:
    session = Session(None)
    assert [session.parsed(document("a"), name) for _ in range(2)] == ["a", "a"]
    assert counts(session) == (2, 0)


def test_the_least_recently_used_leave_first() -> None:
    size = len(document("a").content) + OVERHEAD
    memory = Memory(2 * size)
    session = Session(memory)
    for label in ("a", "b", "a", "c", "a", "b"):
        session.parsed(document(label), name)
    assert counts(session) == (4, 2), "b made room for c: a had been used since"
    assert (memory.entries, memory.bytes) == (2, 2 * size)


def test_it_stays_below_its_bound_over_a_churning_fleet() -> None:
    memory = Memory(100_000)
    session = Session(memory)
    for number in range(2_000):
        session.parsed(document(f"c{number % 300}", number, padding=number % 5_000), name)
        assert memory.bytes <= 100_000
    assert memory.entries > 10
    session.parsed(document("huge", padding=200_000), name)
    assert memory.entries > 10, "what does not fit at all pushes nothing out"


def test_an_error_is_passed_on_and_not_remembered() -> None:
    memory = Memory(1 << 20)

    def fails(_: Any) -> None:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            Session(memory).parsed(document("a"), fails)
    assert memory.entries == 0


def test_many_threads_may_share_it() -> None:
    memory = Memory(50_000)

    def work(seed: int) -> bool:
        session = Session(memory)
        names = [f"c{(seed * 7 + number) % 90}" for number in range(2_000)]
        return [session.parsed(document(label), name) for label in names] == names

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert memory.bytes == sum(entry.charge for entry in memory._entries.values()) <= 50_000


def edited(nodes: int) -> bytes:
    """A request of files: their uids and versions are as they were, whatever else was changed in them."""
    message = pb.RunFunctionRequest()
    message.observed.composite.resource.update(build.deployment(replicas=9))
    message.required_resources["all-replicas"].SetInParent()
    cluster = build.cluster("east", [build.pool("h100", nodes)])
    assert cluster["metadata"].keys() >= {"uid", "resourceVersion"}
    message.required_resources["clusters"].items.add().resource.update(cluster)
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("flags", "expected", "reason"),
    [
        ((), [3, 1, 3], "what is there now counts"),
        (("--no-reuse", "--reuse-size", "1"), [3, 1, 3], "no is no"),
        (("--reuse-size", "1"), [3, 3, 3], "asked for: a version is relied on"),
    ],
)
def test_over_plaintext_nothing_is_remembered_unless_asked_for(
    flags: tuple[str, ...], expected: list[int], reason: str
) -> None:
    with Server("--insecure", *flags) as server, server.channel() as channel:
        assert server.started["reuse_size"] == (1 if flags == ("--reuse-size", "1") else 0)
        answers = [run(channel, edited(nodes)) for nodes in (3, 1, 3)]
    placed = [sum(key.startswith("replica-") for key in answer.desired.resources) for answer in answers]
    assert placed == expected, reason


@pytest.mark.parametrize(
    ("settings", "megabytes"),
    [
        (Settings(), 256),
        (Settings(insecure=True), 0),
        (Settings(insecure=True, reuse_size=8), 8),
        (Settings(reuse_size=0), 0),
    ],
)
def test_what_is_remembered_by_default(settings: Settings, megabytes: int) -> None:
    assert settings.reuse_bytes == megabytes * 1024 * 1024

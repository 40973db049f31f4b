"""Whatever fails inside, RunFunction answers, removes nothing, and tells the operator where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import structlog
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function import wire
from function.boundary import Desired, Requirement, Response
from function.fail_static import INTERNAL_ERROR_TEXT
from function.runner import Function
from tests.serve.server import request

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "what-the-error-quotes"


def boom(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(SECRET)


def deep(*_: Any, **__: Any) -> NoReturn:
    deep()
    raise AssertionError


def answering(response: Response) -> Callable[..., Response]:
    return lambda *_, **__: response


def delivered(*names: str, cache: str = "") -> bytes:
    message = pb.RunFunctionRequest.FromString(request())
    if cache:
        template = message.observed.composite.resource["spec"]["template"]
        template["spec"]["modelCacheRef"] = {"name": cache}
    message.observed.resources["replica-a-0"].resource.update({"kind": "ModelReplica", "spec": {"a": 1}})
    for name in names:
        message.required_resources[name].items.add().resource.update({"kind": "Something"})
    return message.SerializeToString()


def ask(run: Any, content: bytes) -> tuple[pb.RunFunctionResponse, list[Any]]:
    with structlog.testing.capture_logs() as lines:
        answer = Function(structlog.get_logger(), run=run).answer(content)
    return pb.RunFunctionResponse.FromString(answer), lines


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (boom, "an exception"),
        (deep, "a stack that is exhausted"),
        (answering(Response((), desired={"a": Desired({"spec": object()})})), "no JSON value"),
        (answering(Response((), desired={"a": Desired({"spec": 10**400})})), "no number of a Struct"),
        (answering(Response((), desired={"a": Desired({"spec": "\ud800"})})), "no text of UTF-8"),
        (answering(None), "no response at all"),
    ],
)
def test_an_error_is_one_fixed_sentence(run: Any, reason: str) -> None:
    response, lines = ask(run, delivered("clusters", "all-replicas"))
    assert [(result.severity, result.message) for result in response.results] == [
        (pb.SEVERITY_FATAL, INTERNAL_ERROR_TEXT)
    ], reason
    assert not response.HasField("requirements")
    (line,) = lines
    assert line["event"] == "failed"
    assert line["frames"][-1]
    assert SECRET not in str(lines) + str(response)


def test_an_error_before_the_requirements_were_delivered_keeps_everything() -> None:
    response, _ = ask(boom, delivered("clusters", cache="weights"))
    assert [result.severity for result in response.results] == [pb.SEVERITY_WARNING]
    assert response.requirements.resources["cache/weights"].match_name == "weights"
    assert response.requirements.resources["cache/weights"].namespace == "ml"
    assert set(response.desired.resources) == {"replica-a-0"}


@pytest.mark.parametrize("coordination", ["None", "GlobalOrder"])
def test_an_error_states_no_more_than_an_answer(coordination: str) -> None:
    message = pb.RunFunctionRequest.FromString(delivered("clusters", "all-replicas", cache="weights"))
    message.input.update({"coordination": coordination})
    content = message.SerializeToString()
    failed, _ = ask(boom, content)
    answered = pb.RunFunctionResponse.FromString(Function(structlog.get_logger()).answer(content))
    stated, needed = (
        {name: selector.SerializeToString() for name, selector in answer.requirements.resources.items()}
        for answer in (failed, answered)
    )
    assert stated.keys() == {"cache/weights"}, "the block delivers the rest; nothing is known of a need"
    assert stated.items() <= needed.items()


def test_an_error_that_is_met_again_while_it_is_answered_is_one_sentence_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("function.dispatch.handler_of", boom)
    response, lines = ask(boom, delivered("clusters"))
    (result,) = response.results
    assert (result.severity, result.message) == (pb.SEVERITY_FATAL, INTERNAL_ERROR_TEXT)
    assert [line["event"] for line in lines] == ["failed", "failed"]
    assert SECRET not in str(lines) + str(response)


@pytest.mark.parametrize("kind", ["", 7, ["ModelReplica"], None])
def test_a_composite_without_a_kind_lets_nothing_go(kind: Any) -> None:
    """Whoever composed it, a deployment did not: its handler would leave it out, and Crossplane delete it."""
    message = pb.RunFunctionRequest.FromString(delivered())
    message.observed.composite.resource.update({"kind": kind})
    message.observed.resources["model-serving-main"].resource.update({"kind": "Object", "spec": {}})
    answer = Function(structlog.get_logger()).answer(message.SerializeToString())
    (result,) = pb.RunFunctionResponse.FromString(answer).results
    assert result.severity == pb.SEVERITY_FATAL, "nothing is applied, nothing deleted"
    assert result.message == "cannot compose a composite whose kind cannot be read"


def test_a_composite_that_cannot_be_read_is_answered_too() -> None:
    response, _ = ask(boom, b"\x12\x06\x0a\x04\x0a\x02\xff\xff")
    assert not response.HasField("requirements"), "nothing is known of what it stands on"
    assert [result.severity for result in response.results] == [pb.SEVERITY_FATAL], "nothing is deleted"


def test_no_request_at_all_is_refused() -> None:
    with pytest.raises(wire.MalformedRequest):
        ask(boom, b"\xff")


def test_the_log_line_has_counts_and_names_only() -> None:
    response = Response(
        (Requirement("clusters", "v1", "C"),),
        desired={"a": Desired({"spec": SECRET})},
        counts={"placed": 2},
        rejections={"ClusterNotReady": 1},
    )
    _, lines = ask(answering(response), request(annotations={"a": SECRET}))
    (line,) = lines
    assert (line["counts"], line["rejections"]) == ({"placed": 2}, {"ClusterNotReady": 1})
    assert SECRET not in str(line)

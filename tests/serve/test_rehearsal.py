"""The made-up request that a server answers before the first real one goes the ways that calls go."""

from __future__ import annotations

import subprocess
import sys

from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.runner import Function
from function.server.serve import Silence, rehearse

IMPORTS = """
import sys
from function.runner import Function
from function.server.serve import Silence, rehearse
from tests.support import build
from tests.support.world import World
world = World(build.deployment(replicas=1), [build.cluster("a", [build.pool("p", 1)])])
content = world.message().SerializeToString()
rehearse(Function(Silence()).answer)
before = set(sys.modules)
Function(Silence()).answer(content)
print(sorted(name for name in set(sys.modules) - before if name.startswith(("function", "lark", "celpy"))))
"""

ORDER = """
import gc
import os
import signal
from grpc.aio import _server
from function.api.model import Model
from function.main import main
order = []
def lacking(model):
    below = model.__subclasses__()
    return [one.__name__ for one in below if not one.__pydantic_complete__] + sum(map(lacking, below), [])
def noted(what, call):
    def run(*given):
        order.append(what)
        return call(*given)
    return run
gc.collect, _server.Server.start = noted("collect", gc.collect), noted("start", _server.Server.start)
class Log:
    def info(self, event, **_):
        if event == "serving":
            print(order, lacking(Model))
            os.kill(os.getpid(), signal.SIGTERM)
    warning = error = info
import function.main
function.main._log = lambda debug: Log()
main(["--insecure", "--address", "127.0.0.1:0", "--grace", "0"])
"""


def rehearsed() -> pb.RunFunctionResponse:
    answers: list[bytes] = []
    rehearse(lambda content: answers.append(Function(Silence()).answer(content)) or answers[-1])
    return pb.RunFunctionResponse.FromString(answers[-1])


def test_the_rehearsal_is_answered_as_a_real_request_would_be() -> None:
    """An internal error would be answered too, and would warm up nothing."""
    response = rehearsed()
    assert not response.results or response.results[0].severity != pb.SEVERITY_FATAL
    reasons = {condition.type: condition.reason for condition in response.conditions}
    assert reasons["ReplicasScheduled"] in {"ReplicasCreated", "PartiallyScheduled"}, reasons
    assert "placement" in response.desired.composite.resource.fields["status"].struct_value.fields
    assert sum(key.startswith("replica-") for key in response.desired.resources) > 1


def test_after_the_rehearsal_a_call_imports_nothing_of_ours() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_what_takes_long_comes_before_the_first_call_can() -> None:
    """A full collection of what was imported takes longer than a call, as building all validators does."""
    ran = subprocess.run([sys.executable, "-c", ORDER], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['collect', 'start'] []"

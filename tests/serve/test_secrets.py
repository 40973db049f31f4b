"""Nothing that was told in confidence appears in any output, even when everything fails."""

from __future__ import annotations

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.fail_static import INTERNAL_ERROR_TEXT
from tests.serve.server import Server, request, run

CANARY = "canary-7f3a9c"


def secretive() -> bytes:
    message = pb.RunFunctionRequest.FromString(request(annotations={"note": CANARY}))
    container = {"name": "engine", "args": [f"--token={CANARY}"], "env": [{"name": "T", "value": CANARY}]}
    member = {"template": {"spec": {"containers": [container]}}}
    engine = {"name": "main", "members": [member], CANARY: CANARY}
    composite = message.observed.composite
    composite.resource["spec"]["template"]["spec"]["engines"] = [engine]
    composite.connection_details["password"] = CANARY.encode()
    message.credentials["token"].credential_data.data["token"] = CANARY.encode()
    message.context["environment"] = CANARY
    message.required_resources["clusters"].SetInParent()
    message.required_resources["all-replicas"].items.add().resource.update({"spec": CANARY})
    return message.SerializeToString()


@pytest.mark.parametrize("mode", ["", "crash"])
def test_no_output_holds_a_secret(mode: str) -> None:
    env = {"HF_TOKEN": CANARY}
    with Server("--insecure", "--debug", mode=mode, env=env) as server, server.channel() as channel:
        response = run(channel, secretive())
        assert run(channel, b"").meta.tag == ""
        assert server.stop() == 0
    output = "".join(server.output)
    assert '"event"' in output
    assert CANARY not in output
    response.ClearField("context")  # Not ours: copied through.
    if mode:
        assert [result.message for result in response.results] == [INTERNAL_ERROR_TEXT]
        assert CANARY not in str(response)
        assert "program.py:" in output, "the operator learns where"
        assert "RuntimeError" in output, "and what"

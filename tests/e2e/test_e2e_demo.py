"""The demo is the first thing a visitor runs."""

from __future__ import annotations

import pytest

from example import demo


@pytest.mark.gate
def test_server_and_command_line_agree_on_every_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    printed = capsys.readouterr().out
    assert "placement is done; waiting for the replicas to be created" in " ".join(printed.split())
    for folder in demo.caller.deployments():  # type: ignore[attr-defined]
        assert f"example/{folder.name} gives the same" in " ".join(printed.split())

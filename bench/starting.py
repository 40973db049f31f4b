"""What starting costs: CPU of small commands and of completions, as ratios to `python -c pass`.

    python -m bench.starting [ROUNDS]

All are started in turn, round after round, so that a busy machine slows each alike; the least of each counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.prefix) / "bin" / "fleet-scheduler")
COMPLETE = "_FLEET_SCHEDULER_COMPLETE"
BASELINE = "python -c pass"
FLEET = "example/three-teams"
TYPED = ("fleet-scheduler wh", "fleet-scheduler whatif fleet.yaml --dr", "fleet-scheduler size qwen")


def cpu(words: list[str], more: dict[str, str] | None = None) -> float:
    """Seconds of CPU that a program takes, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        words,
        env=os.environ | (more or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # Else each of them compiles everything anew.
    cases = {
        BASELINE: ([sys.executable, "-c", "pass"], {}),
        "fleet-scheduler --version": ([PROGRAM, "--version"], {}),
        "fleet-scheduler class --list": ([PROGRAM, "class", "--list"], {}),
    }
    for verb in ("plan", "why team-chat/chat", "lint"):
        cases[f"fleet-scheduler {verb} {FLEET}"] = ([PROGRAM, *verb.split(), FLEET], {})
    for typed in TYPED:
        at = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), COMPLETE: "bash_complete"}
        cases[f"complete: {typed}"] = ([PROGRAM], at)
    least = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, (words, more) in cases.items():
            least[name] = min(least[name], cpu(words, more))
    for name, seconds in least.items():
        print(f"{name:48} {seconds:6.2f} s  {seconds / least[BASELINE]:5.1f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

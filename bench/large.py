"""What commands cost on a large fleet: CPU of each, as ratios to PyYAML reading the same file once.

    python -m bench.large [CLUSTERS] [REPLICAS] [ROUNDS]

The fleet is written as `kubectl get -o yaml` and `-o json` print it: without `managedFields`. All run in
turn, round after round, so that a busy machine slows each alike; the least of each counts. Modules are
compiled before, as pip compiles what it installs.
"""

from __future__ import annotations

import compileall
import json
import os
import sys
import tempfile
from pathlib import Path

import yaml

import function
from bench.fleets import Size, fleet
from bench.starting import PROGRAM, cpu

VERBS = (
    *(
        "lint",
        "plan",
        "why kimi-prod",
        "whatif --replicas ml-team/kimi-prod=9",
        "verify",
        "headroom",
        "advise",
        "map",
    ),
    *("snapshot", "history kimi-prod", "size qwen3-8b", "reconcile --all"),
)
BASELINE = """
import gc, sys, yaml
gc.disable()
yaml.load(open(sys.argv[1], encoding="utf-8"), yaml.CSafeLoader)
"""


class _Plain(yaml.CSafeDumper):
    """No aliases, as kubectl writes none."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as PyYAML has it
        """Write every value out."""
        return True


def main() -> int:
    """Print the table."""
    given = [int(word) for word in sys.argv[1:]]
    clusters, replicas, rounds = (*given, *(1000, 5000, 3)[len(given) :])
    compileall.compile_dir(Path(function.__file__).parent, quiet=1)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    made = fleet(Size(clusters, 2, replicas))
    items = [made.deployment, *made.clusters, *made.replicas]
    for item in items:
        item["metadata"].pop("managedFields", None)
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    with tempfile.TemporaryDirectory() as folder:
        files = {".yaml": yaml.dump(listed, Dumper=_Plain), ".json": json.dumps(listed, indent=4)}
        for suffix, text in files.items():
            Path(folder, f"fleet{suffix}").write_text(text, encoding="utf-8")
        cases = {"PyYAML reads the YAML": [sys.executable, "-c", BASELINE, f"{folder}/fleet.yaml"]}
        for verb in VERBS:
            for suffix in files:
                command = [PROGRAM, *verb.split(), f"{folder}/fleet{suffix}"]
                cases[f"fleet-scheduler {verb} {suffix}"] = command
        least = dict.fromkeys(cases, float("inf"))
        for _ in range(rounds):
            for name, command in cases.items():
                least[name] = min(least[name], cpu(command))
    base = next(iter(least.values()))
    for name, seconds in least.items():
        print(f"{name:52} {seconds:6.2f} s  {seconds / base:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

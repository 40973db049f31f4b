"""What commands cost on a large fleet: CPU of each, as ratios to PyYAML reading the same file once.

    python -m bench.large [CLUSTERS] [REPLICAS]

The fleet is written as `kubectl get -o yaml` and `-o json` print it: without `managedFields`. All run in
turn, so that a busy machine slows each alike.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import yaml

from bench.fleets import Size, fleet
from bench.starting import PROGRAM, cpu

VERBS = ("lint", "plan", "verify", "headroom", "advise", "snapshot")
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
    clusters, replicas = (int(word) for word in (sys.argv[1:] or ("1000", "5000")))
    made = fleet(Size(clusters, 2, replicas))
    items = [made.deployment, *made.clusters, *made.replicas]
    for item in items:
        item["metadata"].pop("managedFields", None)
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    with tempfile.TemporaryDirectory() as folder:
        files = {".yaml": yaml.dump(listed, Dumper=_Plain), ".json": json.dumps(listed, indent=4)}
        for suffix, text in files.items():
            Path(folder, f"fleet{suffix}").write_text(text, encoding="utf-8")
        least = cpu([sys.executable, "-c", BASELINE, f"{folder}/fleet.yaml"])
        print(f"{'PyYAML reads the YAML':32} {least:6.2f} s")
        for verb in VERBS:
            for suffix in files:
                seconds = cpu([PROGRAM, verb, f"{folder}/fleet{suffix}"])
                print(f"{f'fleet-scheduler {verb} {suffix}':32} {seconds:6.2f} s  {seconds / least:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

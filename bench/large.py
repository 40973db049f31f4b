"""What commands cost on a large fleet: CPU of each, as ratios to PyYAML reading the same file once.

    python -m bench.large [CLUSTERS] [REPLICAS] [ROUNDS] [VERB...]

The fleet is written as `kubectl get -o yaml` and `-o json` print it: without `managedFields`. `cluster` and
`drift` get the ResourceSlices of as many nodes, `replay` a recorded call about the fleet, `watch` has it
served by an API server, with a deployment for each stranger, and looks once; `ui` sends its page once. All
run in turn, round after round, so that a busy machine slows each alike; the least of each counts. Modules are
compiled before, as pip compiles what it installs.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import function
from bench.encode import Requests
from bench.fleets import Fleet, Size, fleet
from bench.starting import PROGRAM, cpu
from tests.support import apiserver, slices
from tests.support.recordings import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def deployments(made: Fleet) -> Iterator[dict[str, Any]]:
    """Yield a deployment for each replica that is not the one deployment's."""
    owners = ((item["metadata"]["namespace"], item["metadata"]["labels"]) for item in made.replicas)
    numbers = Counter((namespace, labels["modelplane.ai/deployment"]) for namespace, labels in owners)
    for (namespace, name), number in numbers.items():
        metadata = made.deployment["metadata"] | {"namespace": namespace, "name": name}
        yield made.deployment | {
            "metadata": metadata,
            "spec": made.deployment["spec"] | {"replicas": number},
        }


def seen(made: Fleet, number: int) -> list[dict[str, Any]]:
    """What `kubectl get resourceslices,nodes` prints of the first cluster, were it of so many nodes."""
    pools = made.clusters[0]["status"]["gpuPools"]
    items = []
    for at in range(number):
        node = slices.node(f"n{at}", pools[at % len(pools)]["name"])
        published = slices.resource_slice(f"n{at}", slices.devices(slices.H200, 8))
        items += [node, published | {"metadata": {"name": slices.slice_name(published)}}]
    return items


def page(file: str) -> float:
    """Seconds of CPU of `ui` that serves its page once."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [PROGRAM, "ui", file, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        address = next(word for word in running.stdout.readline().split() if word.startswith("http"))
        host = address.removeprefix("http://").rstrip("/")
        for path in ("/", "/events"):
            connection = HTTPConnection(host)
            connection.request("GET", path)
            connection.getresponse().readline()
            connection.close()
        running.terminate()  # Ctrl-c does not reach what a script starts in the background.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cases_of(made: Fleet, folder: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """Write the fleet into a folder, and yield every command about it."""
    items = [made.deployment, *made.clusters, *made.replicas]
    for item in items:
        item["metadata"].pop("managedFields", None)
    for name, listing in (("fleet", items), ("seen", seen(made, len(made.clusters)))):
        listed = {"apiVersion": "v1", "kind": "List", "items": listing}
        for suffix, text in (
            (".yaml", yaml.dump(listed, Dumper=_Plain)),
            (".json", json.dumps(listed, indent=4)),
        ):
            Path(folder, f"{name}{suffix}").write_text(text, encoding="utf-8")
    recorded(Path(folder, "calls"), Requests(made).next(), max_files=1, max_bytes=1 << 30)
    first = made.clusters[0]["metadata"]["name"]
    yield "PyYAML reads the YAML", partial(cpu, [sys.executable, "-c", BASELINE, f"{folder}/fleet.yaml"])
    for suffix in (".yaml", ".json"):
        file, nodes = f"{folder}/fleet{suffix}", f"{folder}/seen{suffix}"
        for verb in VERBS:
            yield f"{verb} {suffix}", partial(cpu, [PROGRAM, *verb.split(), file])
        yield f"ui {suffix}", partial(page, file)
        yield f"drift {suffix}", partial(cpu, [PROGRAM, "drift", file, nodes, "--cluster", first])
        yield f"cluster {suffix}", partial(cpu, [PROGRAM, "cluster", first, nodes])
    yield "replay", partial(cpu, [PROGRAM, "replay", f"{folder}/calls"])
    watch = [PROGRAM, "watch", "--timeout", "0", "--kubeconfig", f"{folder}/kubeconfig"]
    yield "watch", partial(cpu, watch)


def main() -> int:
    """Print the table."""
    given = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    chosen = [word for word in sys.argv[1:] if not word.isdecimal()]
    clusters, replicas, rounds = (*given, *(1000, 5000, 3)[len(given) :])
    compileall.compile_dir(Path(function.__file__).parent, quiet=1)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    made = fleet(Size(clusters, 2, replicas))
    with (
        tempfile.TemporaryDirectory() as folder,
        apiserver.serving([*made.replicas, *deployments(made)]) as (address, _),
    ):
        apiserver.kubeconfig(Path(folder, "kubeconfig"), address)
        cases = {
            name: measure
            for at, (name, measure) in enumerate(cases_of(made, folder))
            if not (at and chosen) or name.split()[0] in chosen
        }
        least = dict.fromkeys(cases, float("inf"))
        for _ in range(rounds):
            for name, measure in cases.items():
                least[name] = min(least[name], measure())
    base = next(iter(least.values()))
    for name, seconds in least.items():
        print(f"{name:52} {seconds:6.2f} s  {seconds / base:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

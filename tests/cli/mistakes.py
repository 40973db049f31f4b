"""A new user's folder of twelve clusters, and the mistakes that new users make, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REGIONS = ("us-east", "us-west", "eu-west")
CLASS = """\
apiVersion: modelplane.ai/v1alpha1
kind: InferenceClass
metadata:
  name: h100x8
spec:
  devices:
  - name: gpu
    driver: gpu.nvidia.com
    claim: DRA
    deviceClassName: gpu.nvidia.com
    count: 8
    attributes:
      architecture: {string: Hopper}
    capacity:
      memory: {value: 81559Mi}
"""
CLUSTER = """\
apiVersion: modelplane.ai/v1alpha1
kind: InferenceCluster
metadata:
  name: NAME
  labels:
    region: REGION
spec:
  cluster:
    source: Existing
  nodePools:
  - name: h100
    className: h100x8
    nodeCount: 4
"""
DEPLOYMENT = """\
apiVersion: modelplane.ai/v1alpha1
kind: ModelDeployment
metadata:
  name: chat
  namespace: ml
spec:
  replicas: 3
  placement:
    strategy: Spread
  template:
    spec:
      clusterSelector:
        matchLabels:
          region: us-east
      engines:
      - name: main
        members:
        - nodeSelector:
            devices:
            - name: gpu
              count: 8
              selectors:
              - cel: device.attributes["gpu.nvidia.com"].architecture == "Hopper"
          template:
            spec:
              containers:
              - name: engine
                image: docker.io/vllm/vllm-openai:v0.11.2
                args: [--model=mistralai/Mixtral-8x22B-v0.1]
"""


@dataclass(frozen=True)
class Mistake:
    """A part of a file that is written otherwise, and what the first line then says."""

    reason: str
    right: str
    wrong: str
    said: str
    file: str = "chat.yaml"
    warned: bool = False
    """Whether `lint` only warns: it is allowed, and will not work on this fleet."""


MISTAKES = (
    Mistake(
        "a selector without matchLabels selects every cluster",
        "        matchLabels:\n          region: us-east",
        "        region: us-east",
        "spec.template.spec.clusterSelector.region: unknown field; "
        "did you mean matchLabels: {region: us-east}?",
    ),
    Mistake("a misspelt field", "replicas: 3", "replica: 3", "spec.replica: unknown field; did you mean"),
    Mistake("snake case", "className: h100x8", "class_name: h100x8", "did you mean className?", "c01.yaml"),
    Mistake("an enum's case", "strategy: Spread", "strategy: spread", 'found "spread"; did you mean Spread?'),
    Mistake(
        "a value from another API",
        "strategy: Spread",
        "strategy: RoundRobin",
        "expected 'Spread' or 'BinPack', found \"RoundRobin\"",
    ),
    Mistake(
        "another group", "modelplane.ai/v1alpha1", "modelplane.io/y", "did you mean modelplane.ai/v1alpha1?"
    ),
    Mistake("another version", "modelplane.ai/v1alpha1", "modelplane.ai/v1", 'found "modelplane.ai/v1"; did'),
    Mistake("a misspelt kind", "ModelDeployment", "ModelDeploymnet", "did you mean ModelDeployment?"),
    Mistake("no apiVersion", "apiVersion: modelplane.ai/v1alpha1\n", "", "apiVersion: required, but missing"),
    Mistake(
        "upper case in a name", "name: chat", "name: Chat_Bot", 'found "Chat_Bot"; did you mean chat-bot?'
    ),
    Mistake("no name", "  name: chat\n", "", "metadata.name: required, but missing"),
    Mistake(
        "a number as a text", "replicas: 3", 'replicas: "3"', 'expected a whole number, found "3"'
    ),
    Mistake("too many", "replicas: 3", "replicas: 3000", "spec.replicas: must be at most 200, found 3000"),
    Mistake(
        "a map where a list is meant",
        "      - name: main\n        members:",
        "        name: main\n        members:",
        "spec.template.spec.engines: expected a list, found a map",
    ),
    Mistake(
        "a field on the wrong level",
        "spec:\n  replicas: 3",
        "spec:\n  replicas: 3\n  engines: []",
        "spec.engines: unknown field; it belongs to spec.template.spec",
    ),
    Mistake(
        "a label that YAML reads as a boolean",
        "region: us-east",
        "region: true",
        "expected a string, found true",
        "c01.yaml",
    ),
    Mistake(
        "a selector that does not compile",
        "device.attributes[",
        "device.attribute[",
        "1:7: undefined field 'attribute'",
    ),
    Mistake(
        "a class that is not there",
        "className: h100x8",
        "className: h100x4",
        "so nothing new goes to the pool; did you mean h100x8?",
        "c01.yaml",
    ),
    Mistake("a tab", "  replicas: 3", "\treplicas: 3", "line 7: a tab indents it, YAML takes spaces only"),
    Mistake("a key given twice", "  replicas: 3", "  replicas: 3\n  replicas: 4", "is given twice"),
    Mistake("a required field left out", "  replicas: 3\n", "", "spec.replicas: required, but missing"),
    Mistake("labels beside labels", "  labels:\n    region: us-east", "  region: us-east",
            "metadata.region: unknown field; did you mean labels: {region: us-east}?", "c01.yaml"),
    Mistake("a rule over two fields", "replicas: 3", "replicas: 3\n  minReplicas: 5",
            "spec: minReplicas must not be above replicas"),
    Mistake("a container of another name", "name: engine", "name: vllm", "expected 'engine', found \"vllm\""),
    Mistake("no image", "                image: docker.io/vllm/vllm-openai:v0.11.2\n", "",
            "containers[0].image: required, but missing"),
    Mistake("one ampersand in a selector", '== "Hopper"', '== "Hopper" & device.driver == "gpu.nvidia.com"',
            "Syntax error: unexpected '&'; write && for &"),
    Mistake("one equals sign, and a word", '== "Hopper"', '= "Hopper" and device.driver == "gpu.nvidia.com"',
            "write == for =, && for and"),
    Mistake("curly quotes in a selector", '"Hopper"', "\u201cHopper\u201d",
            "write straight quotes for curly ones"),
    Mistake("a field of a ResourceClaim", "              count: 8\n",
            "              count: 8\n              deviceClassName: gpu.nvidia.com\n",
            "deviceClassName: unknown field; leave it out: the InferenceClass has it"),
    Mistake("resources of a pod", "                args:",
            "                resources: {limits: {nvidia.com/gpu: 8}}\n                args:",
            "resources: unknown field; leave it out: devices are asked for in nodeSelector.devices"),
    Mistake("a label that is ours, on a pod", "          template:\n",
            "          template:\n            metadata: {labels: {modelplane.ai/serving: chat}}\n",
            "are reserved, no pod gets them"),
    Mistake("another port", "args: [", "args: [--port=8080, ",
            "listens on 8080, and requests and the probe come to 8000: --port=8000"),
    Mistake("more tensor parallelism than GPUs", "args: [", "args: [--tensor-parallel-size=16, ",
            "the arguments count on 16 GPUs (tensor, pipeline and data parallel), its pod asks for 8"),
    Mistake("no model", "--model=mistralai/Mixtral-8x22B-v0.1", "--max-model-len=8192",
            "names no model, so vLLM serves its default"),
    Mistake("an attribute that nobody publishes", ".architecture", ".productName",
            "no device of the fleet publishes the attribute gpu.nvidia.com/productName", warned=True),
    Mistake("a value that none has", '"Hopper"', '"H100"',
            'satisfies request gpu: architecture is "Hopper", not "H100"', warned=True),
    Mistake("a driver that no device has", 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"',
            'device.driver == "nvidia.com/gpu"', "the nearest is gpu.nvidia.com", warned=True),
    Mistake("the number on the box", 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"',
            'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0',
            "drivers report a little less than the number on the box", warned=True),
    Mistake("a label that no cluster has", "region: us-east", "region: us-est",
            "no cluster has region=us-est; its values are eu-west, us-east, us-west", warned=True),
    Mistake("a model that its GPU does not hold", "--model=mistralai/Mixtral-8x22B-v0.1",
            "--model=meta-llama/Llama-3.3-70B-Instruct", "has about 131 GiB of weights for each GPU",
            warned=True),
)  # fmt: skip


def folder(path: Path, mistake: Mistake | None = None) -> Path:
    """Write a folder with twelve clusters, their class and a deployment; with a mistake, or without one."""
    files = {
        f"c{number:02}.yaml": CLUSTER.replace("NAME", f"c{number:02}").replace(
            "REGION", REGIONS[(number - 1) % len(REGIONS)]
        )
        for number in range(1, 13)
    }
    files |= {"class.yaml": CLASS, "chat.yaml": DEPLOYMENT}
    if mistake is not None:
        assert files[mistake.file].count(mistake.right) >= 1, mistake.reason
        files[mistake.file] = files[mistake.file].replace(mistake.right, mistake.wrong, 1)
    for name, text in files.items():
        (path / name).write_text(text)
    return path

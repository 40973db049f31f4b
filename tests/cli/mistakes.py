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


ARGS = "args: [--model=mistralai/Mixtral-8x22B-v0.1]"
CEL = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
COMPOSITION = """\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: modeldeployments.modelplane.ai
spec:
  compositeTypeRef:
    apiVersion: modelplane.ai/v1alpha1
    kind: ModelDeployment
  mode: Pipeline
  pipeline:
  - step: schedule
    functionRef:
      name: fleet-function-fleet-scheduler
    input:
      apiVersion: fleet-scheduler.fn.modelplane.ai/v1alpha1
      kind: SchedulerConfig
      coordination: GlobalOrder
"""
SERVICE = """\
apiVersion: modelplane.ai/v1alpha1
kind: ModelService
metadata:
  name: chat
  namespace: ml
spec:
  endpoints:
  - selector:
      matchLabels:
        modelplane.ai/deployment: chat
"""
MORE = {"composition.yaml": COMPOSITION, "service.yaml": SERVICE}
"""Files that stand in the folder where the mistake is in one of them."""
ML, PLATFORM, CROSSPLANE = "ML engineer", "platform engineer", "Crossplane expert"
ROLES = (ML, PLATFORM, CROSSPLANE)


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
    of_crossplane: bool = False
    """Whether it is made by those who know another composite or another version of Crossplane."""

    @property
    def role(self) -> str:
        """Who makes it."""
        if self.of_crossplane or self.file in MORE:
            return CROSSPLANE
        return ML if self.file == "chat.yaml" else PLATFORM


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
        "another group", "modelplane.ai/v1alpha1", "modelplane.io/y", "did you mean modelplane.ai/v1alpha1?",
        of_crossplane=True,
    ),
    Mistake("another version", "modelplane.ai/v1alpha1", "modelplane.ai/v1", 'found "modelplane.ai/v1"; did',
            of_crossplane=True),
    Mistake("a misspelt kind", "ModelDeployment", "ModelDeploymnet", "did you mean ModelDeployment?",
            of_crossplane=True),
    Mistake("no apiVersion", "apiVersion: modelplane.ai/v1alpha1\n", "", "apiVersion: required, but missing",
            of_crossplane=True),
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
            "nvidia.com/gpu: unknown field; leave it out: devices are asked for in nodeSelector.devices"),
    Mistake("a label that is ours, on a pod", "          template:\n",
            "          template:\n            metadata: {labels: {modelplane.ai/serving: chat}}\n",
            "are reserved, no pod gets them", of_crossplane=True),
    Mistake("another port", "args: [", "args: [--port=8080, ",
            "listens on 8080, and requests and the probe come to 8000: --port=8000"),
    Mistake("another port, in a variable", "args: [",
            'env: [{name: PORT, value: "8080"}]\n                args: [--port=$(PORT), ',
            "listens on 8080, and requests and the probe come to 8000: --port=8000"),
    Mistake("another port, in a script", "args: [--model=mistralai/Mixtral-8x22B-v0.1]",
            'command: [sh, -c, "exec vllm serve mistralai/Mixtral-8x22B-v0.1 --port 8080"]',
            "listens on 8080, and requests and the probe come to 8000: --port=8000"),
    Mistake("the port that another engine has", "args: [--model=mistralai/Mixtral-8x22B-v0.1]",
            "command: [python3, -m, sglang.launch_server, --model-path=mistralai/Mixtral-8x22B-v0.1]",
            "listens on 30000, and requests and the probe come to 8000: --port=8000"),
    Mistake("an address that only the pod has", "args: [", "args: [--host=127.0.0.1, ",
            "listens on 127.0.0.1, where only its own pod reaches it: --host=0.0.0.0"),
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
    Mistake("a number as a name", "name: chat", "name: 7",
            'metadata.name: expected a string, found 7; did you mean "7", in quotes?'),
    Mistake("fewer than none", "replicas: 3", "replicas: -1", "spec.replicas: must be at least 0, found -1"),
    Mistake("half a replica", "replicas: 3", "replicas: 2.5", "expected a whole number, found 2.5"),
    Mistake("a field without its value", "replicas: 3", "replicas:", "spec.replicas: required, but missing"),
    Mistake("arguments as one text", "args: [--model=mistralai/Mixtral-8x22B-v0.1]",
            "args: --model=mistralai/Mixtral-8x22B-v0.1",
            'args: expected a list, found a string; did you mean ["--model='),
    Mistake("a command as a shell has it", "                args:",
            "                command: vllm serve\n                args:", 'did you mean ["vllm", "serve"]?'),
    Mistake("a number among arguments", "args: [", "args: [--max-model-len, 8192, ",
            'args[1]: expected a string, found 8192; did you mean "8192", in quotes?'),
    Mistake("a number in the environment", "                args:",
            "                env: [{name: OMP_NUM_THREADS, value: 8}]\n                args:",
            'env[0].value: expected a string, found 8; did you mean "8", in quotes?'),
    Mistake("a version as the image", "image: docker.io/vllm/vllm-openai:v0.11.2", "image: 0.11",
            'image: expected a string, found 0.11; did you mean "0.11", in quotes?'),
    Mistake("a namespace with upper case", "namespace: ml", "namespace: ML_Team",
            'found "ML_Team"; did you mean ml-team?'),
    Mistake("no devices", "count: 8", "count: 0", "devices[0].count: must be at least 1, found 0"),
    Mistake("devices as a text", "count: 8", 'count: "8"', 'found "8"; did you mean 8, without quotes?'),
    Mistake("two requests of one name", "            - name: gpu\n",
            "            - name: gpu\n              count: 1\n              selectors: [{cel: 'true'}]\n"
            "            - name: gpu\n",
            'devices[1]: duplicate name "gpu"'),
    Mistake("a role's case", "        - nodeSelector:", "        - role: leader\n          nodeSelector:",
            'found "leader"; did you mean Leader?'),
    Mistake("a selector without its cel", "- cel: device", "- device",
            "selectors[0]: expected a map, found a string; did you mean {cel: ...}?"),
    Mistake("quantities compared as numbers",
            'device.attributes["gpu.nvidia.com"].architecture == "Hopper"',
            'device.capacity["gpu.nvidia.com"].memory >= quantity("80Gi")',
            'compare it with .compareTo(quantity("80Gi")) >= 0'),
    Mistake("a domain without quotes", '["gpu.nvidia.com"]', "[gpu.nvidia.com]",
            'write the domain in quotes: ["gpu.nvidia.com"]'),
    Mistake("a unit that Kubernetes has not", 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"',
            'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80GB")) >= 0',
            '"80GB" is no quantity of Kubernetes; write 80G', warned=True),
    Mistake("no engine", "engines:\n", "engines: []\n      others:\n", "engines: must not be empty"),
    Mistake("no colon", "replicas: 3", "replicas 3", "or that one lacks a colon and a space"),
    Mistake("a quote that is not closed", "image: docker", 'image: "docker',
            "line 28: a quote is opened and not closed"),
    Mistake("a template that was not rendered", "replicas: 3", "replicas: {{ .Values.replicas }}",
            "it looks like a Helm template, which has to be rendered first"),
    Mistake("two objects without a line between", "apiVersion: modelplane.ai/v1alpha1\n",
            "apiVersion: modelplane.ai/v1alpha1\nkind: ModelCache\napiVersion: modelplane.ai/v1alpha1\n",
            "is a line --- missing between two objects?"),
    Mistake("tolerations beside the placement", "strategy: Spread",
            "strategy: Spread\n    tolerations: [{key: maintenance, operator: Exists}]",
            "tolerations: unknown field; it belongs to spec.template.spec"),
    Mistake("a spread without its key", "strategy: Spread",
            "strategy: Spread\n    topologySpread: [{maxSkew: 1}]",
            "topologySpread[0].topologyKey: required, but missing"),
    Mistake("ports of a pod", "                args:",
            "                ports: [{containerPort: 8000}]\n                args:",
            "ports: unknown field; leave it out: requests and the probe come to 8000"),
    Mistake("files of a node", "              containers:",
            "              volumes: [{name: m, hostPath: {path: /m}}]\n              containers:",
            "hostPath: unknown field; leave it out: a node is shared by teams"),
    Mistake("an autoscaler inside", "replicas: 3", "replicas: 3\n  autoscaling: {max: 9}",
            "autoscaling: unknown field; leave it out: a HorizontalPodAutoscaler or KEDA scales"),
    Mistake("nodes as a text", "nodeCount: 4", 'nodeCount: "4"',
            'nodeCount: expected a whole number, found "4"; did you mean 4, without quotes?', "c01.yaml"),
    Mistake("the end of a field's name", "nodeCount: 4", "count: 4",
            "nodePools[0].count: unknown field; did you mean nodeCount?", "c01.yaml"),
    Mistake("a number by what it counts", "nodeCount: 4", "nodes: 4",
            "nodePools[0].nodes: unknown field; did you mean nodeCount?", "c01.yaml"),
    Mistake("a release without quotes", "  nodePools:", "  celVersion: 1.37\n  nodePools:",
            'expected \'1.36\' or \'1.37\', found 1.37; did you mean "1.37", in quotes?', "c01.yaml"),
    Mistake("fewer nodes than none", "nodeCount: 4", "nodeCount: -4",
            "nodeCount: must be at least 0, found -4", "c01.yaml"),
    Mistake("a range the wrong way round", "nodeCount: 4",
            "nodeCount: 4\n    minNodeCount: 5\n    maxNodeCount: 4",
            "spec.nodePools[0]: minNodeCount must not be above maxNodeCount", "c01.yaml"),
    Mistake("an effect that no taint has", "  nodePools:",
            "  taints: [{key: maintenance, effect: NoExec}]\n  nodePools:",
            'found "NoExec"; did you mean NoExecute?', "c01.yaml"),
    Mistake("a taint without effect", "  nodePools:", "  taints: [{key: maintenance}]\n  nodePools:",
            "spec.taints[0].effect: required, but missing", "c01.yaml"),
    Mistake("a label with a space", "region: us-east", "region: US East",
            "must be a label value: at most 63 letters, digits, '-', '_' and '.', found", "c01.yaml"),
    Mistake("a country that YAML reads as a boolean", "region: us-east", "region: no",
            'expected a string, found false; did you mean "false" or "no", in quotes?', "c01.yaml"),
    Mistake("a number as a label", "region: us-east", "zone: 1", 'did you mean "1", in quotes?', "c01.yaml"),
    Mistake("a namespace for a cluster", "  name: c01", "  name: c01\n  namespace: fleet",
            "the kind is cluster-scoped, it has no namespace", "c01.yaml"),
    Mistake("no cluster", "  cluster:\n    source: Existing\n", "", "spec.cluster: required, but missing",
            "c01.yaml"),
    Mistake("devices of a pool", "    nodeCount: 4", "    gpus: 8\n    nodeCount: 4",
            "gpus: unknown field; leave it out: the InferenceClass says how many", "c01.yaml"),
    Mistake("a copy that kept its name", "name: c01", "name: c02",
            "too, with other content: keep one of the two", "c01.yaml"),
    Mistake("a capacity without value", "memory: {value: 81559Mi}", "memory: 81559Mi",
            "memory: expected a map, found a string; did you mean {value: 81559Mi}?", "class.yaml"),
    Mistake("an attribute without its type", "architecture: {string: Hopper}", "architecture: Hopper",
            "did you mean {string: Hopper} or {version: Hopper}?", "class.yaml"),
    Mistake("an attribute of two types", "{string: Hopper}", "{string: Hopper, int: 9}",
            "architecture: must have at most 1 key", "class.yaml"),
    Mistake("a claim's case", "claim: DRA", "claim: dra", 'found "dra"; did you mean DRA?', "class.yaml"),
    Mistake("a device without driver", "    driver: gpu.nvidia.com\n", "", "a device needs a driver",
            "class.yaml"),
    Mistake("a device without DeviceClass", "    deviceClassName: gpu.nvidia.com\n", "",
            "a device that is claimed through DRA needs a deviceClassName", "class.yaml"),
    Mistake("the machinery of Crossplane 1", "  replicas: 3",
            "  compositionRef: {name: other}\n  replicas: 3",
            "spec.compositionRef: unknown field; Crossplane 2 has it in spec.crossplane", of_crossplane=True),
    Mistake("a connection secret", "  replicas: 3",
            "  writeConnectionSecretToRef: {name: chat}\n  replicas: 3",
            "leave it out: composites of Crossplane 2 have no connection secrets", of_crossplane=True),
    Mistake("a field of managed resources", "  replicas: 3", "  deletionPolicy: Orphan\n  replicas: 3",
            "deletionPolicy: unknown field; leave it out: it is a field of managed resources",
            of_crossplane=True),
    Mistake("a pause without quotes", "  namespace: ml",
            "  namespace: ml\n  annotations: {crossplane.io/paused: true}",
            'expected a string, found true; did you mean "true" or "yes", in quotes?', of_crossplane=True),
    Mistake("a name that is no label", "name: chat", f"name: {'a' * 64}", "must have at most 63 characters",
            of_crossplane=True),
    Mistake("a misspelt input", "kind: SchedulerConfig", "kind: SchedulrConfig",
            "did you mean SchedulerConfig?", "composition.yaml"),
    Mistake("another version of an input", "fn.modelplane.ai/v1alpha1", "fn.modelplane.ai/v1beta1",
            "did you mean fleet-scheduler.fn.modelplane.ai/v1alpha1?", "composition.yaml"),
    Mistake("a misspelt setting", "coordination:", "cordination:", "did you mean coordination?",
            "composition.yaml"),
    Mistake("a setting's value", "GlobalOrder", "Global", 'found "Global"; did you mean GlobalOrder?',
            "composition.yaml"),
    Mistake("a switch for a word", "coordination: GlobalOrder", "overcommit: true",
            "overcommit: expected ", "composition.yaml"),
    Mistake("seconds for a map", "coordination: GlobalOrder", "ttl: 60",
            "ttl: expected a map, found a number", "composition.yaml"),
    Mistake("the input of another step", "kind: SchedulerConfig", "kind: WorkloadConfig",
            "kind: expected 'SchedulerConfig', as a step for ModelDeployment takes it", "composition.yaml"),
    Mistake("two settings that exclude each other", "coordination: GlobalOrder",
            "coordination: GlobalOrder\n      capacity: Published",
            "capacity: Published cannot be combined with coordination: GlobalOrder", "composition.yaml"),
    Mistake("a quota whose expression does not compile", "coordination: GlobalOrder",
            "quotas:\n      - {name: a, namespaces: [ml], cel: node.clas == 'a', atMost: {nodes: 1}}",
            "quotas[0].cel: 1:5: undefined field 'clas'", "composition.yaml"),
    Mistake("a service of a deployment that is not there", "modelplane.ai/deployment: chat",
            "modelplane.ai/deployment: caht",
            'no ModelDeployment "caht" in namespace ml in the files; did you mean chat?', "service.yaml",
            warned=True),
    Mistake("a flag and its value as one argument", ARGS, "args: [--model=a/b, --max-model-len 8192]",
            '"--max-model-len 8192" is a flag and its value as one argument: write --max-model-len=8192'),
    Mistake("one dash before a long flag", ARGS, "args: [--model=a/b, -max-model-len=8192]",
            '"-max-model-len=8192" begins with one dash: write --max-model-len=8192'),
    Mistake("a dash from a web page", ARGS, "args: [--model=a/b, \u2013max-model-len=8192]",
            "begins with a long dash: write --max-model-len=8192"),
    Mistake("flags as the command", ARGS, ARGS.replace("args", "command"),
            '"--model=mistralai/Mixtral-8x22B-v0.1" is no program: flags belong into args'),
    Mistake("a shell and its option in one word", ARGS,
            'command: ["sh -c", "vllm serve mistralai/Mixtral-8x22B-v0.1"]',
            '"sh -c" is no program: write ["sh", "-c"]'),
    Mistake("flags for a shell", ARGS, f"command: [sh, -c]\n                {ARGS}",
            "sh -c takes its first argument as the script"),
    Mistake("the program that the image starts", ARGS, "args: [serve, mistralai/Mixtral-8x22B-v0.1]",
            '"serve" repeats what the image starts: leave it out'),
    Mistake("a variable of a shell", ARGS, ARGS.replace("]", ", '--tensor-parallel-size=${TP}']"),
            "no shell expands ${TP} here, Kubernetes takes $(TP)"),
    Mistake("a variable that is not there", ARGS, ARGS.replace("]", ", --tensor-parallel-size=$(TP)]"),
            "there is no variable TP"),
    Mistake("a number in words", ARGS, ARGS.replace("]", ", --tensor-parallel-size=two]"),
            '--tensor-parallel-size takes a whole number of at least 1, found "two"'),
    Mistake("a flag without its value", ARGS, ARGS.replace("]", ", --tensor-parallel-size]"),
            "--tensor-parallel-size takes a whole number of at least 1, found none"),
    Mistake("a flag given twice", ARGS, ARGS.replace("]", ", --port=9000, --port=8000]"),
            "--port is given several times (9000, 8000): the last counts", warned=True),
    Mistake("the claim of another namespace", "            spec:\n              containers:",
            "            spec:\n              volumes:\n              - name: w\n"
            "                persistentVolumeClaim: {claimName: ml/weights}\n              containers:",
            '"ml/weights" is no name of a claim: pods take those of their own namespace'),
    Mistake("a scheme before an image", "docker.io/vllm", "https://docker.io/vllm",
            "is no name of an image; did you mean docker.io/vllm/vllm-openai:v0.11.2?"),
    Mistake("upper case in an image", "vllm/vllm-openai", "vLLM/vllm-openai",
            "is no name of an image; did you mean docker.io/vllm/vllm-openai:v0.11.2?"),
    Mistake("more nodes than the engine has", ARGS, "args: [--model=a/b, --nnodes=2]",
            "counts on 2 nodes, and the engine has 1 pod: --nnodes=1"),
    Mistake("a variable of a gang, alone", ARGS, "args: [--model=a/b, --node-rank=$(MODELPLANE_RANK)]",
            "there is no variable MODELPLANE_RANK; only the pods of a gang have such"),
    Mistake("a pipe for or", CEL, f"{CEL} | {CEL}", "write || for |"),
    Mistake("Python's True", CEL, 'device.attributes["gpu.nvidia.com"].rdma == True', "write true for True"),
    Mistake("a probe", ARGS, f"{ARGS}\n                livenessProbe: {{}}",
            "leave it out: the engine is asked for /health on port 8000"),
    Mistake("the environment as a map", ARGS, f"{ARGS}\n                env: {{HF_HOME: /tmp}}",
            'expected a list, found a map; did you mean - {name: HF_HOME, value: "/tmp"}?'),
    Mistake("a capacity in GB", "81559Mi", "80GB",
            'must be a quantity, such as 80Gi or 500m, found "80GB"; did you mean 80G?', "class.yaml"),
    Mistake("a version of two numbers", "{string: Hopper}", '{version: "9.0"}',
            'a version of three numbers, such as 9.0.0, found "9.0"; did you mean 9.0.0?', "class.yaml"),
    Mistake("a URL as the gateway", "source: Existing",
            'source: Existing\n    existing: {secretRef: {name: a, key: b}, gateway: {address: "http://a"}}',
            "expected a host, with or without a port, and no scheme or path", "c01.yaml", warned=True),
    Mistake("a Secret without its key", "source: Existing",
            "source: Existing\n    existing:\n      secretRef: {name: a}",
            "spec.cluster.existing.secretRef.key: required, but missing", "c01.yaml", warned=True),
    Mistake("a source's case", "source: Existing", "source: existing",
            'found "existing"; did you mean Existing?', "c01.yaml", warned=True),
    Mistake("more nodes than the most", "nodeCount: 4", "nodeCount: 4\n    maxNodeCount: 3",
            "4 nodes are above maxNodeCount 3, and replicas are placed on 3", "c01.yaml", warned=True),
    Mistake("a service's field in the singular", "  endpoints:", "  endpoint:",
            "spec.endpoint: unknown field; did you mean endpoints?", "service.yaml"),
    Mistake("a weight in words", "  - selector:", "  - weight: heavy\n    selector:",
            'weight: expected a whole number, found "heavy"', "service.yaml"),
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
        files |= {name: text for name, text in MORE.items() if name == mistake.file}
        assert files[mistake.file].count(mistake.right) >= 1, mistake.reason
        files[mistake.file] = files[mistake.file].replace(mistake.right, mistake.wrong, 1)
    for name, text in files.items():
        (path / name).write_text(text)
    return path

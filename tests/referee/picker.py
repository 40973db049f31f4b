"""Hold what the replica handler composes for routing against a real endpoint picker behind a real Envoy.

`python -m tests.referee.picker FOLDER`, where FOLDER is what `hack/picker.sh` made. The handler's objects are
applied to the referee's workload cluster, which makes pods. The picker runs with the arguments, the ConfigMap
and the permissions that the cluster then has, and with nothing else. A played engine answers at the address
of every pod. Envoy stands for both gateways: it reads the ModelService's route and the replica's, asks the
picker by `ext_proc`, and spreads over the pods of the pool where the picker does not answer.

Two pickers are asked, since no version that serves both configurations is to be had as a Go module: the
reference picker of the inference extension, and llm-d's, for prefill and decode apart. Their configurations
differ from those of v0.9 of llm-d's router by what `earlier` says, and by nothing else.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import yaml

from function.api.names import SERVING_LABEL
from function.replica import names, picker
from tests.e2e import envoy
from tests.live.__main__ import isolate
from tests.referee import cluster
from tests.referee.kserve import Replica, Unexpected, apply, is_true, kubectl
from tests.replica import build
from tests.routing import build as routes
from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Plain = dict[str, Any]
REFERENCE, DISAGGREGATING = "reference", "disaggregating"
"""The two programs of the folder."""
BEFORE = "inference.networking.x-k8s.io/v1alpha1"
"""What the group of the configuration was called in the versions that can be built."""
PODS = "/api/v1/namespaces/default/pods"
PATIENCE = 150.0
MODEL = "small"
CHUNKS = 5


# ------------------------------------------------------------------------------------------ what is played


def _answering(engine: Engine) -> type[BaseHTTPRequestHandler]:
    """Return what answers for an engine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            engine.looks += 1
            values = {"requests_waiting": engine.waiting, "requests_running": 0}
            lines = [f'vllm:num_{name}{{model_name="{MODEL}"}} {value}' for name, value in values.items()]
            lines.append(f'vllm:kv_cache_usage_perc{{model_name="{MODEL}"}} 0.1')
            lines.append('vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1')
            kinds = [f"# TYPE {line.partition('{')[0]} gauge\n{line}\n" for line in lines]
            self._answer("text/plain; version=0.0.4", "".join(kinds))

        def do_POST(self) -> None:
            asked = json.loads(self._body())
            engine.requests.append((self.path, {key.lower(): one for key, one in self.headers.items()}))
            if not asked.get("stream"):
                choice = {"index": 0, "text": engine.name, "finish_reason": "stop"}
                body = {"id": "1", "object": "text_completion", "model": MODEL, "choices": [choice]}
                self._answer("application/json", json.dumps(body))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for _ in range(CHUNKS):
                text = f"data: {json.dumps({'choices': [{'index': 0, 'text': engine.name}]})}\n\n"
                self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
                self.wfile.flush()
                time.sleep(0.2)
            self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

        def _body(self) -> bytes:
            """Read what was sent: a picker that may change it leaves no length, but chunks."""
            if "content-length" in self.headers:
                return self.rfile.read(int(self.headers["content-length"]))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _answer(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


class Engine:
    """A played engine at the address of a pod: metrics as vLLM has them, completions that name the pod."""

    def __init__(self, pod: Plain) -> None:
        """Take a pod; nothing listens yet."""
        self.name: str = pod["metadata"]["name"]
        self.address: str = pod["status"]["podIP"]
        self.waiting, self.looks = 0, 0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._connections: list[socket.socket] = []
        connections = self._connections

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def get_request(self) -> tuple[socket.socket, Any]:
                accepted, address = super().get_request()
                connections.append(accepted)
                return accepted, address

            def handle_error(self, *_: object) -> None:
                """Say nothing of connections that end."""

        self._server = Server((self.address, 8000), _answering(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """End all connections and refuse others from now on, as where a process has died."""
        self._server.shutdown()
        self._server.server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def pods_of(replica: Replica) -> list[Plain]:
    """Return the pods of a replica's engines once all of them are ready."""
    prefix = replica.scene.replica["metadata"]["name"]

    def ours() -> list[Plain]:
        listed = cluster.call("GET", PODS)["items"]
        return [
            pod
            for pod in listed
            if pod["metadata"]["name"].startswith(f"{prefix}-")
            and pod["spec"]["containers"][0]["name"] == "engine"
        ]

    if not cluster.wait(lambda: bool(ours()) and all(map(_is_ready, ours())), PATIENCE):
        raise Unexpected(f"pods of {prefix} are not ready")
    return ours()


def _is_ready(pod: Plain) -> bool:
    said = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return said.get("Ready") == "True"


# ------------------------------------------------------------------------------------------ the picker


def earlier(config: Plain, program: str) -> Plain:
    """Return a configuration as the versions that can be built have it.

    Its group was called otherwise. In llm-d's the scorer of prefixes has the parameters of what finds them,
    and a feature gate lets others know what it found.
    """
    config["apiVersion"] = BEFORE
    if program == DISAGGREGATING:
        (producer,) = (one for one in config["plugins"] if one["type"] == "approx-prefix-cache-producer")
        config["plugins"].remove(producer)
        (scorer,) = (one for one in config["plugins"] if one["type"] == "prefix-cache-scorer")
        scorer["parameters"] = producer["parameters"]
        config["featureGates"] = ["prepareDataPlugins"]
    return config


class Picker:
    """A picker as a replica's Deployment has it."""

    def __init__(self, program: Path, replica: Replica, home: Path) -> None:
        """Read what the cluster has of it: arguments, ConfigMap, and a token of its ServiceAccount."""
        name = names.joined_name(replica.scene.replica["metadata"]["name"], names.PICKER)
        deployment = cluster.call("GET", f"/apis/apps/v1/namespaces/default/deployments/{name}")
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        (volume,) = pod["volumes"]
        config = cluster.call("GET", f"/api/v1/namespaces/default/configmaps/{volume['configMap']['name']}")
        for file, text in config["data"].items():
            (home / file).write_text(yaml.safe_dump(earlier(yaml.safe_load(text), program.name)))
        words = [word.replace(mount["mountPath"], str(home)) for word in container["args"]]
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/default/serviceaccounts/{pod['serviceAccountName']}/token"
        token = cluster.call("POST", path, asked)["status"]["token"]
        reached = {"server": f"https://127.0.0.1:{cluster.PORT}", "insecure-skip-tls-verify": True}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": reached}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (home / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        self._command = [str(program), *words]
        self._probe, self._asked = container["readinessProbe"]["grpc"], container["startupProbe"]["tcpSocket"]
        self._environment = os.environ | {"KUBECONFIG": str(home / "kubeconfig")}
        self._log = home / "picker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """The end of what it said, without what it says of every look at its health."""
        lines = [line for line in self._log.read_text().splitlines() if '"logger":"health"' not in line]
        return "\n".join(lines)[-3000:]

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, env=self._environment
            )
        if not cluster.wait(self._serves, PATIENCE):
            raise Unexpected(f"the picker is not ready: {self.log}")

    def _serves(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise Unexpected(f"the picker ended with {self._process.returncode}: {self.log}")
        service = self._probe["service"].encode()
        try:
            socket.create_connection(("127.0.0.1", self._asked["port"]), timeout=2).close()
            with grpc.insecure_channel(f"127.0.0.1:{self._probe['port']}") as channel:
                check = channel.unary_unary("/grpc.health.v1.Health/Check")  # type: ignore[call-arg]
                return bool(check(b"\x0a" + bytes([len(service)]) + service, timeout=2) == b"\x08\x01")
        except (OSError, grpc.RpcError):
            return False

    def stop(self) -> None:
        """End it at once, as a node that is lost does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None


# ------------------------------------------------------------------------------------------ the gateways


class Gateways:
    """Envoy as the gateway of the control plane, and as that of the cluster."""

    def __init__(self, replica: Replica, folder: Path) -> None:
        """Translate the routes. `folder`: for configuration files."""
        self.name: str = replica.scene.replica["metadata"]["name"]
        self._route, self._pool = (replica.applied[key] for key in (names.ROUTE, names.POOL))
        self._folder, self._port, self._inside = folder, envoy.free_port(), envoy.free_port()

    @contextmanager
    def running(self) -> Iterator[Gateways]:
        """Run it."""
        self.pods()
        (self._folder / "envoy.json").write_text(json.dumps(self._bootstrap()))
        words = [envoy.binary(), "-c", str(self._folder / "envoy.json"), "--use-dynamic-base-id"]
        with subprocess.Popen([*words, "--concurrency", "1", "-l", "error"]) as process:
            try:
                envoy.until_answering(process, self._port)
                yield self
            finally:
                process.terminate()

    def pods(self) -> None:
        """Look which ready pods the pool selects, as a gateway does all the time."""
        (label,) = self._pool["spec"]["selector"]["matchLabels"].items()
        listed = cluster.call("GET", f"{PODS}?labelSelector={label[0]}%3D{label[1]}")["items"]
        (port,) = self._pool["spec"]["targetPorts"]
        ends = [
            {"endpoint": {"address": envoy.address((pod["status"]["podIP"], port["number"]))}}
            for pod in listed
            if _is_ready(pod)
        ]
        kind = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
        assigned = {"@type": kind, "cluster_name": "pool", "endpoints": [{"lb_endpoints": ends}]}
        aside = self._folder / "pool.new"
        aside.write_text(json.dumps({"version_info": str(time.time()), "resources": [assigned]}))
        aside.rename(self._folder / "pool.json")

    def _bootstrap(self) -> Plain:
        url = f"http://203.0.113.10/{build.NAMESPACE}/{self.name}/v1"
        settings = routes.config(requestTimeout="0s")
        made = routes.settled(AnyRequest(routes.endpoint("a", url, backend="")))
        assert made.composite["status"]["routing"]["backendName"]
        service = routes.request_about(
            routes.service(), [routes.endpoint("a", url, backend="svc-a")], settings=settings
        )
        above = dict(service.answer().desired["httproute"])
        config = envoy.bootstrap(above, {"svc-a": ("127.0.0.1", self._inside)}, self._port)
        (rule,) = self._route["spec"]["rules"]
        (match,), (filtered,) = rule["matches"], rule["filters"]
        assert rule["backendRefs"][0]["name"] == self._pool["metadata"]["name"]
        action = {
            "cluster": "pool",
            "timeout": rule["timeouts"]["request"],
            "prefix_rewrite": filtered["urlRewrite"]["path"]["replacePrefixMatch"],
        }
        listener = envoy.listener("cluster", self._inside, match["path"]["value"], action, (self._asks(),))
        static = config["static_resources"]
        static["listeners"].append(listener)
        static["clusters"] += [self._picker_cluster(), self._pool_cluster()]
        return {**config, "node": {"id": "gateway", "cluster": "gateway"}}

    def _asks(self) -> Plain:
        """Return the filter that asks the picker, as gateways configure it for an InferencePool."""
        modes = {
            f"{kind}_{part}_mode": "SEND"
            for kind in ("request", "response")
            for part in ("header", "trailer")
        }
        bodies = {f"{kind}_body_mode": "FULL_DUPLEX_STREAMED" for kind in ("request", "response")}
        typed = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
        config = {
            "@type": typed,
            "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}},
            "failure_mode_allow": self._pool["spec"]["endpointPickerRef"]["failureMode"] == "FailOpen",
            "processing_mode": modes | bodies,
            "message_timeout": "20s",
        }
        return {"name": "envoy.filters.http.ext_proc", "typed_config": config}

    def _picker_cluster(self) -> Plain:
        """Return how the picker is reached. It serves with a certificate of its own making."""
        port = self._pool["spec"]["endpointPickerRef"]["port"]["number"]
        typed = "type.googleapis.com/envoy.extensions"
        tls = {"@type": f"{typed}.transport_sockets.tls.v3.UpstreamTlsContext"}
        tls |= {"common_tls_context": {"alpn_protocols": ["h2"]}}
        options = {"@type": f"{typed}.upstreams.http.v3.HttpProtocolOptions"}
        options |= {"explicit_http_config": {"http2_protocol_options": {}}}
        return {
            **envoy.cluster("picker", ("127.0.0.1", port)),
            "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
            "typed_extension_protocol_options": {
                f"{typed[len('type.googleapis.com/') :]}.upstreams.http.v3.HttpProtocolOptions": options
            },
        }

    def _pool_cluster(self) -> Plain:
        typed = "type.googleapis.com/envoy.extensions.load_balancing_policies"

        def policy(name: str, **fields: Any) -> Plain:
            config = {"@type": f"{typed}.{name}.v3.{name.title().replace('_', '')}", **fields}
            return {
                "typed_extension_config": {
                    "name": f"envoy.load_balancing_policies.{name}",
                    "typed_config": config,
                }
            }

        chosen = policy(
            "override_host",
            override_host_sources=[{"header": "x-gateway-destination-endpoint"}],
            fallback_policy={"policies": [policy("round_robin")]},
        )
        source = {"path_config_source": {"path": str(self._folder / "pool.json")}}
        return {
            "name": "pool",
            "type": "EDS",
            "connect_timeout": "2s",
            "eds_cluster_config": {"eds_config": source},
            "load_balancing_policy": {"policies": [chosen]},
        }

    def post(self, prompt: str, *, stream: bool = False) -> tuple[int, str, list[float]]:
        """Send a request to the ModelService; return status, the pod that answered, and when parts came."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        body = json.dumps({"model": MODEL, "prompt": prompt, "stream": stream})
        try:
            connection.request(
                "POST", f"/{build.NAMESPACE}/chat/v1/completions", body, {"content-type": "application/json"}
            )
            answer = connection.getresponse()
            if not stream or answer.status != 200:
                text = answer.read()
                return answer.status, _said(text) if answer.status == 200 else text.decode(), []
            times, last = [], ""
            while line := answer.readline():
                if line.startswith(b"data: {"):
                    times.append(time.monotonic())
                    last = _said(line[len("data: ") :])
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error), []
        else:
            return answer.status, last, times
        finally:
            connection.close()


def _said(text: bytes) -> str:
    return str(json.loads(text)["choices"][0]["text"])


# ------------------------------------------------------------------------------------------ what is asked


def prompt(number: int, words: int = 120) -> str:
    """Return a prompt that shares no block with that of another number."""
    return " ".join(f"{number}-{word}" for word in range(words))


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Scene:
    """A replica with its engines, its picker and the gateways before it."""

    def __init__(
        self, replica: Replica, engines: dict[str, Engine], picked: Picker, gateways: Gateways
    ) -> None:
        """Take what was started."""
        self.replica, self.engines, self.picker, self.gateways = replica, engines, picked, gateways

    def sent(self, *prompts: str) -> Counter[str]:
        """Send requests; return how many each pod answered. Raises Unexpected where one is refused."""
        answered: Counter[str] = Counter()
        for text in prompts:
            status, who, _ = self.gateways.post(text)
            if status != 200:
                raise Unexpected(f"a request is answered {status} {who[:300]}; the picker: {self.picker.log}")
            answered[who] += 1
        return answered


def expect(condition: object, text: str) -> None:
    """Raise Unexpected unless something is so."""
    if not condition:
        raise Unexpected(text)


def finds_the_pods_of_its_pool(scene: Scene, others: Sequence[Engine]) -> str:
    """The picker reads the metrics of the pool's pods, and of no other."""
    for engine in (*scene.engines.values(), *others):
        engine.looks = 0
    time.sleep(3)
    unseen = [engine.name for engine in scene.engines.values() if not engine.looks]
    strangers = [engine.name for engine in others if engine.looks]
    expect(not unseen and not strangers, f"not looked at: {unseen}; looked at: {strangers}")
    return f"{len(scene.engines)} pods, and none of {len(others)} others"


def spreads_what_is_new(scene: Scene, **_: Any) -> str:
    """Prompts that nobody has seen reach every idle pod."""
    answered = scene.sent(*(prompt(number) for number in range(60)))
    expect(answered.keys() == scene.engines.keys(), f"answered by {dict(answered)}")
    paths = {path for engine in scene.engines.values() for path, _ in engine.requests}
    expect(paths == {"/v1/completions"}, f"requests arrive at {paths}")
    return f"60 requests: {sorted(answered.values())}"


def prefers_the_shortest_queue(scene: Scene, **_: Any) -> str:
    """A prompt that nobody has seen goes to the pod that has nothing waiting."""
    idle, *busy = scene.engines.values()
    for engine in busy:
        engine.waiting = 9
    time.sleep(1)
    answered = scene.sent(*(prompt(number) for number in range(100, 130)))
    expect(answered == {idle.name: 30}, f"answered by {dict(answered)}, idle is {idle.name}")
    return "30 requests"


def prefers_a_cached_prefix_to_the_queue(scene: Scene, **_: Any) -> str:
    """A prompt that a pod has seen goes there again, although that one has the longest queue."""
    first = scene.gateways.post(prompt(200))[1]
    for engine in scene.engines.values():
        engine.waiting = 9 if engine.name == first else 0
    time.sleep(1)
    same = [f"{prompt(200)} and {number}" for number in range(20)]
    answered = scene.sent(*same)
    expect(answered == {first: 20}, f"answered by {dict(answered)}, cached at {first}")
    # A third of the blocks is worth less than the whole difference of the queues.
    half = [f"{prompt(200)[: len(prompt(200)) // 4]} {prompt(number)}" for number in range(210, 220)]
    moved = scene.sent(*half)
    expect(first not in moved, f"a short prefix holds requests at a long queue: {dict(moved)}")
    for engine in scene.engines.values():
        engine.waiting = 0
    return "20 requests with the whole prefix stay, 10 with a quarter of it go to an idle pod"


def streams(scene: Scene, **_: Any) -> str:
    """An answer arrives part by part, and not at its end."""
    status, who, times = scene.gateways.post(prompt(300), stream=True)
    expect(status == 200 and who in scene.engines, f"{status} {who}; the picker: {scene.picker.log}")
    expect(len(times) == CHUNKS and times[-1] - times[0] > 0.4, f"parts arrived at {times}")
    return f"{CHUNKS} parts"


class Load:
    """Requests one after the other in a few threads, with what became of each."""

    def __init__(self, gateways: Gateways) -> None:
        """Begin."""
        self.gateways, self.phase = gateways, "before"
        self.answered: dict[str, Counter[str]] = {}
        self._stopped, self._number = threading.Event(), iter(range(1000, 5000))
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        for number in self._number:
            if self._stopped.wait(0.05):
                return
            phase = self.phase
            status, who, _ = self.gateways.post(prompt(number))
            if phase == self.phase:
                self.answered.setdefault(phase, Counter())[who if status == 200 else f"failed {status}"] += 1

    def enter(self, phase: str, seconds: float) -> Counter[str]:
        """Count from now on under another name; return what was counted after some seconds."""
        self.phase = phase
        time.sleep(seconds)
        return self.answered.get(phase, Counter())

    def end(self) -> None:
        """Stop."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(30)


def failed(answered: Counter[str]) -> int:
    """Return how many requests failed."""
    return sum(number for who, number in answered.items() if who.startswith("failed"))


def survives_an_engine(scene: Scene, **_: Any) -> str:
    """While an engine is gone and still called ready its share fails; from the verdict on, nothing does."""
    load = Load(scene.gateways)
    try:
        before = load.enter("all live", 4)
        victim = next(iter(scene.engines.values()))
        victim.stop()
        blind = load.enter("dead and called ready", 4)
        said = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
        cluster.call(
            "PATCH",
            f"{PODS}/{victim.name}/status",
            {"status": {"conditions": [said]}},
            "application/strategic-merge-patch+json",
        )
        scene.gateways.pods()
        load.enter("the verdict", 2)
        after = load.enter("not ready", 5)
    finally:
        load.end()
    del scene.engines[victim.name]
    expect(sum(before.values()) and not failed(before), f"with all live: {dict(before)}")
    expect(after.keys() <= scene.engines.keys() and after, f"after the verdict: {dict(after)}")
    return (
        f"{sum(before.values())} requests before, none fails; {failed(blind)} of {sum(blind.values())} until "
        f"the pod is not ready; none of {sum(after.values())} from then on"
    )


def comes_back(scene: Scene, **_: Any) -> str:
    """Without a picker requests may fail, whatever `FailOpen` says; a new picker serves them all again."""
    load = Load(scene.gateways)
    try:
        load.enter("with", 2)
        scene.picker.stop()
        load.enter("the end", 2)
        without = load.enter("without", 5)
    finally:
        load.end()
    scene.picker.start()
    idle, *busy = scene.engines.values()
    for engine in busy:
        engine.waiting = 9
    time.sleep(2)
    answered = scene.sent(*(prompt(number) for number in range(6000, 6020)))
    expect(answered == {idle.name: 20}, f"the new picker: {dict(answered)}")
    for engine in busy:
        engine.waiting = 0
    return f"{failed(without)} of {sum(without.values())} requests fail without a picker, none with the next"


def sends_prefill_apart(scene: Scene, **_: Any) -> str:
    """Requests reach decode pods; a long new prompt names a prefill pod, a short or a cached one none."""
    listed = cluster.call("GET", PODS)["items"]
    roles = {pod["metadata"]["name"]: pod["metadata"]["labels"].get("llm-d.ai/role") for pod in listed}
    addresses = {
        f"{engine.address}:8000" for engine in scene.engines.values() if roles[engine.name] == "prefill"
    }
    header = "x-prefiller-host-port"

    def named(*prompts: str) -> list[str | None]:
        for engine in scene.engines.values():
            engine.requests.clear()
        answered = scene.sent(*prompts)
        expect({roles[name] for name in answered} == {"decode"}, f"answered by {dict(answered)}")
        return [headers.get(header) for engine in scene.engines.values() for _, headers in engine.requests]

    long = named(*(prompt(number) for number in range(20)))
    expect(len(long) == 20 and set(long) <= addresses, f"prefill of long prompts at {long}")
    short = named(*(f"hello {number}" for number in range(5)))
    expect(set(short) == {None}, f"prefill of short prompts at {short}")
    cached = named(*[prompt(3)] * 5)
    expect(set(cached) == {None}, f"prefill of cached prompts at {cached}")
    return f"20 long prompts by {len(set(long))} prefill pods, 5 short and 5 cached ones by none"


UNIFIED: tuple[Callable[..., str], ...] = (
    finds_the_pods_of_its_pool,
    spreads_what_is_new,
    prefers_the_shortest_queue,
    prefers_a_cached_prefix_to_the_queue,
    streams,
    survives_an_engine,
    comes_back,
)
LEADERS = (finds_the_pods_of_its_pool, spreads_what_is_new, streams)
APART = (finds_the_pods_of_its_pool, sends_prefill_apart, streams)


def engine(*members: Plain, name: str = "main", copies: int = 1, phase: str | None = None) -> Plain:
    """Return an engine that claims one device for each pod."""
    return build.engine(name, *(members or (_member(),)), copies=copies, phase=phase)


def _member(role: str = "Standalone", **options: Any) -> Plain:
    return build.member(role, [build.claim("gpu", 1)], **options)


def stranger() -> Plain:
    """Return a replica of another team that asks for the labels of ours, and for those of its picker."""
    labels = {SERVING_LABEL: "ours", "app": "ours-epp", picker.PICKER_LABEL: "ours-epp"}
    return build.replica(
        engine(_member(metadata={"labels": labels}), copies=2), name="theirs", namespace="other-team"
    )


def cases() -> Iterator[tuple[str, str, Plain, tuple[Callable[..., str], ...]]]:
    """Yield the programs, replicas and questions."""
    for program in (REFERENCE, DISAGGREGATING):
        yield program, "copies", build.replica(engine(copies=3), name="ours"), UNIFIED
    gang = engine(_member("Leader"), _member("Worker", nodes=1), copies=2)
    yield REFERENCE, "leaders of gangs", build.replica(gang, name="ours"), LEADERS
    phases = engine(name="p", copies=2, phase="Prefill"), engine(name="d", copies=2, phase="Decode")
    apart = build.replica(*phases, mode="PrefillDecode", name="ours")
    yield DISAGGREGATING, "prefill and decode", apart, APART


def placed(manifest: Plain, stack: ExitStack) -> tuple[Replica, list[Engine]]:
    """Let the handler compose a replica, and play its engines."""
    replica = Replica(build.Scene(manifest, input=build.config()))

    def gone() -> None:
        for one in replica.applied.values():
            kubectl("delete", one["kind"], one["metadata"]["name"], "--namespace=default", "--wait=false")
        prefix = manifest["metadata"]["name"]
        assert cluster.wait(
            lambda: (
                not [
                    pod
                    for pod in cluster.call("GET", PODS)["items"]
                    if pod["metadata"]["name"].startswith(f"{prefix}-")
                ]
            ),
            PATIENCE,
        )

    stack.callback(gone)
    replica.until(lambda answer: is_true(answer, "ModelReady"), "ModelReady")
    engines = [Engine(pod) for pod in pods_of(replica)]
    for one in engines:
        stack.callback(one.stop)
    return replica, engines


def ask(
    folder: Path, program: str, name: str, manifest: Plain, questions: Sequence[Callable[..., str]]
) -> list[str]:
    """Ask the questions of one case; return what differs."""
    differ: list[str] = []
    with ExitStack() as stack:
        others = [*placed(stranger(), stack)[1]]
        replica, engines = placed(manifest, stack)
        serving = names.serving_label(manifest["metadata"]["name"])
        selected = cluster.call("GET", f"{PODS}?labelSelector={SERVING_LABEL}%3D{serving}")["items"]
        inside = {pod["metadata"]["name"] for pod in selected}
        others += [one for one in engines if one.name not in inside]
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        picked = Picker(folder / program, replica, home)
        stack.callback(picked.stop)
        picked.start()
        gateways = stack.enter_context(Gateways(replica, home).running())
        scene = Scene(replica, {one.name: one for one in engines if one.name in inside}, picked, gateways)
        for question in questions:
            begun = time.monotonic()
            try:
                said = question(scene, others=others)
            except Unexpected as difference:
                differ.append(f"{program}, {name}: {question.__name__}: {str(difference)[:2000]}")
                say(f"DIFFERS {differ[-1]}")
            else:
                say(f"{time.monotonic() - begun:6.1f} s  {program}, {name}: {question.__name__}: {said}")
    return differ


def main() -> int:
    """Ask everything; return 1 when something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=(REFERENCE, DISAGGREGATING), help="this program alone")
    options = parser.parse_args()
    reason = cluster.missing() or ("" if isolate() else "this container may not make namespaces")
    if reason:
        say(f"make referee-picker is skipped: {reason}")
        return 0
    # Pods have the addresses that the stand-in of kubelets gives them: all of them are here.
    words = ["ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo"]
    subprocess.run(words, check=True)
    differ: list[str] = []
    with cluster.started():
        for manifest in sorted((folder := options.folder / "crds").glob("*.yaml")):
            assert folder.exists()
            apply(yaml.safe_load(manifest.read_text()))
        for number in range(4):
            typed = {"type": {"string": "gpu"}}
            gpu = {"name": "gpu", "claim": "DRA", "driver": "gpu.nvidia.com", "count": 8, "attributes": typed}
            gpu["capacity"] = {"memory": {"value": "143771Mi"}}
            cluster.add_node(f"frontier-{number}", {"modelplane.ai/pool": "frontier"}, [gpu])
        cluster.add_node("others", {}, [])
        for program, name, replica, questions in cases():
            if options.only in (None, program):
                try:
                    differ += ask(options.folder, program, name, replica, questions)
                except Unexpected as difference:
                    differ.append(f"{program}, {name}: {difference}")
                    say(f"DIFFERS {differ[-1][:3000]}")
    say(f"{len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

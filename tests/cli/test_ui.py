"""The live page: what it gets, who gets it, what it never gets, and how it follows, in a browser too."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from function.cli.bad_input import BadInput
from function.cli.live import Target
from function.cli.ui import server as serving_page, view
from function.cli.ui.server import ASSETS, Follower, Server, is_loopback, is_own_host
from function.cli.ui.view import Look, Tracked, difference, happenings
from function.cli.worlds.inputs import Source
from tests.cli import browser
from tests.cli.adapters import EAST, OLDER, WEST, adapter, placement, running
from tests.cli.command import run, write
from tests.support import apiserver, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]
CANARY = "hunter2-canary"
PATIENCE = 120


def _fleet(clusters: int = 2) -> list[Plain]:
    chat = build.deployment("chat", 2)
    container = chat["spec"]["template"]["spec"]["engines"][0]["members"][0].setdefault("template", {})
    container.setdefault("spec", {})["containers"] = [
        {
            "name": "engine",
            "image": "vllm",
            "args": [f"--key={CANARY}"],
            "env": [{"name": "K", "value": CANARY}],
        }
    ]
    made = [build.cluster(f"c{at:04}", [build.pool("h100", 2)]) for at in range(clusters)]
    return [
        *made,
        chat,
        build.replica(chat, "c0000", 0, ready=True),
        build.replica(chat, "c0001", 0, ready=True),
    ]


def _drained(objects: list[Plain], name: str = "c0000") -> list[Plain]:
    changed = deepcopy(objects)
    for plain in changed:
        if plain["metadata"]["name"] == name:
            plain["spec"]["taints"] = [build.taint("gone", "NoExecute")]
    return changed


class Page:
    """A served fleet, and requests for it."""

    def __init__(self, server: Server, path: Path) -> None:
        self.server, self.follower, self._path = server, server.follower, path

    def becomes(self, objects: list[Plain]) -> None:
        """Write the file anew, and look at it."""
        write(self._path, objects)
        self.follower.look()

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(*self.server.server_address[:2], timeout=PATIENCE)
        connection.request(
            method, path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    @contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, Plain]]]:
        connection = http.client.HTTPConnection(*self.server.server_address[:2], timeout=PATIENCE)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("Content-Type") == "text/event-stream"
        try:
            yield self._events(answer)
        finally:
            answer.close()
            connection.close()

    @staticmethod
    def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Plain]]:
        kind = ""
        while line := answer.readline().decode().rstrip("\n"):
            while line:
                name, _, text = line.partition(": ")
                if name == "event":
                    kind = text
                elif name == "data":
                    yield kind, json.loads(text)
                line = answer.readline().decode().rstrip("\n")


@contextmanager
def _serving(path: Path, objects: list[Plain]) -> Iterator[Page]:
    follower = Follower(Source((str(write(path, objects)),)))
    follower.look()
    with Server("127.0.0.1", 0, follower) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Page(server, path)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with _serving(tmp_path / "fleet.yaml", _fleet()) as served:
        yield served


@pytest.mark.parametrize(
    ("host", "expected", "reason"),
    [
        ("localhost:8480", True, "as a browser on this machine says"),
        ("127.0.0.1:8480", True, "the address"),
        ("[::1]:8480", True, "the address, of the other family"),
        ("10.0.0.7:9", True, "an address cannot be rebound"),
        ("fleet.evil.example:8480", False, "a name whose DNS points here"),
        ("localhost.evil.example", False, "it only begins so"),
        ("", False, "none is given"),
        ("[::1", False, "malformed"),
        (None, False, "there is none"),
    ],
)
def test_a_host_header_must_be_an_address(host: str | None, expected: object, reason: str) -> None:
    assert is_own_host(host) is expected, reason


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - it is refused
        ("::", False),
        ("192.168.1.4", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_only_loopback_is_bound_unless_said(address: str, expected: object) -> None:
    assert is_loopback(address) is expected
    if not expected:
        ran = run("ui", "nothing.yaml", "--bind", address)
        assert ran.code == 1
        assert "is reached by others" in ran.err


def test_a_rebound_name_and_other_sites_are_refused(page: Page) -> None:
    for path in ("/", "/events", "/why?deployment=ml-team/chat"):
        assert page.get(path, Host="evil.example")[0] == 421
        for site in ("cross-site", "same-site"):
            assert page.get(path, Sec_Fetch_Site=site)[0] == 403
    assert page.get("/", Sec_Fetch_Site="none")[0] == 200
    assert page.get("/ui.js", Sec_Fetch_Site="same-origin")[0] == 200
    assert page.get("/../server.py")[0] == page.get("/server.py")[0] == 404
    assert page.get("/", "POST")[0] == 501


def test_the_page_loads_nothing_from_elsewhere_and_has_nothing_inline(page: Page) -> None:
    status, headers, text = page.get("/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=)", text)
    assert set(re.findall(r'(?:href|src)="([^"]+)"', text)) == set(ASSETS) - {"/"}
    for path in ASSETS:
        loaded = page.get(path)[2]
        assert not re.search(r"https?:|innerHTML|@import|url\(", loaded), path


def test_a_page_gets_the_state_and_then_what_differs(page: Page) -> None:
    with page.events() as events:
        kind, data = next(events)
        assert (kind, data["problem"]) == ("state", "")
        assert set(data["entries"]) == {"fleet", "cluster/c0000", "cluster/c0001", "deployment/ml-team/chat"}
        chat = data["entries"]["deployment/ml-team/chat"]
        assert (chat["state"], chat["placed"], chat["wanted"], chat["ready"]) == ("ready", 2, 2, 2)
        assert data["entries"]["cluster/c0000"]["devices"] == [["h100", "gpu.nvidia.com", 1, 16]]
        page.becomes(_drained(_fleet()))
        kind, data = next(events)
        assert (kind, data["gone"]) == ("change", [])
        assert data["set"]["cluster/c0000"]["problems"] == ["Tainted"]
        [moved] = data["happened"]
        assert (moved["verb"], moved["deployment"]) == ("drained", "ml-team/chat")
        assert "on c0000 moves to c0001" in moved["text"]
        page.becomes([plain for plain in _fleet() if plain["kind"] == "InferenceCluster"])
        _, data = next(events)
        assert data["gone"] == ["deployment/ml-team/chat"]


def test_a_change_of_one_cluster_sends_one_cluster(tmp_path: Path) -> None:
    objects = _fleet(200)
    with _serving(tmp_path / "fleet.yaml", objects) as page, page.events() as events:
        next(events)
        tainted = deepcopy(objects)
        tainted[150]["spec"]["taints"] = [build.taint("slow", "NoSchedule")]
        page.becomes(tainted)
        _, data = next(events)
        assert set(data["set"]) == {"cluster/c0150", "fleet"}


def test_a_fleet_that_is_as_it_was_is_not_computed_again(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page.follower.revision
    monkeypatch.setattr(serving_page, "settle", lambda _: pytest.fail("nothing changed"))
    page.follower.look()
    assert page.follower.revision is before


def test_a_look_that_fails_keeps_the_last_and_says_so(page: Page, tmp_path: Path) -> None:
    with page.events() as events:
        next(events)
        (tmp_path / "fleet.yaml").write_text("kind: [")
        page.follower.look()
        _, data = next(events)
        assert "fleet.yaml" in data["problem"]
        assert (data["set"], data["gone"]) == ({}, [])
        page.becomes(_fleet(3))
        _, data = next(events)
        assert data["problem"] == ""
        assert "cluster/c0002" in data["set"]


def test_the_first_look_says_what_is_wrong_in_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        Follower(Source((str(tmp_path / "none.yaml"),))).look()


def test_no_page_gets_more_streams_than_there_are(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.server.streams = threading.BoundedSemaphore(1)
    with page.events() as events:
        next(events)
        assert page.get("/events")[0] == 503


def test_a_page_that_leaves_gives_its_stream_back(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_page, "HEARTBEAT", 0.01)
    page.server.streams = threading.BoundedSemaphore(1)
    with page.events() as events:
        next(events)
    assert page.server.streams.acquire(timeout=PATIENCE)


def test_why_and_whatif_answer_as_the_commands_do(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    why = json.loads(page.get("/why?deployment=ml-team/chat")[2])
    printed = run("why", "ml-team/chat", file, "-o", "json").data
    assert {key: why[key] for key in ("placement", "conditions")} == {
        key: printed[key] for key in ("placement", "conditions")
    }
    for asked, words in (
        ("drain=c0000", ("--drain", "c0000")),
        ("cluster=c0001&pool=h100&nodes=-1", ("--add-nodes", "c0001/h100=-1")),
        ("deployment=ml-team/chat&replicas=5", ("--replicas", "ml-team/chat=5")),
    ):
        answer = json.loads(page.get(f"/whatif?{asked}")[2])
        printed = run("whatif", file, *words, "-o", "json").data
        assert answer == {key: value for key, value in printed.items() if key not in ("apiVersion", "kind")}


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/why?deployment=ml-team/none", 'no ModelDeployment "ml-team/none"'),
        ("/why", 'no ModelDeployment ""'),
        ("/whatif?drain=none", 'no InferenceCluster "none"'),
        ("/whatif?cluster=c0000&pool=h100&nodes=many", 'nodes: expected a number, found "many"'),
        ("/whatif?cluster=c0000&pool=h100&nodes=12345678", "nodes: expected a number"),
        ("/whatif?deployment=ml-team/chat&replicas=-1", "replicas: expected 0 or more, found -1"),
        ("/whatif?deployment=ml-team/chat&replicas=²", "replicas: expected a number"),
        ("/whatif", "expected drain=CLUSTER"),
    ],
)
def test_a_question_that_cannot_be_read_is_answered(page: Page, path: str, error: str) -> None:
    status, _, text = page.get(path.replace("²", "%C2%B2"))
    assert status == 422
    assert error in json.loads(text)["error"]


def test_what_a_template_holds_is_on_no_page(page: Page) -> None:
    paths = [
        *ASSETS,
        "/why?deployment=ml-team/chat",
        "/whatif?drain=c0000",
        "/whatif?deployment=ml-team/chat&replicas=9",
    ]
    answers = [page.get(path)[2] for path in paths]
    with page.events() as events:
        answers.append(json.dumps(next(events)))
        page.becomes(_drained(_fleet()))
        answers.append(json.dumps(next(events)))
    assert CANARY in json.dumps(_fleet()), "the test looks for nothing"
    assert [answer for answer in answers if CANARY in answer] == []


def test_a_name_cannot_reverse_its_line() -> None:
    assert view._shown({"\u202ea": ["\u202eb", 1]}) == {"\\u202ea": ["\\u202eb", 1]}


RUNNING = Tracked("ml/chat", "east", "running")
NEW = Tracked("ml/chat", "west", "new")


@pytest.mark.parametrize(
    ("before", "after", "expected", "reason"),
    [
        ({}, {"ml/a": NEW}, [("placed", "a on west")], "a new replica"),
        ({"ml/a": NEW}, {"ml/a": RUNNING}, [], "it came about as planned"),
        (
            {"ml/a": RUNNING},
            {"ml/a": RUNNING._replace(state="leaving", verb="drained", why="tainted"), "ml/b": NEW},
            [("drained", "a on east moves to west as b: tainted")],
            "a drain moves it",
        ),
        (
            {"ml/a": RUNNING},
            {"ml/a": RUNNING._replace(state="leaving", verb="gave way", why="yielded")},
            [("gave way", "a leaves east: yielded")],
            "it yields, and gets no other place",
        ),
        ({"ml/a": RUNNING}, {"ml/b": NEW}, [("moved", "a on east moves to west as b")], "between two looks"),
        ({"ml/a": RUNNING}, {}, [("gone", "a leaves east")], "nothing said why"),
        ({"ml/a": RUNNING._replace(state="leaving")}, {}, [("gone", "a is gone from east")], "as was said"),
    ],
)
def test_what_happened_is_said(
    before: dict[str, Tracked], after: dict[str, Tracked], expected: list[tuple[str, str]], reason: str
) -> None:
    said = happenings(Look({}, before), Look({}, after))
    assert [(happening.verb, happening.text) for happening in said] == expected, reason


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"ml/a": (1, 2)}, [("added", "1 of 2 replicas placed")]),
        ({"ml/a": (1, 1)}, {}, [("deleted", "the deployment is gone")]),
        (
            {"ml/a": (2, 2)},
            {"ml/a": (2, 3)},
            [("edited", "wants 3 replicas, not 2"), ("waiting", "1 of 3 replicas have no place")],
        ),
        ({"ml/a": (1, 2)}, {"ml/a": (2, 2)}, [("complete", "all 2 replicas have a place")]),
        ({"ml/a": (1, 2)}, {"ml/a": (1, 2)}, []),
    ],
)
def test_numbers_that_changed_are_said(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], expected: list[tuple[str, str]]
) -> None:
    said = happenings(Look(counts=before), Look(counts=after))
    assert [(happening.verb, happening.text) for happening in said] == expected


def test_a_difference_makes_one_of_the_other() -> None:
    before, after = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5}
    changed, gone = difference(before, after)
    assert (changed, gone) == ({"b": 4, "d": 5}, ["c"])


def test_it_follows_a_control_plane(tmp_path: Path) -> None:
    with apiserver.serving(_fleet()) as (address, table):
        file = apiserver.kubeconfig(tmp_path / "kubeconfig", address)
        follower = Follower(Source(target=Target(kubeconfig=str(file))))
        follower.look()
        assert follower.revision.entries["fleet"]["where"] == "context production"
        before = follower.revision
        follower.look()
        assert follower.revision is before
        table.objects = _drained(_fleet())
        follower.look()
        assert [happening["verb"] for happening in follower.since(0)] == ["drained"]


def test_the_command_serves_until_ctrl_c(tmp_path: Path) -> None:
    path = write(tmp_path / "fleet.yaml", _fleet())
    # A shell that starts something in the background lets it ignore ctrl-c, and this test with it.
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    starts = "from function.start import fleet_scheduler; fleet_scheduler()"
    words = [sys.executable, "-c", f"{hears}; {starts}", "ui", str(path)]
    with subprocess.Popen([*words, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/", line)[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", "/")
            assert connection.getresponse().status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        finally:
            process.kill()


def test_a_port_that_is_taken_is_named(page: Page) -> None:
    with pytest.raises(BadInput, match=r"cannot listen on 127\.0\.0\.1, port"):
        Server("127.0.0.1", page.server.server_address[1], page.follower)


def _with_adapters(*places: Plain, loaded: bool = False, **spec: Any) -> list[Plain]:
    """Two replicas with a slot each, and an adapter."""
    objects = [*running(), adapter("a", OLDER, **spec), *places]
    for plain in objects:
        if loaded and plain["kind"] == "ModelReplica":
            plain["status"]["adapters"] = [{"name": "a"}]
    return objects


WAY: Plain = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelEndpoint",
    "metadata": {"namespace": build.NAMESPACE, "name": EAST},
    "spec": {"url": "http://east"},
}
ADAPTERS = [
    (_with_adapters(), "placing", "Configuring", "a place that does not exist yet"),
    (_with_adapters(placement("a", EAST)), "starting", "Configuring", "not configured yet"),
    (_with_adapters(placement("a", EAST), loaded=True), "starting", "NoEndpoint", "no request comes to it"),
    (_with_adapters(placement("a", EAST), WAY, loaded=True), "ready", "FullyScheduled", "it serves"),
    (_with_adapters(replicas=3), "waiting", "PartiallyScheduled", "there are two replicas"),
    (_with_adapters(rank=64), "waiting", "NotScheduled", "no replica takes that rank"),
    (_with_adapters(base={}), "refused", "Malformed", "it cannot be read"),
    (
        _drained(_with_adapters(placement("a", EAST)), "east"),
        "moving",
        "Replacing",
        "its replica leaves, and the other takes it",
    ),
]


@pytest.mark.parametrize(("objects", "state", "reason", "why"), ADAPTERS)
def test_an_adapter_has_a_state_and_its_reason(
    tmp_path: Path, objects: list[Plain], state: str, reason: str, why: str
) -> None:
    with _serving(tmp_path / "fleet.yaml", objects) as page:
        entries = page.follower.revision.entries
        said = entries["adapter/ml-team/a"]
        assert (said["state"], said["reason"]) == (state, reason), why
        loaded = {
            (replica.removeprefix("ml-team/"), cluster.removeprefix("cluster/"))
            for cluster, entry in entries.items()
            if cluster.startswith("cluster/")
            for replica, names in entry.get("adapters", {}).items()
            if names == ["ml-team/a"]
        }
        assert loaded == {(replica, cluster) for replica, cluster, _ in said["places"]}


def test_a_page_follows_an_adapter_and_says_why(tmp_path: Path) -> None:
    before = _with_adapters(placement("a", EAST), loaded=True)
    with _serving(tmp_path / "fleet.yaml", before) as page, page.events() as events:
        next(events)
        page.becomes(_with_adapters(placement("a", WEST), loaded=True))
        _, data = next(events)
        assert set(data["set"]) == {"adapter/ml-team/a", "cluster/east", "cluster/west"}
        [moved] = data["happened"]
        assert (moved["verb"], moved["kind"], moved["deployment"]) == ("moved", "adapter", "ml-team/a")
        assert moved["text"] == f"{EAST} on east, now {WEST} on west"
        why = json.loads(page.get("/why?adapter=ml-team/a")[2])
        printed = run("why", "--adapter", "a", tmp_path / "fleet.yaml", "-o", "json").data
        assert why == {key: value for key, value in printed.items() if key not in ("apiVersion", "kind")}
        assert page.get("/why?adapter=none")[0] == 422
        page.becomes(running())
        _, data = next(events)
        assert data["gone"] == ["adapter/ml-team/a"]
        assert [happening["verb"] for happening in data["happened"]] == ["left", "deleted"]


LOADED = "return document.querySelectorAll('.item.cluster').length > 0"
OPEN = "document.querySelector('%s .item').click()"


@pytest.mark.e2e
@browser.needed
def test_in_a_browser_it_follows_a_drain_and_answers(page: Page, tmp_path: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        with browser.browsing(tmp_path / scheme, scheme=scheme) as tab:
            tab.open(page.server.url)
            tab.until(LOADED)
            seen[scheme] = tab.run("return getComputedStyle(document.body).backgroundColor")
            if scheme == "dark":
                continue
            assert "2 of 2 replicas placed, 2 ready" in tab.run(
                "return document.getElementById('summary').textContent"
            )
            tab.run(OPEN % "#deployments")
            tab.until("return document.getElementById('body').textContent.includes('stays where it is')")
            tab.run("document.getElementById('detail').close()")
            tab.run(OPEN % "#clusters")
            tab.run("document.querySelector('#body button').click()")
            tab.until("return document.getElementById('body').textContent.includes('kubectl patch')")
            tab.run("document.getElementById('detail').close()")
            page.becomes(_drained(_fleet()))
            tab.until("return document.querySelectorAll('#changes .item').length === 1")
            changed = tab.run("return document.querySelector('#changes .item').textContent")
            assert "drained ml-team/chat" in changed
            tab.until("return document.querySelectorAll('#clusters .row i.leaving').length === 1")
            assert tab.run("return document.querySelector('.state').textContent") == "moving"
    assert seen["light"] != seen["dark"]


@pytest.mark.e2e
@browser.needed
def test_in_a_browser_adapters_are_listed_and_shown_on_replicas(tmp_path: Path) -> None:
    objects = [*_with_adapters(placement("a", EAST), loaded=True), adapter("b", OLDER, rank=64)]
    with _serving(tmp_path / "fleet.yaml", objects) as page, browser.browsing(tmp_path / "p") as tab:
        tab.open(page.server.url)
        tab.until(LOADED)
        listed = "return [...document.querySelectorAll('#deployments .item b')].map(e => e.textContent)"
        assert tab.run(listed) == ["ml-team/b", "ml-team/chat", "ml-team/a"]
        drawn = tab.run("return document.getElementById('clusters').textContent")
        assert f"{EAST}: a" in drawn
        tab.run(OPEN % "#deployments")
        tab.until("return document.getElementById('body').textContent.includes('adapters.maxRank 64')")


KEYS = """
const key = (target, name) =>
  target.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const at = () => document.activeElement;
const said = {};
key(document.body, "1"); key(at(), "End"); said.end = at().getAttribute("aria-posinset");
key(at(), "Home"); said.home = at().getAttribute("aria-posinset");
key(at(), "ArrowRight"); said.right = at().getAttribute("aria-posinset");
key(at(), "Enter"); said.open = document.getElementById("title").textContent;
document.getElementById("detail").close();
key(document.body, "/"); said.search = at().id;
at().value = "c0777"; at().dispatchEvent(new Event("input"));
said.shown = document.getElementById("shown").textContent;
return said;
"""
DRAWN = "return document.querySelectorAll('.item.cluster').length"
SCROLLED = """
const box = document.getElementById("clusters"); box.scrollTop = box.scrollHeight;
const names = () => [...document.querySelectorAll('.item.cluster h3')].map(e => e.firstChild.textContent);
requestAnimationFrame(() => requestAnimationFrame(() => done(names())));
"""


@pytest.mark.e2e
@browser.needed
def test_in_a_browser_a_thousand_clusters_are_drawn_where_they_are_seen(tmp_path: Path) -> None:
    with _serving(tmp_path / "fleet.yaml", _fleet(1_000)) as page, browser.browsing(tmp_path / "p") as tab:
        tab.open(page.server.url)
        tab.until(LOADED)
        assert tab.run(DRAWN) < 60
        scrolled = tab.wait_for(SCROLLED)
        assert "c0999" in scrolled
        assert len(scrolled) < 60
        assert tab.run(KEYS) == {
            "end": "1000",
            "home": "1",
            "right": "2",
            "open": "c0001",
            "search": "search",
            "shown": "1 of 1,000 clusters, 0 of 1 deployment",
        }

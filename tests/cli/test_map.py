"""The map shows what is planned: in a page that stands alone, in a picture, and in a real browser."""

from __future__ import annotations

import colorsys
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from function.cli.group import Patient
from function.cli.render.fleet_map import COLOURS, FleetMap, Total
from tests.cli import browser
from tests.cli.command import run, write
from tests.support import build

Plain = dict[str, Any]
ROOT = Path(__file__).parents[2]
EVIL = '"><script>alert(1)</script>'
VOID = {"meta", "link", "br", "input"}


class Page(HTMLParser):
    """Reads a page and notes its elements; an element that is not closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [item for name, item in self.elements if name == tag and wanted.items() <= item.items()]


def _fleet() -> list[Plain]:
    """Return a fleet with something running, leaving, new, missing, overcommitted and unreadable."""
    parent, other = build.deployment("chat", 4), build.deployment("search", 2)
    drained = build.cluster("old", [build.pool("h100", 2)], taints=[build.taint("gone", "NoExecute")])
    small = build.cluster("small", [build.pool("h100", 1)], labels={"modelplane.ai/region": "eu"})
    broken = build.cluster("broken", [build.pool("h100", 1)])
    broken["spec"]["taints"] = "none"
    running = [
        build.replica(parent, "old", 0, ready=True),
        build.replica(other, "small", 0, ready=True),
        build.replica(other, "small", 1, ready=True),
    ]
    big = build.cluster("big", [build.pool("h100", 3)], labels={"modelplane.ai/region": "eu"})
    return [parent, other, drained, small, broken, big, *running]


def _drawn(path: Path, objects: list[Plain], form: str = "html") -> str:
    ran = run("map", write(path, objects), "-o", form)
    assert ran.code in (0, 1), ran.err
    return ran.out


def test_rows_say_who_holds_what(tmp_path: Path) -> None:
    page = Page(_drawn(tmp_path / "f.yaml", _fleet()))
    rows = {item["aria-label"] for item in page.all("div", role="img")}
    assert rows == {
        "h100: 2 nodes: 1 ml-team/chat (leaving), 1 free",
        "h100: 1 node: 2 ml-team/search, 0 free, overcommitted by 1",
        "h100: 3 nodes: 3 ml-team/chat (new), 0 free",
    }


def test_regions_clusters_shortfall_and_faults_are_there(tmp_path: Path) -> None:
    page = Page(_drawn(tmp_path / "f.yaml", _fleet()))
    assert [item["aria-label"] for item in page.all("section")] == ["Region eu", "Region no region"]
    assert [item["data-name"] for item in page.all("article")] == ["big", "small", "broken", "old"]
    text = " ".join(page.texts)
    assert "3 of 4" in text
    assert "unreadable: spec.taints: expected a list" in text
    assert "taint gone:NoExecute" in text


def test_verdicts_are_embedded_once_each(tmp_path: Path) -> None:
    text = _drawn(tmp_path / "f.yaml", _fleet())
    match = re.search(r'id="told">(.*?)</script>', text, re.DOTALL)
    assert match
    embedded = json.loads(match[1])
    names = [card["data-name"] for card in Page(text).all("article")]
    verdicts = {
        name: embedded["texts"][at]
        for name, at in zip(names, embedded["verdicts"]["ml-team/chat"], strict=True)
    }
    assert verdicts["old"][0] == "UntoleratedTaint"
    assert verdicts["big"] == ["InsufficientNodes", "main on h100: needs 1, 0 free of 3"]
    assert verdicts["broken"][0] == "MalformedCluster"
    assert len({tuple(item) for item in embedded["texts"]}) == len(embedded["texts"])


def test_a_verdict_is_that_of_the_settled_fleet(tmp_path: Path) -> None:
    """When the older deployment has its turn there is room; the younger one takes it."""
    older, younger = build.deployment("older", 1), build.deployment("younger", 2)
    younger["metadata"]["creationTimestamp"] = "2026-03-02T08:00:00Z"
    objects = [older, younger, build.cluster("only", [build.pool("h100", 3)])]
    text = _drawn(tmp_path / "f.yaml", objects)
    match = re.search(r'id="told">(.*?)</script>', text, re.DOTALL)
    assert match
    embedded = json.loads(match[1])
    (verdict,) = embedded["verdicts"]["ml-team/older"]
    assert embedded["texts"][verdict] == ["InsufficientNodes", "main on h100: needs 1, 0 free of 3"]


def test_the_header_has_totals_by_class_and_region(tmp_path: Path) -> None:
    page = Page(_drawn(tmp_path / "f.yaml", _fleet()))
    labels = {button["aria-label"] for button in page.all("button") if "data-class" in button}
    assert labels == {
        "any in eu: 5 of 4 nodes held",
        "any in no region: 0 of 2 nodes held",
        "any in all regions: 5 of 6 nodes held",
        "all classes in eu: 5 of 4 nodes held",
        "all classes in no region: 0 of 2 nodes held",
        "all classes in all regions: 5 of 6 nodes held",
    }
    header = " ".join(" ".join(page.texts).split())
    assert "4 clusters in 2 regions, 2 deployments, 5 of 6 replicas placed" in header
    for problem in ("Tainted on 1", "Overcommitted on 1", "Unreadable on 1"):
        assert problem in header


def test_each_cluster_is_a_cell_of_the_overview(tmp_path: Path) -> None:
    page = Page(_drawn(tmp_path / "f.yaml", _fleet()))
    cells = {cell["data-at"]: cell["class"] for cell in page.all("i") if "data-at" in cell}
    assert cells == {
        "big": "cell l4",
        "small": "cell l4 problem",
        "broken": "cell l-1 problem",
        "old": "cell l0 problem",
    }


@pytest.mark.parametrize(
    ("held", "nodes", "step", "reason"),
    [
        (0, 0, -1, "there are no nodes"),
        (0, 9, 0, "empty"),
        (1, 9, 1, "a little"),
        (4, 9, 2, "about half"),
        (8, 9, 3, "one is free"),
        (9, 9, 4, "full"),
        (10, 9, 4, "overcommitted"),
    ],
)
def test_how_full_is_one_of_five_steps(held: int, nodes: int, step: int, reason: str) -> None:
    assert Total(nodes, held).level == step, reason


@pytest.mark.parametrize(
    ("nodes", "words", "reason"),
    [
        (4, "1 cluster in 1 region, 1 deployment, 1 of 1 replica placed", "one of each"),
        (4, "Each square is a node.", "every row is drawn node by node"),
        (40, "Rows of more than 12 nodes are drawn to scale", "this row is not"),
    ],
)
def test_the_words_are_right(nodes: int, words: str, reason: str, tmp_path: Path) -> None:
    objects = [build.cluster("a", [build.pool("p", nodes)]), build.deployment("chat", 1)]
    text = " ".join(" ".join(Page(_drawn(tmp_path / "f.yaml", objects)).texts).split())
    assert words in text, reason


def test_what_was_assumed_of_many_clusters_is_one_line(tmp_path: Path) -> None:
    clusters = [build.cluster(f"c{number:02}", [build.pool("p", 1)]) for number in range(30)]
    for cluster in clusters:
        del cluster["status"]
    kind = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    inference_class = {**kind, "spec": {"devices": [build.gpu(8)]}}
    drawn = _drawn(tmp_path / "f.yaml", [*clusters, inference_class])
    assert drawn.count("assumed Ready") == 1
    assert "30 clusters have no status" in drawn
    assert "8 GPUs a node" in drawn


def test_parts_of_gpus_are_not_counted_as_gpus(tmp_path: Path) -> None:
    parts = build.gpu(14) | {"name": "mig"}
    parts["attributes"] = {**parts["attributes"], "type": {"string": "mig"}}
    drawn = _drawn(tmp_path / "f.yaml", [build.cluster("lab", [build.pool("p", 1, [parts])])])
    assert "14 GPU parts a node" in drawn


def test_seven_deployments_look_different(tmp_path: Path) -> None:
    """The palette has six colours: the seventh has the first in another pattern."""
    parents = [build.deployment(f"chat-{number}", 1) for number in range(7)]
    drawn = _drawn(tmp_path / "f.yaml", [build.cluster("a", [build.pool("p", 7)]), *parents])
    looks = re.findall(r'class="swatch (p\d t\d)"', drawn)
    assert len(set(looks)) == len(looks) == 7


def test_no_colour_reads_as_good_or_bad() -> None:
    """Hues of the palette stay clear of red and green, and differ in lightness where hues are near."""
    css = (ROOT / "function" / "cli" / "render" / "fleet.css").read_text()
    colours = re.findall(r"--(?:p\d|mark|fits): #([0-9a-f]{6})", css)
    assert len(colours) == 2 * (COLOURS + 2)
    for colour in colours:
        hue, _, saturation = colorsys.rgb_to_hls(*(int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)))
        degrees = 360 * hue
        assert saturation < 0.2 or 25 < degrees < 60 or 195 < degrees < 330, colour


@pytest.mark.parametrize("form", ["html", "svg"])
def test_it_stands_alone(form: str, tmp_path: Path) -> None:
    text = _drawn(tmp_path / "f.yaml", _fleet(), form)
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+", text.replace("http://www.w3.org/2000/svg", "")))
    assert addresses == set()
    assert not re.search(r"\ssrc=|@import|url\(", text)


@pytest.mark.parametrize("form", ["html", "svg"])
def test_the_same_fleet_draws_the_same(form: str, tmp_path: Path) -> None:
    objects = _fleet()
    first = _drawn(tmp_path / "f.yaml", objects, form)
    assert _drawn(tmp_path / "f.yaml", list(reversed(objects)), form) == first


@pytest.mark.parametrize("form", ["html", "svg"])
def test_names_are_text_not_markup(form: str, tmp_path: Path) -> None:
    cluster = build.cluster(EVIL, [build.pool(EVIL, 2)], labels={"modelplane.ai/region": EVIL})
    text = _drawn(tmp_path / "f.yaml", [cluster, build.deployment("chat", 1)], form)
    assert "<script>alert" not in text
    assert "alert(1)" in text


def test_the_picture_is_well_formed_and_described(tmp_path: Path) -> None:
    root = ET.fromstring(_drawn(tmp_path / "f.yaml", _fleet(), "svg"))  # noqa: S314 - our own
    space = {"s": "http://www.w3.org/2000/svg"}
    described = root.find("s:desc", space)
    assert described is not None
    assert "overcommitted by 1" in (described.text or "")
    assert len(root.findall(".//s:g/s:rect[@class='c']", space)) == 4


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([build.deployment("chat", 1)], "a fleet without clusters"),
        ([build.cluster("a", []), build.deployment("chat", 1)], "a cluster without pools"),
        (
            [build.cluster("a", [build.pool("p", 5_000)]), build.deployment("chat", 3)],
            "a pool drawn to scale",
        ),
        ([build.cluster("a", [build.pool("p", 0)]), build.deployment("chat", 0)], "nothing at all"),
    ],
)
def test_odd_fleets_are_drawn(objects: list[Plain], reason: str, tmp_path: Path) -> None:
    for form in ("html", "svg"):
        assert _drawn(tmp_path / "f.yaml", objects, form), reason


def test_it_writes_a_file_by_its_ending(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", [build.cluster("a", []), build.deployment("chat", 0)])
    assert run("map", path, "-o", tmp_path / "fleet.html").code == 0
    assert (tmp_path / "fleet.html").read_text().startswith("<!doctype html>")
    run("map", path, "-o", tmp_path / "fleet.svg")
    assert (tmp_path / "fleet.svg").read_text() == run("map", path, "-o", "svg").out, "the same bytes"
    wrong = run("map", path, "-o", "fleet.png")
    assert wrong.code == 1
    assert "expected html, svg, or a file" in wrong.err
    assert run("map", path, "-o", tmp_path / "no" / "fleet.html").code == 1


def test_a_page_is_not_poured_onto_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _fleet())
    monkeypatch.setattr(Patient, "isatty", lambda _: True, raising=False)
    for words, form in (((), "html"), (("-o", "svg"), "svg")):
        ran = run("map", path, *words)
        assert (ran.code, ran.out) == (1, "")
        assert f"-o: a terminal shows no {form}: name a file (-o fleet.{form}), or" in ran.err
    assert run("map", path, "-o", tmp_path / "fleet.html").code == 1, "bad input, and what is read is drawn"
    assert (tmp_path / "fleet.html").exists()


def test_what_every_drawn_node_asks_for_is_put_together_once() -> None:
    picture = FleetMap((), (), (("ml/chat", 1, "of another namespace"),), ())
    assert picture.totals is picture.totals


def _many(clusters: int) -> list[Plain]:
    pools = [build.pool(name, 8) for name in ("h100", "h200", "l4")]
    regions = ("eu-north", "eu-west", "us-east", "us-west")
    made = [
        build.cluster(f"c{at:04}", pools, labels={"modelplane.ai/region": regions[at % 4]})
        for at in range(clusters)
    ]
    return [*made, build.deployment("chat", 100), build.deployment("search", 100)]


@pytest.mark.e2e
@browser.needed
def test_in_a_browser_it_filters_tells_and_follows_the_scheme(tmp_path: Path) -> None:
    links_to = ("--docs", "docs/reasons.md#")
    run("map", write(tmp_path / "f.yaml", _fleet()), "-o", tmp_path / "fleet.html", *links_to)
    seen = {}
    for scheme in ("light", "dark"):
        with browser.browsing(tmp_path / scheme, scheme=scheme) as page:
            page.open(f"file://{tmp_path}/fleet.html#ml-team%2Fchat")
            seen[scheme] = page.run("return getComputedStyle(document.body).backgroundColor")
            said = page.run("return document.getElementById('shown').textContent")
            assert said == "2 of 4 clusters host it or have room"
            links = page.run(
                "return [...document.querySelectorAll('.verdict a')].map(e => e.getAttribute('href'))"
            )
            assert "docs/reasons.md#insufficientnodes" in links
            assert page.run("return document.querySelectorAll('.cluster.dim').length") == 2
            page.run("document.querySelector('aside button[data-name=\"ml-team/chat\"]').click()")
            assert page.run("return document.querySelectorAll('.cluster.dim').length") == 0
            page.run("document.querySelector('.cluster[data-name=old]').focus()")
            assert "ml-team/search: UntoleratedTaint" in page.run(
                "return document.getElementById('hover').textContent"
            )
    assert seen["light"] != seen["dark"]


FILTERS = """
const set = (id, value) => { const field = document.getElementById(id);
  if (field.type === "checkbox") field.checked = value; else field.value = value;
  field.dispatchEvent(new Event(field.type === "search" ? "input" : "change")); };
const every = (selector) => [...document.querySelectorAll(selector)];
const shown = () => every(".cluster").filter(e => !e.hidden).map(e => e.dataset.name);
const seen = {};
set("search", "BI"); seen.search = shown(); set("search", "");
set("region", "eu"); seen.region = shown(); set("region", "");
set("problems", true); seen.problems = shown(); set("problems", false);
set("reason", "Tainted"); seen.reason = shown(); set("reason", "");
set("sort", "problems"); seen.sort = shown(); set("sort", "name");
document.querySelector('td button[data-region="eu"][data-class="any"]').click(); seen.cell = shown();
document.getElementById("reset").click(); seen.all = shown();
set("deployment", "ml-team/chat"); seen.codes = every("#reason option").map(o => o.value);
set("reason", "InsufficientNodes"); seen.verdict = shown();
document.getElementById("reset").click();
document.querySelector(".cell[data-at=old]").click(); seen.focus = document.activeElement.dataset.name;
set("search", "nothing"); seen.none = !document.getElementById("none").hidden;
return seen;
"""


@pytest.mark.e2e
@browser.needed
def test_in_a_browser_it_searches_sorts_and_filters(tmp_path: Path) -> None:
    run("map", write(tmp_path / "f.yaml", _fleet()), "-o", tmp_path / "fleet.html")
    with browser.browsing(tmp_path / "profile") as page:
        page.open(f"file://{tmp_path}/fleet.html")
        assert page.run(FILTERS) == {
            "search": ["big"],
            "region": ["big", "small"],
            "problems": ["small", "broken", "old"],
            "reason": ["old"],
            "sort": ["small", "big", "broken", "old"],
            "cell": ["big", "small"],
            "all": ["big", "small", "broken", "old"],
            "codes": ["", "InsufficientNodes", "MalformedCluster", "PoolOvercommitted", "UntoleratedTaint"],
            "verdict": ["big"],
            "focus": "old",
            "none": True,
        }


SCROLL = """
let frames = 0, y = 0;
const step = () => {
  frames += 1; y += 400; window.scrollTo(0, y);
  if (y < document.body.scrollHeight && frames < 120) requestAnimationFrame(step);
  else done(frames);
};
requestAnimationFrame(step);
"""
OUT_OF_SIGHT = """
const seen = (e) => e.checkVisibility({contentVisibilityAuto: true});
return [...document.querySelectorAll('.cluster .pool:first-of-type')].filter(e => !seen(e)).length;
"""


@pytest.mark.e2e
@browser.needed
def test_a_thousand_clusters_scroll(tmp_path: Path) -> None:
    run("map", write(tmp_path / "f.yaml", _many(1_000)), "-o", tmp_path / "fleet.html")
    with browser.browsing(tmp_path / "profile") as page:
        page.open(f"file://{tmp_path}/fleet.html")
        assert page.run("return document.querySelectorAll('.cluster').length") == 1_000
        assert page.wait_for(SCROLL) > 50
        # What is out of sight is not laid out: that is what keeps it smooth, on any machine.
        assert page.run(OUT_OF_SIGHT) > 800


def test_every_reason_code_that_is_linked_is_explained() -> None:
    from function.api.reasons import Reason

    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "reasons.md").read_text(), re.MULTILINE)
    assert headings == [entry.name for entry in Reason]


def test_the_picture_in_the_docs_is_fresh() -> None:
    drawn = run("map", ROOT / "example", "-o", "svg").out.rstrip("\n")
    kept = (ROOT / "docs" / "images" / "fleet.svg").read_text().rstrip("\n")
    assert kept == drawn, "run `python -m hack.screenshots`"

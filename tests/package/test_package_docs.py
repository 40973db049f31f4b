"""What the pages show is what the commands print."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from function.api.reasons import CONDITION_REASONS, INTERNAL_ERROR
from function.scheduler.outcomes import Cause
from hack.refresh_docs import ROOT, pages, refreshed  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from pathlib import Path

    from function.api.reasons import ConditionReason

EVERY_PAGE = sorted(
    {*pages(), *ROOT.glob("apis/*.md"), *ROOT.glob("function/**/*.md"), *ROOT.glob("tests/*.md")}
)
"""What is read on the way, whether or not it shows output."""
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:]*?)#([^)]*)\)")
FENCED = re.compile(r"```.*?```", re.DOTALL)
LABEL = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PLACED = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)` (?:in|of) `([\w/.-]+\.(?:py|yaml|json))`")
"""A name, and the file in which a page says that it is."""


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = INLINE_CODE.sub("", page.read_text())  # A pattern in it looks like a link.
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may end in."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", LABEL.sub(r"\1", heading)).strip() for heading in headings)
    return {heading.lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = ANCHOR.findall(FENCED.sub("", page.read_text()))
    targets = [((page.parent / name) if name else page, anchor) for name, anchor in links]
    assert [(str(to), anchor) for to, anchor in targets if anchor not in anchors(to)] == []


def test_a_name_is_in_the_file_that_a_page_says() -> None:
    placed = [(page, *words) for page in EVERY_PAGE for words in PLACED.findall(page.read_text())]
    missing = []
    for page, name, path in placed:
        files = [
            folder / path for folder in (page.parent, ROOT, ROOT / "function") if (folder / path).is_file()
        ]
        if not any(name.rpartition(".")[2] in file.read_text() for file in files):
            missing.append((page.name, name, path))
    assert placed, "no name is looked up"
    assert missing == []


@pytest.mark.gate
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_output_blocks_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m hack.refresh_docs`"


PAGE_OF = {
    "ModelDeployment": "troubleshooting.md",
    "ModelReplica": "workloads.md",
    "InferenceCluster": "clusters.md",
    "ModelService": "routing.md",
    "ModelEndpoint": "routing.md",
    "ModelAdapter": "adapters.md",
}


@pytest.mark.parametrize(("kind", "reasons"), CONDITION_REASONS.items())
def test_the_page_of_a_kind_has_every_reason_of_its_conditions(
    kind: str, reasons: dict[str, ConditionReason]
) -> None:
    text = (ROOT / "docs" / PAGE_OF[kind]).read_text()
    assert [name for name in reasons if f"`{name}`" not in text] in ([], [INTERNAL_ERROR])


POSITIONS = {"Violation": 0, "Unmet": 1, "InputChange": 0, "_limit": 0, "Drift": 1, "Result": 1}
"""Where the code stands among the arguments of what says it."""


def codes_of(source: str) -> set[str]:
    """The codes that a module says: of a violation, a lint finding, a hint, a drift, an event."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    named = ((POSITIONS[ast.unparse(call.func)], call) for call in calls if _is_code(call.func))
    stated = [call.args[at] for at, call in named if len(call.args) > at]
    return {code.value for code in stated if isinstance(code, ast.Constant) and code.value[:1].isupper()}


def _is_code(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id in POSITIONS


def test_every_code_is_explained() -> None:
    """Whatever word an answer says in place of a sentence, some page says what it means."""
    sources = [path.read_text() for path in (ROOT / "function").rglob("*.py")]
    codes = set().union(*map(codes_of, sources))
    kinds = {"LeftOut", "UnknownDriver", "AddNodes", "DriverMissing", "ReplicasPlaced"}
    assert kinds <= codes, "every kind of code is seen"
    codes |= {f"Replica{cause.name}" for cause in Cause if cause is not Cause.Terminating}
    text = "".join(page.read_text() for page in pages())
    assert sorted(code for code in codes if f"`{code}`" not in text) == []


def test_an_internal_error_is_explained_once_for_all_kinds() -> None:
    assert f"`{INTERNAL_ERROR}`" in (ROOT / "docs" / "troubleshooting.md").read_text()


EXAMPLES = sorted(
    path for path in (ROOT / "example").iterdir() if path.is_dir() and list(path.glob("*.yaml"))
)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_has_a_page_with_a_line_to_run(folder: Path) -> None:
    page = (folder / "README.md").read_text()
    composites = ("kind: ModelDeployment\n", "kind: ModelService\n")
    manifests = "".join(path.read_text() for path in folder.glob("*.yaml"))
    if any(re.search(f"^{kind}", manifests, re.MULTILINE) for kind in composites):
        assert f"\ncrossplane render example/{folder.name}/" in page
    elif folder.name != "fleet":
        assert re.search(rf"^kubectl apply -f example/{folder.name}/", page, re.MULTILINE)
    assert f"({folder.name}/README.md)" in (ROOT / "example" / "README.md").read_text()

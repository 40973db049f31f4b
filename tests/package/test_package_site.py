"""The site's navigation names pages that exist, and the site loads nothing from elsewhere."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.refresh_docs import ROOT  # type: ignore[attr-defined]
from tests.cli import browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)  # noqa: S506 - texts, and no objects
TUTORIAL, BUILT = ROOT / "docs" / "tutorial.md", ROOT / "site"
IS_BUILT = (BUILT / "tutorial.html").is_file()


def test_the_navigation_names_pages_that_exist() -> None:
    named = re.findall(r"[\w./-]+\.md", str(CONFIG["nav"]))
    assert len(named) > 20
    assert len(named) == len(set(named))
    for name in named:
        outside = name.removeprefix("repository/")
        place = ROOT / "README.md" if name == "index.md" else ROOT / outside if outside != name else None
        assert (place or ROOT / "docs" / name).is_file(), name


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert CONFIG["theme"]["font"] == "false"
    assert CONFIG["strict"] == "true"
    assert CONFIG["plugins"] == ["search"]
    assert not {"repo_url", "extra_javascript", "extra_css", "extra_templates"} & CONFIG.keys()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@browser.needed
@pytest.mark.skipif(
    not IS_BUILT or (BUILT / "tutorial.html").stat().st_mtime < TUTORIAL.stat().st_mtime,
    reason="make site has not built the site here since the tutorial was changed",
)
def test_the_tutorial_is_read_and_searched_in_a_browser(tmp_path: Path) -> None:
    """Each block is there with its button, a search leads to a heading, and all comes from the one host."""
    blocks = len(re.findall(r"^```\w+$", TUTORIAL.read_text(), re.MULTILINE))
    with _served(BUILT) as site, browser.browsing(tmp_path) as page:
        page.open(f"{site}/tutorial.html")
        page.until(f"return document.querySelectorAll('.md-content pre').length === {blocks}")
        page.until(
            "return document.querySelectorAll('.md-content pre button, .md-content pre nav').length > 0"
        )
        # Typed again until it is answered: what is typed before the index is there is forgotten.
        page.until(
            "const box = document.querySelector('.md-search__input'); box.focus(); box.value = 'drain';"
            "box.dispatchEvent(new InputEvent('input', {bubbles: true}));"
            "box.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));"
            "return [...document.querySelectorAll('.md-search-result__link')].some("
            "link => link.href.includes('/tutorial.html') && link.href.endsWith('#drain-a-cluster'))"
        )
        loaded = page.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert loaded
        assert [name for name in loaded if not name.startswith((site, "blob:", "data:"))] == []

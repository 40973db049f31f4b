"""The site's navigation names pages that exist, and the site loads nothing from elsewhere."""

from __future__ import annotations

import re

import yaml

from hack.refresh_docs import ROOT  # type: ignore[attr-defined]

CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)  # noqa: S506 - texts, and no objects


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

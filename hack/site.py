"""The hook of `make site`: pages of the whole repository on one site, links between them kept.

Pages in `docs/` link to files beside it: examples, manifests, CONTRIBUTING. The site has those that are
linked to, and those that these link to in turn, below `repository/`; the README is its first page. Every link
is rewritten to where its file is on the site, so that strict mode finds the one that leads nowhere. In the
end the built pages are searched for anything that a browser would load from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIRST = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
LINK = re.compile(r"""(\]\(|\ssrc="|\ssrcset=")([^)"#:\s]+)(?=[)"#\s])""")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
ELEMENT = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*>")
ELSEWHERE = re.compile(r"""\s(?:src|href|srcset)=["']?(?:https?:)?//""")
LOOSE = re.compile(r'rel=["\']?(?:canonical|prev|next|edit)')


def on_config(config: Any) -> Any:
    """Append the pages that `nav` does not name: a page is never out of reach."""
    named = set(re.findall(r"[\w./-]+\.md", str(config["nav"])))
    pages = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")))
    others = [page for page in pages if page not in named]
    decisions = [page for page in others if page.startswith("decisions/")]
    more = [page for page in others if page not in decisions]
    config["nav"] += [{"More": more}] * bool(more) + [{"Decisions": decisions}] * bool(decisions)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what pages link to outside of `docs/`."""
    waiting = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in FIRST)]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.is_relative_to(DOCS):
            files.append(File.generated(config, _on_site(path), abs_src_path=str(path)))
        if path.suffix == ".md":
            linked = set(_linked(path)) - seen
            seen |= linked
            waiting += sorted(linked)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead every link to where its file is on the site; blocks of code stay as they are."""
    path = Path(page.file.abs_src_path)
    folder = posixpath.dirname(page.file.src_uri)

    def leads(match: re.Match[str]) -> str:
        target = _target(path, match[2])
        return match[0] if target is None else match[1] + posixpath.relpath(_on_site(target), folder or ".")

    parts, at = [], 0
    for block in FENCED.finditer(markdown):
        parts += [LINK.sub(leads, markdown[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*parts, LINK.sub(leads, markdown[at:])])


def on_post_build(config: Any) -> None:
    """Refuse a site that loads anything from elsewhere."""
    for path in sorted(Path(config["site_dir"]).rglob("*.html")):
        for element in ELEMENT.findall(path.read_text(encoding="utf-8")):
            if ELSEWHERE.search(element) and not LOOSE.search(element):
                raise PluginError(f"{path}: loads from elsewhere: {element}")


def _linked(path: Path) -> list[Path]:
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    targets = (_target(path, match[2]) for match in LINK.finditer(text))
    return [target for target in targets if target is not None]


def _target(path: Path, link: str) -> Path | None:
    """The file of the repository that a link leads to; of a folder its README; None where there is none."""
    target = (path.parent / link).resolve()
    if target.is_dir():
        target /= "README.md"
    return target if target.is_file() and target.is_relative_to(ROOT) else None


def _on_site(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    return "index.md" if name == "README.md" else f"repository/{name}"

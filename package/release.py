"""Make a release with one command: `python -m package.release 0.2.0 --registry HOST/PATH`, or `make release`.

It writes the version, checks, builds, and only then publishes. So a release that fails before the push leaves
nothing behind but a commit on this machine. RELEASING.md says when to use which part.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from package import build, push
from package.tools import ROOT, pinned_bases, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROJECT = ROOT / "pyproject.toml"
CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
SHOWN = ("README.md", "SECURITY.md", "crossplane.yaml", "docs/*.md", "example/*.yaml")
"""Files that name the release which a reader should install."""
NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
CHECKS = ("lint", "lint-files", "test")
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?/")
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)


@click.command()
@click.argument("version")
@click.option("--registry", help="Registry and path to publish to. Without it: only up to the tag.")
@click.option("--key", help="Key to sign with, a file or an address that cosign knows. Without it: keyless.")
@click.option("--private", is_flag=True, help="Write no entry into the public transparency log.")
@click.option("--checks/--no-checks", default=True, help="Run make lint, lint-files and test first.")
def main(version: str, registry: str | None, key: str | None, *, private: bool, checks: bool) -> None:
    """Release VERSION of this tree: the version in every file, a commit, a tag, both packages."""
    if not NUMBER.fullmatch(version):
        raise click.ClickException(f'the version is three numbers, as in 0.2.0; found "{version}"')
    _say("tree", _clean())
    tagged = f"v{version}" in run(["git", "tag", "--points-at", "HEAD"]).split()
    if not tagged:
        prepare(version)
        _say("version", f"{version}, in a commit of its own")
    if checks:
        click.echo(f"make {' '.join(CHECKS)}: some minutes, and no output while all is well")
        run(["make", *CHECKS])
        _say("checks", " ".join(CHECKS))
    if not tagged:
        run(["git", "tag", "--annotate", f"v{version}", "--message", f"Release {version}"])
        _say("tag", f"v{version}")
    if registry is None:
        click.echo("Publish it: git push --follow-tags, or the same command with --registry")
        return
    for what, reference in publish(registry, key, private=private):
        _say(what, reference)


def prepare(version: str) -> None:
    """Write the version and the changelog, record what the release composes, and commit."""
    before = build.version().removeprefix("v")
    if _numbers(version) < _numbers(before) or f"v{version}" in run(["git", "tag"]).split():
        raise click.ClickException(f"{version} is not newer than {before}, or has a tag")
    PROJECT.write_text(PROJECT.read_text().replace(f'\nversion = "{before}"', f'\nversion = "{version}"', 1))
    for path in (path for pattern in SHOWN for path in ROOT.glob(pattern)):
        path.write_text(path.read_text().replace(f"v{before}", f"v{version}"))
    CHANGELOG.write_text(_dated(CHANGELOG.read_text(), version))
    run([sys.executable, "-m", "hack.record_release", version])
    run(["git", "add", "--all"])
    run(["git", "commit", "--message", f"release: {version}"])


def _dated(changelog: str, version: str) -> str:
    """Return the changelog with what was unreleased under the version and the day."""
    before, mark, rest = changelog.partition(UNRELEASED)
    notes = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not mark or not notes:
        raise click.ClickException('CHANGELOG.md has nothing under "Unreleased": what would a user notice?')
    return f"{before}{UNRELEASED}\n## {version} - {datetime.now(UTC).date()}\n{rest}"


def publish(registry: str, key: str | None, *, private: bool) -> Iterator[tuple[str, str]]:
    """Build and push both packages, sign them, and read back what arrived: yield each step with its result.

    Signatures are of digests: a tag can come to mean another image between the push and the signature.
    """
    if not shutil.which("cosign"):
        raise click.ClickException("cosign is missing: nothing is published that nobody can check")
    os.environ.update(pinned_bases())
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    run(["make", "wheel", "sbom"])
    yield "bill of materials", "dist/sbom.json"
    build.main.main(["--registry", registry, "--out", str(out)], standalone_mode=False)
    push.main.main(["--registry", registry, "--out", str(out)], standalone_mode=False)
    log = ["--tlog-upload=false"] if private else []
    signer = ["--key", key] if key else []
    images = {}
    for name in (build.FUNCTION, build.CONFIGURATION):
        images[name] = f"{registry}/{name}@{digest(f'{registry}/{name}:{build.version()}')}"
        run(["cosign", "sign", "--yes", "--recursive", *signer, *log, images[name]])
        yield "signed", images[name]
    bill = ["--type", "cyclonedx", "--predicate", f"{out / 'sbom.json'}"]
    run(["cosign", "attest", "--yes", *signer, *log, *bill, images[build.FUNCTION]])
    yield "attested", images[build.FUNCTION]
    yield "checksums", str(checksums(out).relative_to(ROOT))


def checksums(out: Path) -> Path:
    """Write the SHA-256 of everything that was built, as `sha256sum --check` reads it."""
    made = sorted(path.name for path in out.iterdir() if path.suffix in {".xpkg", ".json", ".whl"})
    listed = run(["env", "--chdir", out, "sha256sum", *made])
    (out / "SHA256SUMS").write_text(listed)
    return out / "SHA256SUMS"


def digest(reference: str) -> str:
    """Ask the registry which image a tag means now. One on loopback speaks plain HTTP."""
    if not LOOPBACK.match(reference):
        shown = ["--format", "{{.Manifest.Digest}}"]
        return run(["docker", "buildx", "imagetools", "inspect", reference, *shown]).strip()
    host, _, rest = reference.partition("/")
    name, _, tag = rest.rpartition(":")
    request = urllib.request.Request(
        f"http://{host}/v2/{name}/manifests/{tag}", headers={"Accept": MANIFESTS}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
        return str(answer.headers["Docker-Content-Digest"])


def _clean() -> str:
    changed = run(["git", "status", "--porcelain"]).strip()
    if changed:
        raise click.ClickException(f"commit or remove first:\n{changed}")
    return "clean"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _say(what: str, result: str) -> None:
    click.echo(f"{what:<18} {result}")


if __name__ == "__main__":
    main()

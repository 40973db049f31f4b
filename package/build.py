"""Build both packages: `python -m package.build`, or `make package`.

The Configuration (everything under apis/) needs the crossplane CLI. The Function also needs something that
builds container images, because its runtime is inside. The same commit gives the same packages again.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from pathlib import Path

import click

from package.tools import ROOT, crossplane, engine, run

PLACEHOLDER = "registry.example.com/fleet"
SOURCE = "meta.crossplane.io/source"
"""Names where a package's source is. It stands in no file, because each build knows its own address."""
FUNCTION = "function-fleet-scheduler"
CONFIGURATION = "configuration-fleet-scheduler"
ARCHITECTURES = ("amd64", "arm64")
LABEL_LENGTH = 63


def version() -> str:
    """Return the version of this project as a tag: the one in pyproject.toml with a v before it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return f"v{project['version']}"


def configuration(registry: str, out: Path) -> Path:
    """Build the Configuration package, which depends on the Function in the given registry."""
    staged = out / "configuration"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(ROOT / "apis", staged / "apis")
    meta = (ROOT / "crossplane.yaml").read_text()
    (staged / "crossplane.yaml").write_text(
        meta.replace(PLACEHOLDER, registry).replace(">=v0.1.0", f">={version()}")
    )
    _name_source(staged / "crossplane.yaml")
    for composition in sorted((staged / "apis").glob("*/composition.yaml")):
        text = composition.read_text()
        composition.write_text(text.replace(f"name: {FUNCTION}\n", f"name: {installed_name(registry)}\n"))
    return _xpkg(staged, out / f"{CONFIGURATION}-{version()}.xpkg")


def installed_name(registry: str) -> str:
    """Return the name under which Crossplane installs the Function as a dependency.

    It is the path in the registry, made a DNS label: the Composition must call the function by it.
    """
    first, _, rest = registry.partition("/")
    host = "." in first or ":" in first or first == "localhost"
    path = f"{rest if host else registry}/{FUNCTION}".lstrip("/")
    return re.sub(r"[^a-z0-9-]", "", re.sub(r"[./:]", "-", path))[:LABEL_LENGTH].strip("-")


def function(runtime: Path, architecture: str, out: Path) -> Path:
    """Build the Function package around a runtime image: a tarball as `docker save` makes it."""
    staged = out / "function"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(ROOT / "package" / "input", staged / "input")
    shutil.copy(ROOT / "package" / "crossplane.yaml", staged)
    _name_source(staged / "crossplane.yaml")
    target = out / f"{FUNCTION}-{version()}-{architecture}.xpkg"
    return _xpkg(staged, target, f"--embed-runtime-image-tarball={runtime}")


def source() -> str | None:
    """Return where the source of this build is: $SOURCE, else the remote `origin`, None where neither says.

    A package shows this address to whoever looks at it, so an address that does not exist is worse than none.
    """
    named = os.environ.get("SOURCE") or _origin()
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", named).removesuffix(".git")
    return re.sub(r"^https://[^/@]*@", "https://", address) if address.startswith("https://") else None


def _origin() -> str:
    remotes = run(["git", "remote"]).split() if shutil.which("git") else []
    return run(["git", "remote", "get-url", "origin"]).strip() if "origin" in remotes else ""


def _name_source(meta: Path) -> None:
    """Write the address of the source into a package's metadata, for those who want to read or build it."""
    address = source()
    if address:
        line = f"    {SOURCE}: {address}\n"
        meta.write_text(meta.read_text().replace("  annotations:\n", f"  annotations:\n{line}", 1))


def _xpkg(root: Path, target: Path, *more: str) -> Path:
    target.unlink(missing_ok=True)
    examples = f"--examples-root={root / 'examples'}"
    run(
        [crossplane(), "xpkg", "build", f"--package-root={root}", f"--package-file={target}", examples, *more]
    )
    return target


def runtime(architecture: str, out: Path) -> Path:
    """Build the runtime image of an architecture. Its files carry the time of the last commit."""
    epoch = int(run(["git", "log", "-1", "--format=%ct"]))
    tarball = out / f"runtime-{architecture}.tar"
    engine()(architecture, tarball, epoch)
    return tarball


@click.command()
@click.option(
    "--registry", default=PLACEHOLDER, show_default=True, help="Where the Function will be pushed to."
)
@click.option(
    "--arch", "architectures", multiple=True, default=ARCHITECTURES, help="Architecture; may be repeated."
)
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="Folder to write to.")
def main(registry: str, architectures: tuple[str, ...], out: Path) -> None:
    """Build the Configuration package, then the Function package for every architecture."""
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    click.echo(configuration(registry, out))
    for architecture in architectures:
        click.echo(function(runtime(architecture, out), architecture, out))


if __name__ == "__main__":
    main()

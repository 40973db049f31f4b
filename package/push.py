"""Push both packages: `python -m package.push --registry HOST/PATH`, or `make push REGISTRY=HOST/PATH`."""

from __future__ import annotations

from pathlib import Path

import click

from package.build import CONFIGURATION, FUNCTION, configuration, version
from package.tools import ROOT, crossplane, run

ATTEMPTS = 3


@click.command()
@click.option("--registry", required=True, help="Registry and path, for example registry.example.com/fleet.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / "dist", help="Folder with the packages."
)
def main(registry: str, out: Path) -> None:
    """Push the Function for every architecture that was built, then the Configuration that depends on it."""
    out = out.absolute()
    runtimes = sorted(out.glob(f"{FUNCTION}-{version()}-*.xpkg"))
    if not runtimes:
        raise click.ClickException(f"no {FUNCTION}-{version()}-*.xpkg in {out}: run `make package` first")
    _push(runtimes, f"{registry}/{FUNCTION}:{version()}")
    _push([configuration(registry, out)], f"{registry}/{CONFIGURATION}:{version()}")


def _push(packages: list[Path], tag: str) -> None:
    """Push packages under one tag.

    The images of one push are sent side by side, and a registry may refuse one that names a layer which
    another is still sending. So a push is tried again: what has arrived is not sent twice.
    """
    command = [crossplane(), "xpkg", "push", f"--package-files={','.join(map(str, packages))}", tag]
    for left in reversed(range(ATTEMPTS)):
        try:
            click.echo(run(command) or tag)
        except click.ClickException:
            if not left:
                raise
        else:
            return


if __name__ == "__main__":
    main()

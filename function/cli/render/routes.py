"""Print the route of each service, as it would be on the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from function.cli.text import as_yaml, complain, note, printable
from function.cli.worlds.routes import routes_of

if TYPE_CHECKING:
    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.world import Planned


def show_routes(inputs: Inputs, results: list[Planned]) -> None:
    """Print the route of every ModelService, with its address and what its endpoints say."""
    for route in routes_of(inputs, results):
        resolved = route.response.conditions[0]
        if route.assumed:
            text = f"{route.title}: no Service yet of {', '.join(route.assumed)}: assumed one of that name"
            note(text)
        if not route.response.desired:
            complain([f"{route.title}: {resolved.message}"])
        for key, manifest in route.manifests():
            where = f", {route.address}" if route.address else ""
            click.echo(f"---\n# {printable(f'control plane: {route.title}: {key}{where}')}")
            click.echo(f"# {printable(resolved.message)}")
            click.echo(as_yaml(manifest), nl=False)

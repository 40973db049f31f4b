"""`ui`: a live page about the fleet, in a browser on this machine.

The verb looks at the fleet once, so that what cannot be read is said in the terminal; then it serves the page
and looks again every few seconds (`cli.ui`). It writes nothing, to a cluster or to a file.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click

from function.cli.bad_input import BadInput
from function.cli.options import Command, reads_fleet
from function.cli.ui.server import Follower, Server, is_loopback

if TYPE_CHECKING:
    from function.cli.worlds.inputs import Source

PORT = 8480


@click.command(cls=Command)
@reads_fleet
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--reachable",
    is_flag=True,
    help="Allow --bind to be an address that others reach: the page asks nobody for a password.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Seconds from one look to the next.",
)
def ui(source: Source, port: int, bind: str, interval: float, *, reachable: bool) -> None:
    r"""Show the fleet in a browser, and follow it: a live page, read-only, on this machine alone.

    The page is the map with what goes on beside it: deployments with their state and reasons, what waits and
    for what, what was placed, moved, drained or gave way since it was opened, what it costs an hour. Why and
    what-if are a click away; with the keyboard, arrows, Enter and Escape do. The control plane is listed
    every few seconds, files are read again when one of them was written.

    No template is shown: of env, args and the like the page gets nothing.

    Exit codes: 1 bad input, 130 ended by ctrl-c.

    \b
    Examples:
      fleet-scheduler ui --context production
      fleet-scheduler ui fleet.yaml --port 0
    """
    if not (reachable or is_loopback(bind)):
        raise BadInput(
            f"--bind: {bind} is reached by others, and the page asks for no password: bind 127.0.0.1 and use "
            "kubectl port-forward or ssh -L, or add --reachable"
        )
    follower = Follower(source)
    follower.look()
    with Server(bind, port, follower) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        click.echo(f"the fleet is at {server.url} (ctrl-c ends it)")
        while True:
            time.sleep(interval)
            follower.look()

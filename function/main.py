"""Serve: flags and environment as every Crossplane function has them.

The console script `function`, which the image starts, and `fleet-scheduler serve`: `function` is a word of
bash, where it cannot be typed as a command.

Imports are late on purpose. gRPC reads its environment when it is imported, so `--debug` is known first; and
the server listens, or says why it cannot, before the rest of the function is imported, which takes longest.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

if TYPE_CHECKING:
    from function.runner import Function
    from function.server import Settings
    from function.server.metrics import Metrics
    from function.server.services import Recorder

PREFIX = "FLEET_SCHEDULER"
"""Every flag is an environment variable too: --max-concurrency is FLEET_SCHEDULER_MAX_CONCURRENCY."""

_AT_LEAST_ONE, _NONE_OR_MORE = click.IntRange(min=1), click.IntRange(min=0)
_SECONDS = click.FloatRange(min=0)
EXAMPLES = """\b
Examples:
  fleet-scheduler serve --insecure --address 127.0.0.1:9443
  function --tls-certs-dir /tls/server --metrics-address 0.0.0.0:8080
"""


@click.command(context_settings={"auto_envvar_prefix": PREFIX, "show_default": True}, epilog=EXAMPLES)
@click.version_option(package_name="function-fleet-scheduler")
@click.option("--debug", "-d", is_flag=True, help="Log more.")
@click.option("--address", default="0.0.0.0:9443", help="Where to listen: host:port.")
@click.option(
    "--tls-certs-dir",
    envvar=["TLS_SERVER_CERTS_DIR", f"{PREFIX}_TLS_CERTS_DIR"],
    show_envvar=True,
    help="Folder with tls.key, tls.crt and ca.crt. They are read again when they change.",
)
@click.option("--insecure", is_flag=True, help="Serve plaintext, whatever certificates there are.")
@click.option("--max-recv-message-size", type=_AT_LEAST_ONE, default=64, help="MB a request may have.")
@click.option("--max-concurrency", type=_AT_LEAST_ONE, default=2, help="Requests worked on at a time.")
@click.option("--max-waiting", type=_NONE_OR_MORE, default=128, help="Requests that may wait for that.")
@click.option("--max-held-size", type=_AT_LEAST_ONE, default=512, help="MB they may have together.")
@click.option(
    "--max-connection-age",
    type=click.FloatRange(min=1),
    default=300,
    help="Seconds until a client is told to connect anew, and so finds copies that were added.",
)
@click.option("--metrics-address", help="Where to serve Prometheus metrics: host:port. Off when not given.")
@click.option("--ttl-pending", type=_SECONDS, default=15, help="Seconds until asked again, work pending.")
@click.option("--ttl-settled", type=_SECONDS, default=60, help="Seconds until asked again, all settled.")
@click.option(
    "--ttl-watched",
    type=_SECONDS,
    default=600,
    help="The same where Crossplane watches what is required (2.4).",
)
@click.option(
    "--record",
    help="Folder to record calls in, secrets left out, for `fleet-scheduler replay`. Bounded; slow.",
)
@click.option("--no-reuse", is_flag=True, help="Parse every object on every call.")
@click.option(
    "--reuse-size",
    type=_AT_LEAST_ONE,
    show_default="256; none with --insecure",
    help="MB of objects to remember parsed. An object is known by its uid and resourceVersion.",
)
@click.option("--grace", type=_SECONDS, default=20, help="Seconds for calls in flight when told to stop.")
def main(*, debug: bool, tls_certs_dir: str | None, no_reuse: bool, **flags: Any) -> None:
    """Serve the fleet scheduler as a Crossplane composition function.

    Exit codes: 0 stopped by a signal, 1 could not start, or gave up calls that outlasted --grace.
    """
    # gRPC's own core would add lines of its own to our one; who wants them says so.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR" if debug else "NONE")
    from function.server.settings import CannotStart, Settings  # noqa: PLC0415 - gRPC reads its environment

    reuse_size, record = flags.pop("reuse_size"), flags.pop("record")
    settings = Settings(
        certificates=Path(tls_certs_dir) if tls_certs_dir else None,
        reuse_size=0 if no_reuse else reuse_size,
        record=Path(record) if record else None,
        **flags,
    )
    try:
        code = _serve(settings, _log(debug=debug))
    except CannotStart as error:
        started = "fleet-scheduler serve" if click.get_current_context().parent else "function"
        click.echo(f"{started}: cannot start: {error}", err=True)
        code = 1
    sys.exit(code)


def _serve(settings: Settings, log: Any) -> int:
    """Serve the function; it is imported and put together once the server listens."""
    from function.server import serve  # noqa: PLC0415 - as above

    def build(metrics: Metrics) -> Function:
        from function import runner  # noqa: PLC0415 - takes longest to import
        from function.boundary.memory import Memory  # noqa: PLC0415 - as above
        from function.wire import Ttl  # noqa: PLC0415 - as above

        memory = Memory(settings.reuse_bytes) if settings.reuse_bytes else None
        ttl = Ttl(settings.ttl_pending, settings.ttl_settled, settings.ttl_watched)
        recorder = _recorder(settings, log)
        return runner.Function(log, metrics=metrics, memory=memory, ttl=ttl, recorder=recorder)

    return serve(settings, build, log)


def _recorder(settings: Settings, log: Any) -> Recorder | None:
    """Return what writes the calls down, if that was asked for."""
    if settings.record is None:
        return None
    from importlib.metadata import version  # noqa: PLC0415 - only then

    from function.server.services import Recorder  # noqa: PLC0415 - as above
    from function.server.settings import CannotStart  # noqa: PLC0415 - as above

    try:
        return Recorder(settings.record, log, version("function-fleet-scheduler"))
    except OSError as error:
        raise CannotStart(f"cannot record in {settings.record}: {error.strerror}") from None


def _log(*, debug: bool) -> Any:
    """Return a logger that writes one JSON object a line to standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(sort_keys=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    return structlog.get_logger()


if __name__ == "__main__":
    main()

"""Strictness: whether a field that no schema declares is an error, as for kubectl, or only a warning."""

from __future__ import annotations

import click

LENIENT = "function.cli.lenient"
"""Where the command line keeps it, for the time of one command."""


def is_lenient() -> bool:
    """Whether --lenient was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(LENIENT))

"""What every command refuses in one line; light enough for a command line that only completes."""

from __future__ import annotations


class BadInput(Exception):
    """Something in the files that cannot be read: the message names file, object, field and value."""

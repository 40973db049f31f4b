"""Listeners, mTLS, limits, health, metrics, drain: everything about serving except the answers.

One event loop answers health and reflection and hands every RunFunction call to a bounded pool of worker
threads, so that a large request never keeps the server from saying that it is alive.
"""

from __future__ import annotations

from function.server.certificates import Certificates
from function.server.serve import serve
from function.server.settings import CannotStart, Settings

__all__ = ["CannotStart", "Certificates", "Settings", "serve"]

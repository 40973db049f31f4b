"""Keep the C allocator from giving memory back between large requests, only to ask for it again.

A large request passes through gRPC as one block of its size several times over. By default glibc returns
such blocks to the kernel at once, so the next request faults in every page anew, which takes longer than
reading it; and each thread has a heap of its own, so that the peaks add up. One heap that keeps what it has
is faster and its peak is smaller: after a large request the process stays as large as that request made it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_ALWAYS = 1 << 30
_MAX_MMAP_THRESHOLD = 32 << 20
"""The largest mmap threshold that every glibc takes."""


def keep_memory() -> bool:
    """Tell the allocator, where it is glibc's; return whether it listened. Call it before threads start."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mapped = mallopt(_MMAP_THRESHOLD, _ALWAYS) or mallopt(_MMAP_THRESHOLD, _MAX_MMAP_THRESHOLD)
        return bool(mapped and mallopt(_TRIM_THRESHOLD, _ALWAYS) and mallopt(_ARENA_MAX, 1))
    return False

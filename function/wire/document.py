"""One Kubernetes object on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import adler32

from function.exchange import Plain, Unreadable
from function.wire import read

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.exchange import Shape

_EMPTY = b"\x1a\x00"  # The value "".
_STRING = b"\x1a"


@dataclass(frozen=True, slots=True)
class WireDocument:
    """An object as the bytes of its Struct, decoded where somebody looks.

    `plain` and `project` raise `Unreadable` when the bytes they look at are no object or nest too deep.
    """

    content: bytes | memoryview

    @property
    def identity(self) -> Hashable | None:
        """The object's type, name, uid and resource version, with the length and the sum of its bytes.

        Crossplane writes map entries in another order on every call, so the bytes themselves cannot be
        compared; their number and their sum do not depend on the order. They tell apart two contents
        that carry one resource version, as a hand-edited file or a restored etcd can have.
        """
        try:
            top = read.level(self.content)
            metadata = read.level(read.inner(top.get("metadata", b"")) or b"")
        except Unreadable:
            return None
        uid, version = metadata.get("uid", _EMPTY), metadata.get("resourceVersion", _EMPTY)
        if _EMPTY in (uid, version) or not uid.startswith(_STRING) or not version.startswith(_STRING):
            return None
        return (
            top.get("apiVersion"),
            top.get("kind"),
            metadata.get("namespace"),
            metadata.get("name"),
            uid,
            version,
            len(self.content),
            adler32(self.content) & 0xFFFF,
        )

    def plain(self) -> dict[str, Plain]:
        """Return the whole object."""
        return read.plain(self.content)

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`."""
        return read.project(self.content, shape)

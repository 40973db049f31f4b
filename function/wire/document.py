"""One Kubernetes object on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from function.boundary import Plain, Unreadable
from function.wire.fast import read
from function.wire.fast.charge import charge
from function.wire.fast.pool_charge import pool_charges

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.boundary import DocumentIdentity, Shape

T = TypeVar("T")

_STRING = 0x1A
_HEAD = 2  # Bytes of a tag and of a length: all that the value "" has.


class _Bytes:
    """The bytes of an object."""

    __slots__ = ("content",)

    def __init__(self, content: bytes | memoryview) -> None:
        self.content = content

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    def plain(self) -> dict[str, Plain]:
        """Return the whole object."""
        return read.plain(self.content)


class WireDocument(_Bytes):
    """An object as the bytes of its Struct, decoded where somebody looks.

    `plain` and `project` raise `Unreadable` when the bytes they look at are no object or nest too deep.
    """

    __slots__ = ()

    def opened(self) -> OpenDocument:
        """Return the object with its keys and those of its metadata at hand."""
        return OpenDocument(self.content)

    @property
    def identity(self) -> DocumentIdentity | None:
        """What it is recognised by, see `OpenDocument`."""
        return self.opened().identity

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`."""
        return read.project(self.content, shape)

    def charge(self, make: Callable[..., T], deployment_label: str) -> T | None:
        """Return what a ModelReplica is charged for, see `fast.charge`."""
        return self.opened().charge(make, deployment_label)

    def pool_charges(self, make: Callable[..., T | None]) -> dict[str, T]:
        """Return what is charged to the pools of an InferenceCluster, see `fast.pool_charge`."""
        return self.opened().pool_charges(make)


class OpenDocument(_Bytes):
    """An object whose first levels are read, for whoever asks it several things at once."""

    __slots__ = ("_metadata", "_top")

    def __init__(self, content: bytes | memoryview) -> None:
        self.content = content
        self._top: Any = None
        self._metadata: Any = None
        """None where there is none to read; whoever wants to read it learns why."""
        try:
            self._top = top = read.level(content)
            if "metadata" in top:
                self._metadata = read.inner_level(top["metadata"])
        except Unreadable:
            pass

    def opened(self) -> OpenDocument:
        """Return itself."""
        return self

    @property
    def identity(self) -> DocumentIdentity | None:
        """The object's type, name and uid; its resource version, with the number of its bytes.

        Relied on: an API server never gives one resource version to two contents of one object. Files do,
        when somebody edits them, and so does an etcd that was restored. Bytes cannot be compared, because
        Crossplane writes map entries in another order on every call; their number tells some of those
        contents apart, not all. None where one of them (but the namespace) is missing.
        """
        metadata, top = self._metadata, self._top
        # Keys are tested, because `get` of a protobuf map costs more than a test and a subscript.
        if metadata is None or "uid" not in metadata or "resourceVersion" not in metadata:
            return None
        if "name" not in metadata or "kind" not in top or "apiVersion" not in top:
            return None
        uid, version = metadata["uid"], metadata["resourceVersion"]
        if len(uid) <= _HEAD or len(version) <= _HEAD or uid[0] != _STRING or version[0] != _STRING:
            return None
        which = (uid, metadata["name"], metadata.get("namespace"), top["kind"], top["apiVersion"])
        return which, (version, len(self.content))

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`."""
        if self._top is None:
            return read.project(self.content, shape)
        return read.project_level(self._top, shape, self._metadata)

    def charge(self, make: Callable[..., T], deployment_label: str) -> T | None:
        """Return what a ModelReplica is charged for, see `fast.charge`."""
        return None if self._metadata is None else charge(self._top, self._metadata, make, deployment_label)

    def pool_charges(self, make: Callable[..., T | None]) -> dict[str, T]:
        """Return what is charged to the pools of an InferenceCluster, see `fast.pool_charge`."""
        return {} if self._top is None else pool_charges(self._top, make)

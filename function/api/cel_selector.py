"""A CEL selector as a field of an object: it holds its program, so that nobody looks one up by its text."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from function.api.model import Keyed
from function.cel import CompileError, compile_cluster, compile_device, compile_node

if TYPE_CHECKING:
    from function.cel import Selector


class CelSelector(Keyed):
    """One CEL expression; over what, each kind of it says."""

    cel: str

    @abstractmethod
    def build(self, release: str) -> Selector:
        """Compile it. Raises CompileError."""

    @cached_property
    def by_release(self) -> dict[str, Selector | CompileError]:
        """Its programs, and what is wrong with it, as Kubernetes releases read it."""
        return {}

    def compiled(self, release: str) -> Selector | CompileError:
        """Its program as a Kubernetes release reads it, or what is wrong with it."""
        outcome = self.by_release.get(release)
        if outcome is None:
            try:
                outcome = self.build(release)
            except CompileError as error:
                # They hold this call's frames, and with them the request, until the collector comes by.
                error.__traceback__ = error.__context__ = None
                outcome = error
            self.by_release[release] = outcome
        return outcome

    def program(self, release: str) -> Selector:
        """Its program. Raises CompileError where it has none (`scheduler.selectors` asks first, once)."""
        outcome = self.compiled(release)
        if isinstance(outcome, CompileError):
            raise outcome
        return outcome


class DeviceSelector(CelSelector):
    """An expression over `device`."""

    def build(self, release: str) -> Selector:
        """Compile it. Raises CompileError."""
        return compile_device(self.cel, release)


class PoolSelector(CelSelector):
    """An expression over `node`, which is the pool. No release has another reading of it."""

    def build(self, _release: str) -> Selector:
        """Compile it. Raises CompileError."""
        return compile_node(self.cel)


class ClusterExpression(CelSelector):
    """An expression over `cluster`. No release has another reading of it."""

    def build(self, _release: str) -> Selector:
        """Compile it. Raises CompileError."""
        return compile_cluster(self.cel)

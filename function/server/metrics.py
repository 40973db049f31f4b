"""Metrics for Prometheus: how often, how long, how large, and with which outcome. No names, no contents.

A label has few values (an outcome, a reason code, a kind of work), so the number of series is bounded
whatever a fleet holds. docs/operations.md says what to watch. Sizes are bytes, times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from function.boundary.memory import Memory, Session
from function.runner import CallMetrics
from function.server.intake import Intake

PREFIX = "fleet_scheduler"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_BYTES = tuple(4**power * 1000 for power in range(10))  # 1 kB to 262 MB.


class LabelledCounter:
    """A counter with one label. It holds the series of each value, which the library looks up anew each time.

    Buys: a call adds to twenty series, most of them nothing, in a third of the time.
    """

    def __init__(self, registry: CollectorRegistry, name: str, text: str, label: str) -> None:
        """Register it under our prefix, with no series."""
        self._counter = Counter(f"{PREFIX}_{name}", text, [label], registry=registry)
        self._series: dict[str, Counter] = {}

    def add(self, value: str, number: float) -> None:
        """Add to the series of a label's value, which shows from then on, even at zero."""
        series = self._series.get(value)
        if series is None:
            series = self._series[value] = self._counter.labels(value)
        if number:
            series.inc(number)


class Metrics(CallMetrics):
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        """Start at zero."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        labelled = partial(LabelledCounter, self.registry)
        self._requests = labelled("requests", "RunFunction calls, by outcome.", "outcome")
        self._seconds = Histogram(
            f"{PREFIX}_request_seconds",
            "Time to answer a call, waiting for a free worker not included.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._request_bytes, self._response_bytes = (
            Histogram(f"{PREFIX}_{name}", text, buckets=_BYTES, registry=self.registry)
            for name, text in (
                ("request_bytes", "Size of requests."),
                ("response_bytes", "Size of responses."),
            )
        )
        self._placements = Counter(
            f"{PREFIX}_placements", "Replicas newly placed, over all answers.", registry=self.registry
        )
        self._work = labelled("work", "Work and outcome of all answers in numbers, by what.", "what")
        self._rejections = labelled("rejections", "Clusters rejected, by headline reason.", "reason")
        self._evaluations = labelled(
            "cel_evaluations",
            "CEL evaluations, run or known from earlier in the same call.",
            "answer",
        )
        self._objects = labelled(
            "objects", "Objects read, by whether they were parsed or reused from an earlier call.", "answer"
        )

    def watch(self, memory: Memory) -> None:
        """Show how full the memory of parsed objects is."""
        entries = Gauge(f"{PREFIX}_reuse_entries", "Objects remembered parsed.", registry=self.registry)
        entries.set_function(lambda: memory.entries)
        size = Gauge(f"{PREFIX}_reuse_bytes", "What they are charged, in bytes.", registry=self.registry)
        size.set_function(lambda: memory.bytes)

    def watch_intake(self, intake: Intake) -> None:
        """Show how many bytes of requests are held."""
        text = "Bytes of requests received, waiting and worked on, and reserved for those that arrive."
        Gauge(f"{PREFIX}_held_bytes", text, registry=self.registry).set_function(lambda: intake.held)

    def ended(self, outcome: str) -> None:
        """Count a call."""
        self._requests.add(outcome, 1)

    def measured(self, *, seconds: float, received: int, sent: int) -> None:
        """Record how long a call took and how large it was."""
        self._seconds.observe(seconds)
        self._request_bytes.observe(received)
        self._response_bytes.observe(sent)

    def decided(self, counts: Mapping[str, int], rejections: Mapping[str, int], session: Session) -> None:
        """Add what one answer counted."""
        self._placements.inc(counts.get("placed", 0))
        self._evaluations.add("evaluated", counts.get("cel_evaluations", 0))
        self._evaluations.add("reused", counts.get("cel_reused", 0))
        self._objects.add("parsed", session.parses)
        self._objects.add("reused", session.reuses)
        for what, number in counts.items():
            self._work.add(what, number)
        for reason, number in rejections.items():
            self._rejections.add(reason, number)

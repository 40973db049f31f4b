"""Write the dashboards of example/observability from the tables below: `python -m hack.dashboards`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "example" / "observability" / "dashboards.yaml"
WIDTH, HEIGHT = 24, 8
"""Columns of Grafana's grid, and rows that a graph takes."""
STAT_HEIGHT = 4

Plain = dict[str, Any]


class Panel(NamedTuple):
    """A panel: what it is called, how it is drawn, and what it asks, with the legend of each answer."""

    title: str
    kind: str
    queries: dict[str, str]
    unit: str = "short"
    help: str = ""
    width: int = 12


def rate(metric: str, by: str) -> str:
    """Return the rate of a counter by a label."""
    return f"sum by ({by}) (rate({metric}[$__rate_interval]))"


def quantile(share: str, metric: str) -> str:
    """Return a quantile of a histogram over all copies."""
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


OURS = '{job="function-fleet-scheduler"}'
"""Metrics of the process have the same names everywhere."""
MEMORY = f"process_resident_memory_bytes{OURS}"
CPU = f"rate(process_cpu_seconds_total{OURS}[$__rate_interval])"
FLEET = (
    Panel("Replicas wanted", "stat", {"": "sum(fleet_deployment_replicas_wanted)"}, width=4),
    Panel("Replicas placed", "stat", {"": "sum(fleet_deployment_replicas_placed)"}, width=4),
    Panel("Replicas that serve", "stat", {"": "sum(fleet_deployment_replicas_ready)"}, width=4),
    Panel("Replicas missing", "stat", {"": "sum(fleet:replicas_missing)"}, width=4),
    Panel("Pools overcommitted", "stat", {"": "sum(fleet_cluster_pool_overcommitted)"}, width=4),
    Panel("Clusters drained", "stat", {"": "count(fleet:cluster_drained) or vector(0)"}, width=4),
    Panel(
        "Missing replicas by deployment and reason",
        "table",
        {"": "fleet:replicas_missing:reason"},
        help="kubectl fleet why NAMESPACE/NAME says why for every cluster.",
    ),
    Panel(
        "Missing replicas",
        "timeseries",
        {"{{namespace}}/{{deployment}}": "fleet:replicas_missing > 0"},
    ),
    Panel(
        "Placed replicas that do not serve",
        "timeseries",
        {
            "{{namespace}}/{{deployment}}": (
                "fleet_deployment_replicas_placed - fleet_deployment_replicas_ready > 0"
            )
        },
    ),
    Panel(
        "Replicas on drained clusters",
        "timeseries",
        {"{{cluster}}": "fleet:replicas_on_drained"},
        help="They wait for a place elsewhere, tolerate the taint, or are paced by placement.disruption.",
    ),
    Panel("Replicas by cluster", "timeseries", {"{{cluster}}": "count by (cluster) (fleet_replica_info)"}),
    Panel("Overcommitted pools", "table", {"": "fleet_cluster_pool_overcommitted == 1"}),
    Panel("Clusters that take nothing new", "table", {"": 'fleet_cluster_condition{type="Ready"} == 0'}),
    Panel("Nodes by pool", "table", {"": "fleet_cluster_pool_nodes"}),
)
FUNCTION = (
    Panel(
        "Calls by outcome",
        "timeseries",
        {"{{outcome}}": rate("fleet_scheduler_requests_total", "outcome")},
        "reqps",
        "Anything but answered is worth a look into the log.",
    ),
    Panel(
        "Time to answer",
        "timeseries",
        {
            "half of the calls": quantile("0.5", "fleet_scheduler_request_seconds"),
            "99 %": quantile("0.99", "fleet_scheduler_request_seconds"),
        },
        "s",
        "Waiting for a free worker is not in it.",
    ),
    Panel(
        "Size of requests and responses, 99 %",
        "timeseries",
        {
            "requests": quantile("0.99", "fleet_scheduler_request_bytes"),
            "responses": quantile("0.99", "fleet_scheduler_response_bytes"),
        },
        "bytes",
        "Requests above --max-recv-message-size are refused before they are counted.",
    ),
    Panel("Requests held", "timeseries", {"{{instance}}": "fleet_scheduler_held_bytes"}, "bytes"),
    Panel(
        "Replicas newly placed",
        "timeseries",
        {"placed": "sum(rate(fleet_scheduler_placements_total[$__rate_interval]))"},
        help="Counted in every answer that places them.",
    ),
    Panel(
        "Clusters rejected by reason",
        "timeseries",
        {"{{reason}}": rate("fleet_scheduler_rejections_total", "reason")},
        help="docs/reasons.md says what each means.",
    ),
    Panel("Work", "timeseries", {"{{what}}": rate("fleet_scheduler_work_total", "what")}),
    Panel("Selectors", "timeseries", {"{{answer}}": rate("fleet_scheduler_cel_evaluations_total", "answer")}),
    Panel("Objects", "timeseries", {"{{answer}}": rate("fleet_scheduler_objects_total", "answer")}),
    Panel("Memory", "timeseries", {"{{instance}}": MEMORY}, "bytes"),
    Panel("CPU", "timeseries", {"{{instance}}": CPU}),
    Panel("Remembered objects", "timeseries", {"{{instance}}": "fleet_scheduler_reuse_bytes"}, "bytes"),
)
HEAD = """\
# Dashboards for Grafana, as its sidecar finds them by the label.
# To import one by hand, take the text of its name.
# Written by `python -m hack.dashboards`.
apiVersion: v1
kind: ConfigMap
metadata:
  name: fleet-dashboards
  namespace: monitoring
  labels: {grafana_dashboard: "1"}
data:
"""
BOARDS = {
    "fleet": ("Fleet: models and clusters", FLEET),
    "function": ("Fleet: the scheduling function", FUNCTION),
}


def board(name: str) -> Plain:
    """Return a dashboard as Grafana imports it."""
    title, panels = BOARDS[name]
    column = row = 0
    drawn = []
    for number, panel in enumerate(panels, start=1):
        height = STAT_HEIGHT if panel.kind == "stat" else HEIGHT
        if column + panel.width > WIDTH:
            column, row = 0, row + height
        position = {"x": column, "y": row, "w": panel.width, "h": height}
        drawn.append({"id": number, "gridPos": position, **_drawn(panel)})
        column += panel.width
        if column == WIDTH:
            column, row = 0, row + height
    return {
        "title": title,
        "uid": f"fleet-scheduler-{name}",
        "tags": ["fleet-scheduler"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": drawn,
    }


def _drawn(panel: Panel) -> Plain:
    source = {"type": "prometheus", "uid": "${datasource}"}
    table = panel.kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": source,
            "expr": query,
            "legendFormat": legend or "__auto",
            **({"format": "table", "instant": True} if table else {}),
        }
        for number, (legend, query) in enumerate(panel.queries.items())
    ]
    hidden = dict.fromkeys(("Time", "__name__", "job", "instance", "endpoint", "pod", "service"), True)
    organized = [{"id": "organize", "options": {"excludeByName": hidden}}]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
        **({"transformations": organized} if table else {}),
    }


def written() -> str:
    """Return the ConfigMap of all dashboards, with each as the JSON text that Grafana imports."""
    lines = [*HEAD.splitlines()]
    for name in BOARDS:
        text = json.dumps(board(name), indent=1)
        lines += [f"  {name}.json: |", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the file. Returns the exit code."""
    FILE.write_text(written())
    return 0


if __name__ == "__main__":
    sys.exit(main())

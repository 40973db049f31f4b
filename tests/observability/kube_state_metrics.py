"""Play kube-state-metrics: what its configuration makes of custom resources, as its documentation says.

The program is in no registry that this project installs from. Here is the part that the configuration uses:
gauges and infos, paths through objects and lists, values of conditions, and `nilIsZero`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Plain = dict[str, Any]
BOOLEANS = {"true": 1, "yes": 1, "false": 0, "no": 0, "unknown": 0}


def exposed(config: Plain, objects: Iterable[Plain]) -> str:
    """Return the metrics of the objects, as Prometheus scrapes them."""
    objects = list(objects)
    lines = []
    for resource in config["spec"]["resources"]:
        wanted = resource["groupVersionKind"]
        version = f"{wanted['group']}/{wanted['version']}"
        of_kind = [
            plain for plain in objects if (plain["apiVersion"], plain["kind"]) == (version, wanted["kind"])
        ]
        for metric in resource["metrics"]:
            name = f"{resource['metricNamePrefix']}_{metric['name']}"
            kind = metric["each"]["type"].lower()
            lines += [
                f"# HELP {name} {metric['help']}",
                f"# TYPE {name} {'gauge' if kind == 'info' else kind}",
            ]
            for plain in of_kind:
                common = labels(resource["labelsFromPath"], plain)
                for more, value in samples(metric["each"], plain):
                    listed = ",".join(f'{key}="{text}"' for key, text in sorted((common | more).items()))
                    lines.append(f"{name}{{{listed}}} {value}")
    return "\n".join(lines) + "\n"


def samples(rule: Plain, plain: Plain) -> Iterator[tuple[dict[str, str], float]]:
    """Yield the labels and the value of every series of a metric."""
    reading = rule[rule["type"].lower()]
    value = at(plain, reading.get("path", []))
    items = value if isinstance(value, list) else [value]
    for item in items:
        if rule["type"] == "Info":
            if item is not None:
                yield labels(reading["labelsFromPath"], item), 1
            continue
        number_or_text = at(item, reading.get("valueFrom", []))
        if number_or_text is None and not reading.get("nilIsZero"):
            continue
        yield labels(reading.get("labelsFromPath", {}), item), number(number_or_text)


def at(value: Any, path: list[str]) -> Any:
    """Return what stands at a path; None where a part of it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def labels(paths: dict[str, list[str]], value: Any) -> dict[str, str]:
    """Return the labels that are there."""
    texts = {name: at(value, path) for name, path in paths.items()}
    return {name: str(text) for name, text in texts.items() if text is not None}


def number(value: Any) -> float:
    """Return a value as a number: a missing one is zero, and so is a condition that is not True."""
    if value is None:
        return 0
    if isinstance(value, str):
        return BOOLEANS[value.lower()]
    return float(value)

"""What a device has where a selector fails, and what the selector wants there."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.devices import Device
from function.api.reasons import Gap
from function.cel import compile_device
from function.scheduler.selectors import gap
from tests.support import build

Plain = dict[str, Any]
MEMORY = 'device.capacity["gpu.nvidia.com"].memory'
NAME = 'device.attributes["gpu.nvidia.com"].architecture'


@pytest.mark.parametrize(
    ("selector", "expected", "reason"),
    [
        ('device.driver == "gpu.amd.com"', Gap("driver gpu.nvidia.com", "gpu.amd.com"), "a name"),
        (f'{NAME} != "Hopper"', Gap("architecture Hopper", "other than Hopper"), "another name"),
        (f'{MEMORY}.compareTo(quantity("96Gi")) >= 0', Gap("memory 80Gi", "at least 96Gi"), "at least"),
        (f'{MEMORY}.isGreaterThan(quantity("80Gi"))', Gap("memory 80Gi", "more than 80Gi"), "more than"),
        (f'{MEMORY}.compareTo(quantity("40Gi")) <= 0', Gap("memory 80Gi", "at most 40Gi"), "at most"),
        (f'{MEMORY}.isLessThan(quantity("40Gi"))', Gap("memory 80Gi", "less than 40Gi"), "less than"),
        (
            f'{NAME} == "Hopper" && ({NAME} == "Ada")',
            Gap("architecture Hopper", "Ada"),
            "of several terms the first that fails, though they read the same",
        ),
        (
            f'{MEMORY}.compareTo(quantity("40Gi")) >= 0 && {MEMORY}.compareTo(quantity("48Gi")) <= 0',
            Gap("memory 80Gi", "at most 48Gi"),
            "a range: the end that is missed",
        ),
        (
            f'{NAME} in ["Ada", "Blackwell"]',
            Gap("architecture Hopper", 'architecture in ["Ada", "Blackwell"]'),
            "what is no comparison stands as it is, without the domain",
        ),
        (
            f"{NAME}.startsWith('{'x' * 34}')",
            Gap("architecture Hopper", f"architecture.startsWith('{'x' * 34}…"),
            "and has an end: one of 61 characters",
        ),
        (
            '"gpu.amd.com" in device.attributes',
            Gap("", '"gpu.amd.com" in device.attributes'),
            "a term that reads no name of its own has nothing to show",
        ),
        (
            f'({NAME} == "Ada" || {NAME} == "Hopper") && {NAME} == "Ada" && ({NAME} == "Ada" || true)',
            Gap("architecture Hopper", "Ada"),
            "a comparison that is written in other terms, too",
        ),
        (
            f"{NAME}.startsWith('{'x' * 33}')",
            Gap("architecture Hopper", f"architecture.startsWith('{'x' * 33}')"),
            "sixty characters are shown",
        ),
        (
            'device.attributes["gpu.nvidia.com"].model == device.driver',
            Gap("driver gpu.nvidia.com, no model", "model == device.driver"),
            "a term that reads several names has all of them, or none",
        ),
        ('device.attributes["gpu.nvidia.com"].nvlink == false', Gap("nvlink true", "false"), "a bool"),
        (
            '"b" in device.attributes["gpu.nvidia.com"].links && device.driver == "x"',
            Gap("links [a, c]", '"b" in links'),
            "a list",
        ),
        (
            "lists.range(40).all(x, x >= 0) && device.driver == 'gpu.amd.com'",
            Gap(),
            "a term that takes too long to look at may be the one that fails",
        ),
        ('device.driver == "gpu.nvidia.com"', Gap(), "nothing fails"),
    ],
)
def test_what_it_has_and_what_is_wanted(selector: str, expected: Gap, reason: str) -> None:
    published = build.gpu(8)
    published["attributes"] |= {"nvlink": {"bool": True}, "links": {"list": {"string": ["a", "c"]}}}
    device = Device.parse(published)
    assert gap(compile_device(selector), device.subject) == expected, reason

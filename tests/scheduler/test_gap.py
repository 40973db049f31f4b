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
            f"{NAME}.startsWith('{'x' * 80}')",
            Gap("architecture Hopper", f"architecture.startsWith('{'x' * 34}…"),
            "and has an end",
        ),
        (
            '"gpu.amd.com" in device.attributes',
            Gap("", '"gpu.amd.com" in device.attributes'),
            "a term that reads no name of its own has nothing to show",
        ),
        ('device.driver == "gpu.nvidia.com"', Gap(), "nothing fails"),
    ],
)
def test_what_it_has_and_what_is_wanted(selector: str, expected: Gap, reason: str) -> None:
    device = Device.parse(build.gpu(8))
    assert gap(compile_device(selector), device.subject) == expected, reason

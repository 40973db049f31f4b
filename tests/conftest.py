"""What every test shares: how much hypothesis tries (FLEET_SCALE), and an environment without a terminal."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# pytest imports readline, which puts the size of the terminal into the environment of every process it
# starts, and so into the workers of `-n`: a table would be 80 columns wide there, and a test of it would
# depend on TERM.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

_EXAMPLES = {"quick": 60, "gate": 3_000, "soak": 50_000}

for name, examples in _EXAMPLES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # Time is measured by the benchmarks, on a quiet machine.
        derandomize=name == "quick",  # The quick share is the same for everybody.
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("FLEET_SCALE", "quick"))

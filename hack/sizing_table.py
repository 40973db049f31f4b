"""Write the table of docs/sizing.md anew: `python -m hack.sizing_table`."""

from __future__ import annotations

import sys
from pathlib import Path

from function.cli.sizing import models
from function.cli.sizing.memory import weights_total
from hack import section

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sizing.md"
START, END = "<!-- table -->", "<!-- /table -->"
CACHE = {"llama-3.1-405b": "516.096 kB", "deepseek-v3": "70.272 kB"}
"""KV cache per token at 16 bits, where a report has it."""


def table() -> str:
    """Every shape, as published and as estimated."""
    header = (
        "| model | parameters, published | estimated | off by | from | "
        "KV cache per token, published | estimated | weights |"
    )
    lines = [header, "|---|---|---|---|---|---|---|---|"]
    for name in [name for name, facts in models.table().items() if "config" in facts]:
        model = models.known_model(name)
        shape = model.architecture
        cells = (
            name,
            f"{model.published:g} B",
            f"{shape.parameters / 1e9:.2f} B",
            f"{round(model.error, 3) + 0.0:+.1%}",
            model.source,
            CACHE.get(name, "not published"),
            f"{shape.cache_per_token('bf16') / 1000:.3f} kB",
            f"{weights_total(shape, shape.dtype) / 1e9:.0f} GB {shape.dtype}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def refreshed(text: str) -> str:
    """The page with the table as it is now."""
    return section.replaced(text, START, table(), END)


if __name__ == "__main__":
    sys.exit(section.write(PAGE, refreshed))

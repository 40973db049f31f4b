"""Write the table of docs/sizing.md anew: `python -m hack.sizing_table`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from function.cli.sizing.architecture import read_config
from function.cli.sizing.memory import cache_per_token, weights_total

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sizing.md"
CONFIGS = ROOT / "tests" / "cli" / "configs"
START, END = "<!-- table -->", "<!-- /table -->"
PUBLISHED = {
    "llama-3.1-8b": ("8.03 B", "not published"),
    "llama-3.1-70b": ("70.6 B", "not published"),
    "llama-3.1-405b": ("405.9 B", "516.096 kB"),
    "qwen3-8b": ("8.2 B", "not published"),
    "mixtral-8x7b": ("46.7 B", "not published"),
    "deepseek-v3": ("671 B", "70.272 kB"),
    "kimi-k2": ("1 T", "not published"),
}
"""Parameters and KV cache per token at 16 bits, as the model cards and papers say."""


def table() -> str:
    """Every model, as published and as estimated."""
    lines = [
        "| model | parameters, published | estimated | KV cache per token, published | estimated | weights |",
        "|---|---|---|---|---|---|",
    ]
    for name, (parameters, cache) in PUBLISHED.items():
        model = read_config(json.loads((CONFIGS / f"{name}.json").read_text()), name)
        weights = f"{weights_total(model, model.dtype) / 1e9:.0f} GB {model.dtype}"
        cells = (
            name,
            parameters,
            f"{model.parameters / 1e9:.2f} B",
            cache,
            f"{cache_per_token(model, 'bf16') / 1000:.3f} kB",
            weights,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def refreshed(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> int:
    """Write the page."""
    PAGE.write_text(refreshed(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Draw the pictures of the fleet map: `python -m hack.screenshots`. Needs chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from function.cli import main as command_line

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
HEADLESS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""How a browser runs without a screen, and asks nobody for anything."""
FLAGS = (*HEADLESS, "--hide-scrollbars", "--virtual-time-budget=2000")
SHOTS = {"map-light.png": ("", 1), "map-dark.png": ("#ml-large%2Fllama-405b", 0)}
"""File to the deployment that is filtered for, and the colour scheme (0 dark, 1 light)."""


def main() -> int:
    """Write the SVG picture and the screenshots. Returns the exit code."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        sys.stderr.write("chromium is not on this machine\n")
        return 1
    IMAGES.mkdir(exist_ok=True)
    example = str(ROOT / "example")
    CliRunner().invoke(command_line, ["map", example, "-o", str(IMAGES / "fleet.svg")])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "fleet.html"
        CliRunner().invoke(command_line, ["map", example, "-o", str(page)])
        for name, (anchor, scheme) in SHOTS.items():
            options = (f"--user-data-dir={folder}/{name}", f"--blink-settings=preferredColorScheme={scheme}")
            target = (f"--screenshot={IMAGES / name}", "--window-size=1080,700", f"file://{page}{anchor}")
            subprocess.run([browser, *FLAGS, *options, *target], check=True, capture_output=True)  # noqa: S603
    return 0


if __name__ == "__main__":
    sys.exit(main())

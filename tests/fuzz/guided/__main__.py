"""Coverage-guided fuzzing with atheris: `make fuzz SECONDS=600`, or one target by itself.

`python -m tests.fuzz.guided TARGET --seconds 600` starts from the kept corpus and prints what it finds: the
input, and a command that shows it again and needs no fuzzer. `--keep` writes the corpus anew, minimised.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.guided import corpus

WORK = Path("build/fuzz")
SLOW = 30
"""Seconds after which an input is a finding."""


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=corpus.TARGETS)
    parser.add_argument("--seconds", type=int, default=60, help="how long to look")
    parser.add_argument("--input", metavar="BASE64", help="look at this one input, without the fuzzer")
    parser.add_argument("--keep", action="store_true", help="write the kept corpus anew from what was found")
    parser.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside is not None:
        inside(asked.target, asked.inside)
    if asked.input is not None:
        module(asked.target).one(base64.b64decode(asked.input))
        say("nothing is wrong with this input")
        return 0
    return keep(asked.target) if asked.keep else look(asked.target, asked.seconds)


def inside(target: str, flags: list[str]) -> None:
    """Run the fuzzer in this process: it instruments the function as it is imported, and never returns."""
    import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

    with atheris.instrument_imports(include=["function"]):
        target_module = module(target)
    again = (
        f"{sys.executable} -m tests.fuzz.guided {target} --inside"  # How libFuzzer starts itself to merge.
    )
    atheris.Setup([again, *flags, f"-max_len={target_module.LONGEST}"], target_module.one)
    atheris.Fuzz()


def look(target: str, seconds: int) -> int:
    """Look for findings for so long; return 1 when there is one."""
    inputs, findings = unpacked(target), WORK / target / "findings"
    shutil.rmtree(findings, ignore_errors=True)
    findings.mkdir(parents=True)
    words = WORK / target / "words"
    words.write_text("\n".join(map(quoted, module(target).TOKENS)) + "\n", encoding="utf-8")
    flags = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOW}",
        "-rss_limit_mb=4096",
        "-len_control=10",
        "-print_final_stats=1",
    ]
    child(target, *flags, f"-dict={words}", f"-artifact_prefix={findings}/", str(inputs))
    found_now = sorted(path for path in findings.iterdir() if not path.name.startswith("slow-unit"))
    for entry in found_now:
        content = entry.read_bytes()
        text = base64.b64encode(content).decode()
        say(f"\nFINDING ({entry.name.split('-')[0]}), input {content!r}\nTo see it again:")
        say(f"  .venv/bin/python -m tests.fuzz.guided {target} --input '{text}'")
    return int(bool(found_now))


def keep(target: str) -> int:
    """Write the kept corpus: the fewest small inputs that reach everything that was reached."""
    least = WORK / target / "least"
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir(parents=True)
    child(target, "-merge=1", "-use_counters=0", str(least), str(unpacked(target)))
    corpus.write(target, (path.read_bytes() for path in least.iterdir()))
    say(f"{len(corpus.read(target))} inputs are kept in {corpus.path(target)}")
    return 0


def child(target: str, *flags: str) -> None:
    """Run the fuzzer in a process of its own; how it ends is told by what it leaves behind."""
    command = [sys.executable, "-m", "tests.fuzz.guided", target, "--inside", *flags]
    subprocess.run(command, check=False)


def unpacked(target: str) -> Path:
    """Return the folder of the working corpus, with the kept inputs in it."""
    folder = WORK / target / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate((*module(target).SEEDS, *corpus.read(target))):
        (folder / f"kept-{number}").write_bytes(seed)
    return folder


def module(target: str) -> Any:
    """Return the module of a target: `one`, and what the fuzzer starts from."""
    return importlib.import_module(f"tests.fuzz.guided.{target}")


def say(line: str) -> None:
    """Tell whoever started this."""
    sys.stdout.write(f"{line}\n")


def quoted(word: str) -> str:
    """Return a word as libFuzzer's dictionaries have it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word.encode()) + '"'


if __name__ == "__main__":
    sys.exit(main())

"""As much of a Dockerfile as the tests ask about."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Stage:
    """One `FROM` and what follows it, arguments filled in."""

    image: str
    instructions: tuple[tuple[str, str], ...]

    @property
    def debian(self) -> str:
        """The Debian release of the base image, by its number."""
        names = {"bookworm": "12", "trixie": "13"}
        match = re.search(r"debian:?(\d+)|(bookworm|trixie)", self.image)
        assert match, f"{self.image} does not say its Debian release"
        return match[1] or names[match[2]]

    def lines(self, keyword: str) -> list[str]:
        return [rest for word, rest in self.instructions if word == keyword]

    def last(self, keyword: str) -> str:
        return self.lines(keyword)[-1]

    def words(self, keyword: str) -> list[str]:
        """The words of an instruction in exec form."""
        words: list[str] = json.loads(self.last(keyword))
        return words


@dataclass(frozen=True)
class Dockerfile:
    """All stages, and the base images by the argument that names them."""

    stages: tuple[Stage, ...]
    bases: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Dockerfile:
        text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
        joined = re.sub(r"\\\n\s*", " ", text)
        parts = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
        instructions = [(part[0].upper(), part[1] if len(part) > 1 else "") for part in parts]
        values = dict(rest.split("=", 1) for word, rest in instructions if word == "ARG" and "=" in rest)
        stages: list[list[tuple[str, str]]] = []
        for word, rest in instructions:
            filled = re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], match[0]), rest)
            if word == "FROM":
                stages.append([])
            if stages:
                stages[-1].append((word, filled))
        named = [re.search(r"\$\{?(\w+)", rest) for word, rest in instructions if word == "FROM"]
        bases = {match[1]: values[match[1]] for match in named if match}
        made = tuple(Stage(_image(stage[0][1]), tuple(stage[1:])) for stage in stages)
        assert len(bases) == len(made), "every base image can be set from outside"
        return cls(made, bases)

    @property
    def uid(self) -> int:
        """The user the image runs as."""
        return int(self.stages[-1].last("USER").split(":")[0])

    @property
    def environment(self) -> Path:
        """Where the virtual environment is: the target of the copy from the first stage."""
        copies = [shlex.split(rest) for rest in self.stages[-1].lines("COPY")]
        return Path(next(words[-1] for words in copies if words[0].startswith("--from")))


def _image(rest: str) -> str:
    return next(word for word in rest.split() if not word.startswith("--"))

"""The models that `size` knows by name: their configurations as facts, and what was published about them.

`models.json` holds the facts. Models of one shape share a configuration; the repository, the longest context
and the arguments of the engine are each model's own. `python -m hack.sizing_table` writes the table of
docs/sizing.md, where every estimate stands beside the published number.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

from function.boundary import frozen
from function.cli.bad_input import BadInput, closest
from function.cli.sizing.memory import Architecture, read_config

if TYPE_CHECKING:
    import click


HUB = "https://huggingface.co/"
"""Where repositories are; an address that begins so is a repository too."""


@frozen
class SizedModel:
    """A model: its shape, and what an engine has to be told to load it."""

    name: str
    """A name for objects, made of the model's."""
    architecture: Architecture
    repository: str
    """Where the weights are; empty when it is not known."""
    arguments: tuple[str, ...] = ()
    """Arguments that the engine needs for this model beside the usual ones."""
    published: float = 0.0
    """Billions of parameters as its makers say; 0 when it is not known."""
    source: str = ""
    """Where they say so."""

    @property
    def summary(self) -> str:
        """Name, size, and how far that is from the size its makers say.

        `llama-3.1-8b (meta-llama/Llama-3.1-8B): 8.03 billion parameters (published 8.03, +0.0%)`
        """
        whose = f" ({self.repository})" if self.repository else ""
        deviation = round(self.error, 3) + 0.0  # Adding zero takes the sign off a negative one.
        against = f" (published {self.published:g}, {deviation:+.1%})" if self.published else ""
        return f"{self.name}{whose}: {self.architecture.parameters / 1e9:.2f} billion parameters{against}"

    @property
    def error(self) -> float:
        """How far the estimated parameters are from those published, as a share of them."""
        return self.architecture.parameters / 1e9 / self.published - 1 if self.published else 0.0


@cache
def table() -> dict[str, dict[str, Any]]:
    """The table of models, by the name that `size` has for each, in the order of the names.

    One that has no `config` has the shape of another.
    """
    text = Path(__file__).with_name("models.json").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = json.loads(text)
    return dict(sorted(facts.items()))


def known_model(name: str) -> SizedModel:
    """A model by its name. Raises KeyError.

    Models of one shape share its configuration; the weights and the longest context are each one's own.
    """
    facts = table()[name]
    shape = table()[facts["shape"]] if "shape" in facts else facts
    published = shape["published"]
    architecture = read_config(shape["config"], name)
    return SizedModel(
        name,
        replace(architecture, context=facts.get("context", architecture.context)),
        facts["repository"],
        tuple(facts.get("arguments", shape["arguments"])),
        published["billions"],
        published["source"],
    )


def of_repository(repository: str) -> SizedModel | None:
    """The model whose weights are in a repository, in any case of letters; None where it is not known."""
    wanted = repository.lower()
    name = next((name for name, facts in table().items() if facts["repository"].lower() == wanted), None)
    return known_model(name) if name else None


class ModelNames:
    """Completes the models that are known by name."""

    reference = ("function.cli.sizing.models:ModelNames",)
    """How the table of completions says it."""

    def __call__(self, _: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those that begin so."""
        return [CompletionItem(name) for name in table() if name.startswith(incomplete)]


def model(given: str) -> SizedModel:
    """A model by its name, its repository, or the path of its `config.json` or its folder. Raises BadInput.

    A repository means its own weights and no others: one that is not listed is refused with the nearest.
    Upper and lower case are one in a repository's name. In a name of the list they are not: `Qwen2.5-72B` is
    a repository that is not listed, and `qwen2.5-72b` the list's name for another one.
    """
    given = given.strip().removeprefix(HUB).rstrip("/")
    repositories = {facts["repository"]: name for name, facts in table().items()}
    unqualified = {repository.rpartition("/")[2].lower(): name for repository, name in repositories.items()}
    by_repository = {repository.lower(): name for repository, name in repositories.items()}
    name = given if given in table() else {**unqualified, **by_repository}.get(given.lower())
    if name is not None:
        return known_model(name)
    path = Path(given)
    if not path.exists() and path.suffix != ".json":
        last = [repository.rpartition("/")[2] for repository in repositories]
        near = closest(given, repositories if "/" in given else [*last, *table()])
        text = f'no model "{given}", and no such file; {near} (--list has all)'
        raise BadInput(f"{text}; of any other, give its config.json" if "/" in given else text)
    return _from_file(path / "config.json" if path.is_dir() else path)


def _from_file(path: Path) -> SizedModel:
    """A model from a local config.json, named by the repository in it where there is one.

    Raises:
        BadInput: where the file cannot be read, is not JSON, or is the config of no transformer.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    except ValueError as error:  # A number of more digits than Python reads, too.
        raise BadInput(f"{path}: is not JSON: {error}") from None
    architecture = read_config(plain, str(path))
    repository = plain.get("_name_or_path")
    repository = repository if isinstance(repository, str) and "/" in repository.strip("/.") else ""
    return SizedModel(repository.rpartition("/")[2] or architecture.kind or "model", architecture, repository)

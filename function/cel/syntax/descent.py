"""Walk down a tree without recursion: however deep a selector nests, Python's stack does not grow.

A rule is a generator: it yields what it wants to know about (a child), is sent the answer, and returns its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

Wanted = TypeVar("Wanted")

DescentRule: TypeAlias = Callable[[Wanted], Any]
"""From what is wanted to its answer, or to the steps that yield what they want and return the answer."""


def descend(rule: DescentRule[Wanted], root: Wanted) -> Any:
    """Return the answer of the rule for the root, answering what each step yields on the way."""
    answer = rule(root)
    if not isinstance(answer, GeneratorType):
        return answer
    stack: list[Generator[Wanted, Any, Any]] = [answer]
    answer = None
    while stack:
        try:
            wanted = stack[-1].send(answer)
        except StopIteration as done:
            stack.pop()
            answer = done.value
            continue
        answer = rule(wanted)
        if isinstance(answer, GeneratorType):
            stack.append(answer)
            answer = None
    return answer


def collect(items: Iterable[Wanted]) -> Generator[Wanted, Any, list[Any]]:
    """Ask for all items and return the answers, with `yield from`."""
    answers = []
    for item in items:
        answer = yield item
        answers.append(answer)
    return answers

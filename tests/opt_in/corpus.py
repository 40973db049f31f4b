"""The corpus: digests of what is answered to random requests that use no opt-in field.

What is opt-in may not change these answers. One line of `corpus.txt` holds a seed and three
digests: of the request, of the decision (everything in the response but texts and requirements, which have
`tests/wire/test_calls.py`), and of the texts. A note
about an overcommitted pool is left out of the texts: it is said where it is observed, whatever was asked for.

When a fix changes answers on purpose, say so and record again: python -m tests.opt_in.corpus
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.deployment.handler import run
from tests.support.generate import world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import Condition, Response, Result

FILE = Path(__file__).with_name("corpus.txt")
SIZE = 1_200
NOTE = "; PoolOvercommitted: "

Line = tuple[str, str, str]


def digest(value: Any) -> str:
    """Digest plain values, independent of the order of maps."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def line(seed: int) -> Line:
    """Digest the request of a seed and the answer to it."""
    asked = world(seed)
    answer = run(asked.request())
    return digest(json.loads(asked.dump())), digest(decision(answer)), digest(texts(answer))


def decision(answer: Response) -> Any:
    """Everything the response holds but its texts and its requirements."""
    return {
        "desired": {key: [resource.resource, resource.ready] for key, resource in answer.desired.items()},
        "status": dict(answer.status),
        "readiness": [answer.unready, answer.settled, answer.ttl],
        "conditions": [
            [condition.type, condition.status, condition.reason] for condition in answer.conditions
        ],
        "results": [[result.severity, result.reason] for result in answer.results],
    }


def _spoken(answer: Response) -> Iterator[Condition | Result]:
    yield from answer.conditions
    yield from answer.results


def texts(answer: Response) -> Any:
    """The messages, without the note."""
    return [condition.message.partition(NOTE)[0] for condition in _spoken(answer)]


def recorded() -> dict[int, Line]:
    """Read what was recorded."""
    rows = (row.split() for row in FILE.read_text(encoding="utf-8").splitlines())
    return {int(seed): (request, decided, said) for seed, request, decided, said in rows}


def record() -> None:
    """Record the answers of this tree."""
    rows = (" ".join((str(seed), *line(seed))) for seed in range(SIZE))
    FILE.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()

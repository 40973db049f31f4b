"""The published schema of what commands answer as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "answers.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def held(answer: Any) -> None:
    """Hold an answer against the schema of its kind, and say shortly where it differs."""
    assert isinstance(answer, dict), answer
    one = VALIDATOR.evolve(schema={"$ref": f"#/$defs/{answer['kind']}", "$defs": SCHEMA["$defs"]})
    errors = [f"{error.json_path}: {error.message[:200]}" for error in one.iter_errors(answer)]
    assert not errors, errors
    assert VALIDATOR.is_valid(answer)

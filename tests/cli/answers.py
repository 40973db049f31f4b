"""The published schema of what commands answer as data."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "answers.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

"""The JSON schema of SARIF 2.1.0, which is not part of this project.

It is searched for as `shared/data/sarif-schema-2.1.0.json` in the directories above the project.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PLACES = [above / "shared/data/sarif-schema-2.1.0.json" for above in Path(__file__).parents[3:]]


def validator() -> Any:
    """Return a validator of jsonschema with the schema; skips the test if either is missing."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    path = next((place for place in PLACES if place.is_file()), None)
    if path is None:
        pytest.skip("the SARIF schema is not beside the project")
    return jsonschema.Draft4Validator(json.loads(path.read_text()))

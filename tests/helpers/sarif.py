"""The schema of SARIF 2.1.0, which is not part of this project.

It is looked for as `shared/data/sarif-schema-2.1.0.json` beside the project and above it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PLACES = [above / "shared/data/sarif-schema-2.1.0.json" for above in Path(__file__).parents[3:]]


def validator() -> Any:
    """The schema as a validator of jsonschema; the test is skipped where one of them is absent."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    path = next((place for place in PLACES if place.is_file()), None)
    if path is None:
        pytest.skip("the SARIF schema is not beside the project")
    return jsonschema.Draft4Validator(json.loads(path.read_text()))

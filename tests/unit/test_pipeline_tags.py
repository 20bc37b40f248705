"""Each phase of a link runs under its own tag, which timings, profiles and traces show."""

from __future__ import annotations

import ast
import inspect

from pylink import pipeline


def test_a_phase_has_the_tag_of_its_function() -> None:
    tree = ast.parse(inspect.getsource(pipeline))
    phases = {
        (call.args[0].value, call.args[1].id)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "run"
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[1], ast.Name)
    }
    assert len(phases) == 10
    assert all(tag in (name.replace("_", "-"), name.partition("_")[0]) for tag, name in phases)

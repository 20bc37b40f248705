"""The table of remarks: docs/remark-passes.md has it, every row is used, readers take every row."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from pylink.remarks.passes import PASSES
from pylink.remarks.passes.catalogue import KINDS, UNNAMED, At, Kind
from pylink.remarks.passes.reference import table
from pylink.remarks.record import TAGS

ROOT = Path(__file__).parents[2]
PLACE = ("a.cubin", 3, 4)


def example(kind: Kind) -> dict[str, str | int | At]:
    return {key: At(f"of {key}", PLACE) for key in kind.keys}


def test_the_page_has_the_table() -> None:
    assert (ROOT / "docs/remark-passes.md").read_text().endswith(table())


def test_names_are_unique_and_belong_to_passes() -> None:
    counts = Counter((kind.pass_name, kind.name) for kind in KINDS)
    assert set(counts.values()) == {1}
    assert {kind.pass_name for kind in KINDS} == PASSES.keys()


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_uses_all_its_remarks(name: str) -> None:
    module = import_module(f"pylink.remarks.passes.{PASSES[name][1]}")
    used = {id(value) for value in vars(module).values() if isinstance(value, Kind)}
    assert used == {id(kind) for kind in KINDS if kind.pass_name == name}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_message_is_its_template_filled_in(kind: Kind) -> None:
    remark = kind("f", PLACE, 5, **example(kind))
    wanted = kind.template.format_map({key: f"of {key}" for key in kind.keys} | {"Symbol": "f"})
    assert remark.message == wanted
    assert (remark.file, remark.line, remark.column) == PLACE
    assert (remark.pass_name, remark.name, remark.hotness) == (kind.pass_name, kind.name, 5)
    keys = [key for key, *_ in remark.args if key != "String"]
    assert keys == re.findall(r"{(\w+)}", kind.template)
    assert len(keys) == len(set(keys))


def test_an_argument_may_have_a_place() -> None:
    kind = next(kind for kind in KINDS if kind.name == "KernelRaised")
    callee = At("f", ("f.cu", 7, 1))
    remark = kind("k", PLACE, 64, Callee=callee, Own=8, Registers=24, Chain="k -> f")
    assert ("Callee", "f", "f.cu", 7, 1) in remark.args
    assert ("Own", "8", None, 0, 0) in remark.args


def test_a_nameless_function_has_a_name() -> None:
    kind = KINDS[0]
    assert kind("", PLACE, 0, **example(kind)).function == UNNAMED


def test_the_vendors_aliasing_kind_is_used_and_the_other_is_not() -> None:
    used = {TAGS[kind.kind] for kind in KINDS}
    assert used == set(TAGS[1:]) - {"AnalysisFPCommute"}

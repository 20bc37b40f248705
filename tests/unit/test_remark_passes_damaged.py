"""Whatever the inputs, remarks change neither the output nor the diagnostics of a link."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path
from unittest import mock

import pytest
from helpers.remarked import Listed, Passes

from pylink import pipeline
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.files.lazyfile import LazyFile
from pylink.observer import Observer
from pylink.options.model import Input, Options
from pylink.options.plan import OutputPlan
from pylink.options.table import Value
from pylink.remarks import Remarks

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/*/m1.cubin"))
ROUNDS = 8


def damaged(rng: random.Random, images: list[bytes]) -> list[bytes]:
    """The images with a few bytes changed, half of them near the end, where the tables are."""
    made = [bytearray(image) for image in images]
    for _ in range(rng.choice((0, 1, 1, 4, 16))):
        image = rng.choice(made)
        first = max(0, len(image) - 4000) if rng.random() < 0.5 else 0
        image[rng.randrange(first, len(image))] ^= 1 << rng.randrange(8)
    return [bytes(image) for image in made]


def outcome(
    values: dict[str, Value], images: list[bytes], watching: list[Observer]
) -> tuple[bytes | None, list[str]]:
    sink = Sink()
    inputs = [Input(f"m{number}.cubin", image) for number, image in enumerate(images)]
    image = None
    with (
        mock.patch.object(pipeline, "make_observers", return_value=watching),
        contextlib.suppress(LinkError),
    ):
        image = pipeline.link(Options(values), inputs, OutputPlan(values, (), sink), sink).image
    assert not isinstance(image, LazyFile)  # nothing was written
    return image, [str(diagnostic) for diagnostic in sink.diagnostics]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("option", [None, "debug", "relocatable_link", "preserve_relocs"])
def test_remarks_only_watch(folder: Path, option: str | None) -> None:
    images = [path.read_bytes() for path in sorted(folder.glob("m[0-9].cubin"))]
    values: dict[str, Value] = {"arch": f"sm_{folder.parent.name}"}
    if option is not None:
        values[option] = True
    for seed in range(ROUNDS):
        inputs = damaged(random.Random(f"{folder.name} {option} {seed}"), images)
        listed = Listed()
        remarks = Remarks(Sink(), listed, hotness=True, why_live=re.compile(""))
        watched = outcome(values, inputs, [Passes(remarks, ())])
        remarks.close()
        assert watched == outcome(values, inputs, [])
        assert all(remark.function and remark.file for remark in listed.remarks)

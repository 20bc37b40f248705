"""What the GPU tests run, chosen by name: a kernel that is renamed is not left out unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from differential import cases
from helpers.linked import forces, runnable

TESTS = Path(__file__).parents[1]
GOLDEN = sorted(path.parent for path in (TESTS / "golden").glob("*/*/link.json"))
# Their kernels take other arguments, or there is no link with a result.
NONE_TO_RUN = {"guard", "weak", "errors"}


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_each_case_has_kernels_to_run(folder: Path) -> None:
    images = [expected.image_bytes(folder) for expected in cases.load(folder).links]
    found = any(runnable(image) for image in images if image is not None)
    program = folder.name.partition("-")[0]
    assert found == (program not in NONE_TO_RUN)


@pytest.mark.parametrize("arch", ["90a", "100"])
def test_all_forces_of_the_demo_run(arch: str) -> None:
    assert len(forces((TESTS.parent / "demo" / "linked" / f"sm_{arch}.cubin").read_bytes())) == 8

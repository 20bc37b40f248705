"""What comparisons hand over is checked when a run ends, and damaged images do no harm there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import oracle, programs
from helpers.compare import compare, image_differences

import pylink
from hazards import check, collected, cubins, sass, tables
from hazards.words import SIZE, WAIT

GOLDEN = Path(__file__).parent.parent / "golden"
DAMAGED = 60  # images


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[bytes, collected.Noted]]]:
    """What is handed over in a test, apart from what the run keeps."""
    noted: dict[str, dict[bytes, collected.Noted]] = {}
    monkeypatch.setattr(collected, "_noted", noted)
    yield noted
    noted.clear()


def without_wait(image: bytes) -> bytes:
    """The image with the one wait of the most harm taken away: all of one instruction's."""
    arch, flows = check.flows(image)
    table = tables.load(arch)
    for part, flow in zip(cubins.read(image).functions, flows, strict=True):
        at = image.index(part.code)
        for step in flow.steps:
            if not step.control.wait:
                continue
            place = at + step.at
            word = int.from_bytes(image[place : place + SIZE], "little") & ~(63 << WAIT)
            changed = image[:place] + word.to_bytes(SIZE, "little") + image[place + SIZE :]
            decoder = sass.decoder(arch)
            code = changed[at : at + len(part.code)]
            function = cubins.Function(part.name, code, part.entries, part.indirect)
            if list(collected.hazards(function, decoder, table)):
                return changed
    raise AssertionError("no wait matters")


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["80", "90a", "100", "120"])
def test_a_wait_that_a_link_lost_fails_the_run(
    arch: str, kept: dict[str, dict[bytes, collected.Noted]]
) -> None:
    module = programs.generate(3).modules[0]
    image = oracle.compile(module.source, arch, module.flags, name=module.name)
    changed = without_wait(image)
    compare(changed, image)
    assert sum(map(len, kept.values())) == 1
    (finding, *_) = collected.findings()
    assert "test_a_wait_that_a_link_lost_fails_the_run" in finding
    assert "before it waits for" in finding
    assert not list(collected.findings())
    image_differences(changed, image)
    assert not kept


@oracle.needs_oracle
def test_damaged_images_raise_nothing(kept: dict[str, dict[bytes, collected.Noted]]) -> None:
    """Neither when they are handed over nor at the end, whatever is wrong with them."""
    chosen = random.Random("damaged images")
    paths = sorted(GOLDEN.glob("*/*/*.nvlink.cubin"))
    for path in chosen.sample(paths, DAMAGED):
        image = path.read_bytes()
        data = bytearray(image)
        ranges = [(0, len(image))]  # half of the images are damaged anywhere, half in their code
        if chosen.random() < 0.5:
            parts = [(image.index(f.code), len(f.code)) for f in cubins.read(image).functions]
            ranges = [part for part in parts if part[1]] or ranges
        for _ in range(chosen.choice([1, 3, 30])):
            start, size = chosen.choice(ranges)
            data[start + chosen.randrange(size)] ^= 1 << chosen.randrange(8)
        end = chosen.randrange(len(data)) if chosen.random() < 0.1 else None
        collected.note(bytes(data[:end]), image)
    functions = [noted.function for found in kept.values() for noted in found.values()]
    assert len(functions) > DAMAGED // 4
    for function in functions[::4]:  # code that ends within an instruction, and none at all
        function.code = function.code[: chosen.choice([0, 8, -8])]
    list(collected.findings())


@oracle.needs_oracle
def test_other_code_is_checked_beside_what_is_not_code(
    kept: dict[str, dict[bytes, collected.Noted]],
) -> None:
    module = programs.generate(3).modules[0]
    image = oracle.compile(module.source, "80", module.flags, name=module.name)
    compare(without_wait(image), image)
    kept["80"][b"odd"] = collected.Noted(cubins.Function("odd", bytes(24)), "another test")
    assert list(collected.findings())
    assert [text.split(": ")[:2] for text in collected.unfollowed] == [["sm_80", "odd"]]


@oracle.needs_oracle
def test_links_of_nvlink_and_pylink_are_kept_where_they_differ(
    kept: dict[str, dict[bytes, collected.Noted]],
) -> None:
    module = programs.generate(3).modules[0]
    image = oracle.compile(module.source, "80", module.flags, name=module.name)
    ours = bytes(pylink.link([image], arch="sm_80").image)
    theirs = oracle.link([image], "80").image
    assert theirs is not None
    assert compare(ours, theirs) == []
    assert not kept.get("80")

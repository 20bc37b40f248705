"""Inputs that give up their memory while they are copied: the same output, and nobody looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin

import pylink
from pylink._native import image as native_image
from pylink._native.image import Canvas
from pylink._native.tables import PlacedTables
from pylink.command.cli import main

BLOCK = 2 << 20
CODE = bytes(range(256)) * 4096  # of a kernel: blocks begin and end inside of it


@pytest.fixture
def inputs(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Nine of a megabyte each; what the last one does is worth a warning if a test says so."""
    monkeypatch.chdir(tmp_path)
    names = []
    for number in range(9):
        cubin = Cubin()
        kernel = cubin.function(f"kernel{number}", code=CODE[16 * number :], kernel=True)
        if number == 8 and request.param:
            cubin.call(kernel, kernel)
        names.append(f"{number}.cubin")
        Path(names[-1]).write_bytes(cubin.build())
    return names


@pytest.fixture
def arenas(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The arena of each link, as it is when all contents are copied."""
    found: list[bytes] = []
    real = native_image.copy_contents

    def copy(image: Canvas, placed: PlacedTables, gives_up: bool = False) -> None:
        real(image, placed, gives_up)
        found.append(placed.merged.objects.arena)

    monkeypatch.setattr("pylink.phases.relocate.native_image.copy_contents", copy)
    return found


def kept(arena: bytes) -> int:
    """Bytes that are no zeros."""
    return len(arena) - arena.count(0)


@pytest.mark.parametrize("inputs", [False], indirect=True)
def test_what_is_copied_is_given_up(inputs: list[str], arenas: list[bytes]) -> None:
    given = pylink.link(inputs, arch="sm_80").image
    watched = pylink.link(inputs, arch="sm_80", profile=True).image
    assert given == watched
    assert given.count(CODE[16 * 9 :]) == len(inputs)
    assert kept(arenas[1]) > len(inputs) * len(CODE) * 0.99
    # Not what lies before the first block and behind the last one.
    assert kept(arenas[0]) < 2 * BLOCK


@pytest.mark.parametrize("inputs", [True], indirect=True)
def test_a_link_with_something_to_say_keeps_its_inputs(
    inputs: list[str], arenas: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said may be looked at when the link has ended."""
    assert main(["-arch=sm_80", *inputs, "-o", "o"]) == 0
    assert "warning" in capsys.readouterr().err
    assert kept(arenas[0]) > len(inputs) * len(CODE) * 0.99

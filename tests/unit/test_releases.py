"""The release that a link follows: what inputs name, what is asked for, and what is refused."""

from __future__ import annotations

import struct
from typing import Literal, cast

import pytest
from helpers.cubin_builder import SHT_NOTE, Section, one_kernel

import pylink
from pylink.facts import releases

Name = Literal["13.0", "13.1", "13.2", "13.3", "13.4", "13.5"]

CUINFO_FLAGS = 0x01000000


def note(toolkit: int) -> bytes:
    return struct.pack("<III12s4H", 12, 8, 1000, b"NVIDIA Corp\0", 2, 80, toolkit, 0)


def made_by(toolkit: int, name: str = "kernel") -> pylink.Input:
    cubin = one_kernel(name)
    cubin.section(Section(".note.nv.cuinfo", SHT_NOTE, note(toolkit), CUINFO_FLAGS))
    return pylink.Input(cubin.build(), name=f"{name}.o")


def written(image: bytes) -> int:
    """The toolkit that the output names."""
    places = [place for place in range(len(image)) if image.startswith(b"NVIDIA Corp\0", place)]
    notes = [struct.unpack_from("<II12s4H", image, place - 8) for place in places]
    return int(next(one[5] for one in notes if one[1] == 1000))


@pytest.mark.parametrize(
    ("toolkits", "followed"),
    [((130,), 130), ((135,), 135), ((132, 134, 130), 134), ((131, 131), 131), ((120,), 130)],
)
def test_the_newest_release_that_an_input_names_is_followed(
    toolkits: tuple[int, ...], followed: int
) -> None:
    inputs = [made_by(toolkit, f"k{number}") for number, toolkit in enumerate(toolkits)]
    assert written(pylink.link(inputs, arch="sm_80").image) == followed


def test_without_a_note_the_first_release_is_followed() -> None:
    image = pylink.link([pylink.Input(one_kernel().build())], arch="sm_80").image
    assert written(image) == releases.FIRST.toolkit


@pytest.mark.parametrize(
    "release", [releases.BY_NAME[name] for name in releases.FOLLOWED], ids=lambda row: row.name
)
def test_a_release_can_be_asked_for(release: releases.Release) -> None:
    image = pylink.link(
        [made_by(130)], arch="sm_80", nvlink_version=cast("Name", release.name)
    ).image
    assert written(image) == release.toolkit


def test_an_input_newer_than_the_release_asked_for_is_refused_in_the_words_of_nvlink() -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([made_by(130), made_by(135, "b")], arch="sm_80", nvlink_version="13.2")
    (error,) = [one for one in caught.value.diagnostics if one.severity >= pylink.Severity.ERROR]
    assert error.message == "Input file 'b.o' newer than toolkit (135 vs 132)"


def test_an_input_newer_than_all_that_is_known_is_refused() -> None:
    newer = releases.NEWEST.toolkit + 1
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([made_by(newer)], arch="sm_80")
    text = str(caught.value)
    assert f"newer than toolkit ({newer} vs {releases.NEWEST.toolkit})" in text


def test_a_release_that_is_asked_for_links_what_nobody_knows() -> None:
    result = pylink.link([made_by(140)], arch="sm_80", nvlink_version="13.5")
    assert written(result.image) == 135
    assert [one.kind for one in result.diagnostics] == ["unknown-toolkit"]

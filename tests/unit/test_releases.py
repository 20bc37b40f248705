"""The release that a link follows: what inputs name, what is asked for, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal, cast

import pytest
from helpers.cubin_builder import one_kernel
from helpers.toolkits import cubin_by, ptxas_note, tool_note, toolkit_of

import pylink
from pylink.facts import releases
from pylink.report import read_report

Name = Literal["12.9", "13.0", "13.1", "13.2", "13.2.51", "13.2.78", "13.3", "13.4", "13.5"]
LINKER = re.compile(rb"nvlink (\d+\.\d+\.\d+)\0")


def made_by(toolkit: int, name: str = "kernel") -> pylink.Input:
    return pylink.Input(cubin_by(toolkit, name), name=f"{name}.o")


@pytest.mark.parametrize(
    ("toolkits", "followed"),
    [((130,), 130), ((135,), 135), ((132, 134, 130), 134), ((131, 131), 131), ((120,), 130)],
)
def test_the_newest_release_that_an_input_names_is_followed(
    toolkits: tuple[int, ...], followed: int
) -> None:
    inputs = [made_by(toolkit, f"k{number}") for number, toolkit in enumerate(toolkits)]
    assert toolkit_of(pylink.link(inputs, arch="sm_80").image) == followed


def linker_of(image: bytes) -> str:
    """The nvlink that the output says it follows, in the note that stands first."""
    return str(LINKER.findall(image)[0], "ascii")


@pytest.mark.parametrize(
    ("tools", "followed"),
    [
        (("13.2.51",), "13.2.78"),  # the same for both
        (("13.2.78",), "13.2.78"),
        (("13.2.86",), "13.2.86"),
        (("13.2.51", "13.2.86"), "13.2.86"),
        (("13.2.79",), "13.2.78"),  # not looked at: as the one before
        (("13.2.99",), "13.2.86"),
        (("13.2.1",), "13.2.78"),
        (("13.2.51", "13.0.88"), "13.2.78"),
        (("13.2.51", "13.3.33"), "13.3.73"),
        (("13.0.48",), "13.0.88"),
    ],
)
def test_the_patch_level_of_the_newest_input_is_followed(
    tools: tuple[str, ...], followed: str
) -> None:
    inputs = []
    for number, tool in enumerate(tools):
        toolkit = int(tool.replace(".", "")[:3])
        image = cubin_by(toolkit, f"k{number}", tool=ptxas_note(tool))
        inputs.append(pylink.Input(image, name=f"{number}.o"))
    assert linker_of(pylink.link(inputs, arch="sm_80").image) == followed


@pytest.mark.parametrize(
    "tool",
    [
        b"",
        tool_note("", "ptxas", "", "", ""),
        tool_note("", "ptxas", "release 13.2, V13.2.51x", "Build", ""),
        tool_note("", "ptxas", "release 13.2, V13.2", "Build", ""),
        tool_note("", "ptxas", "release 13.2, V13.2.", "Build", ""),
        tool_note("", "ptxas", "release 13.2, V13.2.51.7", "Build", ""),
        tool_note("", "ptxas", "release 13.2, V13.2.5151", "Build", ""),
        tool_note("", "ptxas", "release 13.2, V13.1.51", "Build", ""),  # another toolkit's
        tool_note("", "pylink", "pylink 13.2.51", "", ""),
        ptxas_note("13.2.51")[:-50],
        ptxas_note("13.2.51")[:30],
    ],
)
def test_what_tells_no_patch_level_counts_as_the_last(tool: bytes) -> None:
    image = pylink.link([pylink.Input(cubin_by(132, tool=tool))], arch="sm_80").image
    assert linker_of(image) == "13.2.86"


def test_an_output_of_pylink_has_the_patch_level_that_it_followed() -> None:
    first = pylink.link(
        [pylink.Input(cubin_by(132, tool=ptxas_note("13.2.51")))],
        arch="sm_80",
        relocatable_link=True,
    )
    assert linker_of(first.image) == "13.2.78"
    assert linker_of(pylink.link([pylink.Input(first.image)], arch="sm_80").image) == "13.2.78"


@pytest.mark.parametrize("name", ["13.2.51", "13.2.78"])
def test_a_patch_level_links_objects_of_a_later_one(name: Name) -> None:
    made = pylink.Input(cubin_by(132, tool=ptxas_note("13.2.86")))
    image = pylink.link([made], arch="sm_80", nvlink_version=name).image
    assert linker_of(image) == "13.2.78"


def test_only_patch_levels_that_differ_have_names() -> None:
    assert "13.2.86" in releases.FOLLOWED_NAMES
    assert "13.0.88" not in releases.FOLLOWED_NAMES


def test_without_a_note_the_first_release_is_followed() -> None:
    image = pylink.link([pylink.Input(one_kernel().build())], arch="sm_80").image
    assert toolkit_of(image) == releases.OLDEST_DEFAULT.toolkit


@pytest.mark.parametrize(
    "release",
    [releases.BY_NAME[name] for name in releases.FOLLOWED_NAMES],
    ids=lambda row: row.name,
)
def test_a_release_can_be_asked_for(release: releases.Release) -> None:
    made = made_by(min(130, release.toolkit))
    image = pylink.link([made], arch="sm_80", nvlink_version=cast("Name", release.name)).image
    assert toolkit_of(image) == release.toolkit


def test_an_input_newer_than_the_release_asked_for_is_refused_in_the_words_of_nvlink() -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([made_by(130), made_by(135, "b")], arch="sm_80", nvlink_version="13.2")
    (error,) = [
        diagnostic
        for diagnostic in caught.value.diagnostics
        if diagnostic.severity >= pylink.Severity.ERROR
    ]
    assert error.message == "Input file 'b.o' newer than toolkit (135 vs 132)"


def test_12_9_links_no_object_of_later_releases() -> None:
    """Its own nvlink takes such files for older ones than any: docs/nvlink-differences.md."""
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([made_by(130)], arch="sm_80", nvlink_version="12.9")
    assert "Input file 'kernel.o' newer than toolkit (130 vs 129)" in str(caught.value)


def test_an_input_newer_than_all_that_is_known_is_refused() -> None:
    newer = releases.NEWEST.toolkit + 1
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([made_by(newer)], arch="sm_80")
    text = str(caught.value)
    assert f"newer than toolkit ({newer} vs {releases.NEWEST.toolkit})" in text


def test_a_release_that_is_asked_for_links_what_nobody_knows() -> None:
    result = pylink.link([made_by(140)], arch="sm_80", nvlink_version="13.5")
    assert toolkit_of(result.image) == 135
    assert [diagnostic.kind for diagnostic in result.diagnostics] == ["unknown-toolkit"]


@pytest.mark.parametrize("toolkit", [130, 134])
def test_what_a_link_writes_names_the_release_followed(toolkit: int, tmp_path: Path) -> None:
    result = pylink.link(
        [made_by(toolkit)],
        arch="sm_80",
        Map=tmp_path / "map",
        sarif_output=tmp_path / "sarif",
        profile=tmp_path / "profile.ncu-rep",
    )
    (row,) = [row for row in releases.RELEASES if row.toolkit == toolkit]
    assert f"release {row.name}, V{row.version}" in row.title
    assert (tmp_path / "map").read_text().splitlines()[0] == f"Follows {row.title}"
    (run,) = json.loads((tmp_path / "sarif").read_text())["runs"]
    assert run["properties"] == {"follows": row.title}
    session = read_report(tmp_path / "profile.ncu-rep").session
    assert ("Follows", row.linker) in [
        (version.provider, version.version) for version in session.version_info
    ]
    assert f"\0{row.linker}\0".encode() in result.image  # the tool note


def test_a_link_that_fails_names_the_release_that_it_would_have_followed(tmp_path: Path) -> None:
    with pytest.raises(pylink.LinkError):
        pylink.link(
            [made_by(135)], arch="sm_80", nvlink_version="13.2", sarif_output=tmp_path / "sarif"
        )
    (run,) = json.loads((tmp_path / "sarif").read_text())["runs"]
    assert run["properties"] == {"follows": releases.BY_NAME["13.2"].title}

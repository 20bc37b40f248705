"""Links with copies of Mercury sections: what is left out, and that nothing else changes.

nvlink keeps all copies. It is the oracle twice: for the link without folding, and, given the inputs
without their copies, for what the folded sections must hold.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

ARCHS = ("100", "103", "120")
FLAGS: tuple[tuple[str, ...], ...] = ((), ("-lineinfo",), ("-G",))
IDS = ("plain", "lineinfo", "G")

TEMPLATES = """
template <int N> __device__ __noinline__ float scale(float x) {
    float s = x;
    for (int i = 0; i < N; ++i) s = s * x + i;
    return s;
}
template <class T> __device__ __noinline__ T mix(T a, T b) { return a * b + scale<3>(a); }
"""
INSTANCES = (
    TEMPLATES
    + "template __device__ float scale<3>(float);\n"
    + "template __device__ float mix<float>(float, float);\n"
)
USER = TEMPLATES + "__global__ void k(float* p) { p[threadIdx.x] = mix<float>(p[0], p[1]); }\n"
STATIC = (
    INSTANCES
    + "static __device__ int counter;\n"
    + (
        "template <int N> __device__ __noinline__ int count() { return atomicAdd(&counter, N); }\n"
        "template __device__ int count<2>();\n"
    )
)

# Bytes, or header fields.
Content = bytes | tuple[int, ...]

# Their Mercury forms are the bytes of the plain sections, which stay.
SHARED = (
    "debug_abbrev",
    "debug_loc",
    "debug_pubnames",
    "debug_pubtypes",
    "debug_str",
    "nv_debug_ptx",
)


def cubin(source: str, arch: str, flags: tuple[str, ...] = ()) -> bytes:
    return oracle.compile(source, arch, flags)


def link(cubins: Sequence[bytes], arch: str, **options: Any) -> bytes:
    return pylink.link(cubins, arch=f"sm_{arch}", **options).image


def nvlink(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> bytes:
    result = oracle.link(cubins, arch, options)
    assert result.image is not None, result.stderr
    return result.image


def contents(image: bytes) -> dict[tuple[str, int], Content]:
    """What each section holds, and the fields of its header but for place and size."""
    view = Image(image)
    found: dict[tuple[str, int], Content] = {}
    for section in view.sections:
        found[section.key] = view.content(section)
        found[section.name, -1] = (
            section.type,
            section.flags,
            section.link,
            section.info,
            section.align,
        )
    return found


def foldable(name: str) -> bool:
    """Whether a section is Mercury debug data, or its relocations, with bytes of its own."""
    for prefix in (".nv.merc.rela.", ".nv.merc."):
        if name.startswith(prefix):
            rest = name[len(prefix) :]
            return rest.startswith(("debug_", "nv_debug_")) and not rest.startswith(SHARED)
    return False


def foldable_contents(image: bytes) -> dict[tuple[str, int], Content]:
    """What the sections hold that shrink when a copy folds."""
    found = {key: content for key, content in contents(image).items() if foldable(key[0])}
    assert found
    return found


def shared_sizes(unit: bytes) -> set[int]:
    """Bytes of each Mercury section of an input that stays when the input folds."""
    prefix = ".nv.merc."
    return {
        section.size
        for section in Image(unit).sections
        if section.name.startswith(tuple(prefix + name for name in SHARED))
    }


def without_shift(content: Content, wanted: Content, shifts: set[int]) -> Content:
    """The content with each word that is larger than the wanted one by a shift set back."""
    if not (isinstance(content, bytes) and isinstance(wanted, bytes)):
        return content
    result = bytearray(content)
    for at in range(min(len(content), len(wanted)) - 3):
        old, new = (int.from_bytes(data[at : at + 4], "little") for data in (wanted, result))
        if new - old in shifts:
            result[at : at + 4] = wanted[at : at + 4]
    return bytes(result)


ORDERS = ("UII", "IIU", "IUI", "UIII")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("flags", FLAGS, ids=IDS)
@pytest.mark.parametrize("arch", ARCHS)
def test_copies_are_left_out_and_nothing_else_changes(
    arch: str, flags: tuple[str, ...], order: str
) -> None:
    units = {"U": cubin(USER, arch, flags), "I": cubin(INSTANCES, arch, flags)}
    cubins = [units[letter] for letter in order]
    once = [units[letter] for letter in dict.fromkeys(order)]
    without_copies = contents(nvlink(once, arch))
    unfolded, folded = link(cubins, arch, merc_dedup="off"), link(cubins, arch)
    assert compare(unfolded, nvlink(cubins, arch)) == []
    assert len(folded) < len(unfolded)
    before, after = contents(unfolded), contents(folded)
    assert list(before) == list(after)
    # What comes behind a copy refers to sections shared with plain ones, and these stay whole.
    shifts = shared_sizes(units["I"]) if order == "IIU" else set()
    smaller = set()
    for key, content in after.items():
        if not foldable(key[0]):
            assert content == before[key], key
            continue
        wanted = without_copies[key]
        assert content == wanted or without_shift(content, wanted, shifts) == wanted, key
        if content != before[key]:
            smaller.add(key[0])
    changed = {".nv.merc.debug_frame"}
    if flags:
        changed |= {".nv.merc.debug_line", ".nv.merc.nv_debug_line_sass"}
    if flags == ("-G",):
        changed |= {".nv.merc.debug_info", ".nv.merc.nv_debug_info_reg_sass"}
    assert changed <= smaller


@pytest.mark.parametrize("arch", ARCHS)
def test_of_two_groups_each_keeps_one(arch: str) -> None:
    plain, lines = (cubin(INSTANCES, arch, flags) for flags in FLAGS[:2])
    user = cubin(USER, arch)
    folded = foldable_contents(link([user, plain, lines, plain, lines], arch))
    assert folded == foldable_contents(nvlink([user, plain, lines], arch))


@pytest.mark.parametrize("flags", FLAGS, ids=IDS)
def test_a_relocatable_output_keeps_all(flags: tuple[str, ...]) -> None:
    unit = cubin(INSTANCES, "100", flags)
    image = link([unit, unit], "100", relocatable_link=True)
    assert compare(image, nvlink([unit, unit], "100", ["-r"])) == []


@pytest.mark.parametrize("options", [["-preserve-relocs"], ["-g"]], ids=str)
@pytest.mark.parametrize("flags", FLAGS, ids=IDS)
def test_other_options_change_nothing(flags: tuple[str, ...], options: list[str]) -> None:
    unit, user = cubin(INSTANCES, "100", flags), cubin(USER, "100", flags)
    folded = foldable_contents(link([user, unit, unit], "100", **keywords(options)))
    assert folded == foldable_contents(nvlink([user, unit], "100", options))


@pytest.mark.parametrize("source", [STATIC, USER], ids=["variable", "kernel"])
@pytest.mark.parametrize("arch", ARCHS)
def test_units_with_symbols_of_their_own_stay(arch: str, source: str) -> None:
    unit = cubin(source.replace("void k(", "static void k("), arch)
    cubins = [unit, unit]
    assert link(cubins, arch) == link(cubins, arch, merc_dedup="off")


@pytest.mark.parametrize("arch", ["75", "90a"])
def test_older_targets_have_nothing_to_fold(arch: str) -> None:
    unit, user = cubin(INSTANCES, arch), cubin(USER, arch)
    assert link([user, unit, unit], arch, merc_dedup="on") == link(
        [user, unit, unit], arch, merc_dedup="off"
    )


def test_the_option_is_not_recorded() -> None:
    unit, user = cubin(INSTANCES, "100"), cubin(USER, "100")
    for choice in ("on", "off"):
        assert link([user, unit], "100", merc_dedup=choice) == link([user, unit], "100")


def test_the_trace_names_folds_and_rejects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user, unit = cubin(USER, "100"), cubin(INSTANCES, "100")
    inputs = [("user", user), ("first", unit), ("second", unit)]
    quiet = pylink.link(inputs, arch="sm_100").image
    assert capsys.readouterr().err == ""
    assert pylink.link(inputs, arch="sm_100", edbg=1).image == quiet
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("merc-dedup: first: rejected with 17 against user: ")
    assert lines[1] == "merc-dedup: second: folds into first (0)"
    named = ["link input user", "link input first", "link input second"]
    assert lines[2:5] == named
    skipped = {f"skip mercury section {index}": name for index, name in mercury_sections(unit)}
    assert lines[5:]
    assert all(skipped[line].startswith(".nv.merc.debug_") for line in lines[5:])
    pylink.link(inputs, arch="sm_100", edbg=1, merc_dedup="off")
    assert capsys.readouterr().err.splitlines() == named


def mercury_sections(image: bytes) -> list[tuple[int, str]]:
    names = [section.name for section in Image(image).sections]
    return [(index, name) for index, name in enumerate(names) if name.startswith(".nv.merc.")]


def test_objects_that_only_seem_alike_stay() -> None:
    flags = ("-lineinfo",)
    first, second, third = (
        oracle.compile(INSTANCES, "100", flags, name=f"{letter}.cu") for letter in "abc"
    )
    cubins = [cubin(USER, "100", flags), first, second, third, second]
    image = link(cubins, "100")
    assert foldable_contents(image) == foldable_contents(nvlink(cubins[:-1], "100"))


def test_an_input_that_cannot_be_compared_is_linked_as_it_is() -> None:
    unit, user = cubin(INSTANCES, "100"), cubin(USER, "100")
    image = Image(unit)
    section = next(s for s in image.sections if s.name == ".nv.merc.rela.debug_frame")
    damaged = bytearray(unit)
    link_field = image.header.shoff + section.index * 64 + 40
    damaged[link_field : link_field + 4] = bytes(4)
    inputs = [("user", user), ("bad", bytes(damaged)), ("unit", unit), ("copy", unit)]
    result = pylink.link(inputs, arch="sm_100")
    assert [(d.kind, d.file) for d in result.diagnostics] == [("not-folded", "bad")]
    once = pylink.link(inputs[:-1], arch="sm_100", merc_dedup="off").image
    assert foldable_contents(result.image) == foldable_contents(once)


@pytest.mark.parametrize("tool", [["cuobjdump", "-elf"], ["nvdisasm", "-g", "-c"]], ids=str)
@pytest.mark.parametrize("flags", FLAGS, ids=IDS)
@pytest.mark.parametrize("arch", ARCHS)
def test_cuda_tools_read_the_output(
    arch: str, flags: tuple[str, ...], tool: list[str], tmp_path: Path
) -> None:
    program = oracle.optional_tool(tool[0])
    if program is None:
        pytest.skip(f"needs {tool[0]}: pip install nvidia-cuda-{tool[0]}")
    user, unit = cubin(USER, arch, flags), cubin(INSTANCES, arch, flags)
    listings = []
    for name, choice in (("off", "off"), ("on", "on")):
        path = tmp_path / name
        path.mkdir()
        (path / "out.cubin").write_bytes(link([user, unit, unit], arch, merc_dedup=choice))
        done = subprocess.run(
            [program, *tool[1:], "out.cubin"], cwd=path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        listings.append(done.stdout)
    assert "mix" in listings[1]
    if tool[0] == "nvdisasm":
        assert listings[0] == listings[1]

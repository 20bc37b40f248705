"""Remarks of links of compiled programs, read by LLVM's tools and beside the dedup report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers import oracle
from helpers.llvm import opt_viewer, remarkutil
from helpers.remark_programs import SOURCES, args, cubins, size_of
from helpers.remarked import remarks_of

import pylink
from pylink.inspect.image import Image
from pylink.remarks.record import parts_of_place

pytestmark = oracle.needs_oracle


@pytest.mark.parametrize("arch", ["100", "120"])
@pytest.mark.parametrize("flags", [(), ("-lineinfo",), ("-G",)], ids=["plain", "lineinfo", "G"])
def test_folds_are_those_of_the_dedup_report(
    arch: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    made = cubins(arch, *flags)
    remarks = remarks_of(made, arch, "merc-dedup")
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-m", "pylink", "dedup", "--json", *made]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    rejected = {
        args(remark)["File"]: (
            args(remark)["Reference"],
            int(args(remark)["Stage"]),
            int(args(remark)["Code"]),
            args(remark)["Difference"],
        )
        for remark in remarks
        if remark.name == "SectionRejected"
    }
    assert rejected == {
        row["object"]: (row["compared_with"], row["stage"], row["code"], row["reason"])
        for row in report["objects"]
        if row["code"]
    }
    (cost,) = [remark for remark in remarks if remark.name == "Cost"]
    counted = args(cost)
    assert counted.pop("Files") == str(len(made))
    assert counted.pop("BytesSaved") == str(report["saved_bytes"])
    assert {key: int(value) for key, value in counted.items()} == {
        "".join(word.capitalize() for word in name.split("_")): count
        for name, count in report["stats"].items()
        if name not in ("bytes_offered", "stage_ns")
    }

    folded = [remark for remark in remarks if remark.name == "SectionFolded"]
    assert {parts_of_place(remark.file or "")[0] for remark in folded} <= {"again.cubin"}
    saved: Counter[str] = Counter()
    for remark in folded:
        assert args(remark)["Reference"] == "scale.cubin"
        assert remark.hotness == int(args(remark)["SectionBytes"])
        saved[remark.function] += int(args(remark)["SectionBytes"])
    inputs = list(made.items())
    with_all = Image(pylink.link(inputs, arch=f"sm_{arch}", merc_dedup="off").image)
    without = Image(pylink.link(inputs, arch=f"sm_{arch}").image)
    assert saved == {
        section.name: section.size - size_of(without, section.name)
        for section in with_all.sections
        if section.name.startswith(".nv.merc.")
        and "rela" not in section.name
        and section.size != size_of(without, section.name)
    }
    if flags:
        assert folded


def link(folder: Path, *options: str) -> None:
    names = [f"{name}.cubin" for name in SOURCES]
    command = [sys.executable, "-m", "pylink", "-arch=sm_100", *names, "-o", "out.cubin"]
    options = (*options, "--pass-remarks-with-hotness", "--pass-remarks-output=remarks")
    subprocess.run([*command, *options], cwd=folder, check=True, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's sources and cubins, whose line tables have relative names."""
    made = tmp_path_factory.mktemp("remarks")
    nvcc = oracle.toolchain().tool("nvcc")
    for name, source in SOURCES.items():
        (made / f"{name}.cu").write_text(source)
        command = [nvcc, "-rdc=true", "-cubin", "-arch=sm_100", "-lineinfo", f"{name}.cu"]
        subprocess.run([*command, "-o", f"{name}.cubin"], cwd=made, check=True)
    return made


def test_llvm_counts_what_the_link_told(folder: Path) -> None:
    inputs = {f"{name}.cubin": (folder / f"{name}.cubin").read_bytes() for name in SOURCES}
    remarks = remarks_of(inputs, "100")
    by_function = Counter(remark.function for remark in remarks)
    saved: Counter[str] = Counter()
    for remark in remarks:
        saved[remark.function] += int(args(remark).get("Kept", 0))
    for version, release, options in (
        ("yaml", "19", ()),
        ("yaml", "22", ()),
        ("bitstream", "19", ("--pass-remarks-bitstream-version=0",)),
        ("bitstream", "22", ("--pass-remarks-bitstream-version=1",)),
    ):
        tool = remarkutil(release)
        link(folder, f"--pass-remarks-format={version}", *options)
        words = ["count", f"--parser={version}", "--group-by=function"]
        assert tool(*words, "remarks", folder=folder) == by_function
        words += ["--count-by=arg", "--args=Kept"]
        assert tool(*words, "remarks", folder=folder) == saved


def test_opt_viewer_shows_functions_at_their_source_lines(folder: Path) -> None:
    viewer = opt_viewer()
    passes = "symbol-resolution|dce|regcount|stack-size|shared-layout"
    link(folder, f"--pass-remarks-filter={passes}")
    viewer("remarks", folder=folder)
    pages = {path.name: path.read_text() for path in (folder / "html").glob("*.html")}
    page = next(text for name, text in pages.items() if name.endswith("_main.cu.html"))
    assert "removed _Z6unusedf" in page
    assert "shared memory" in page
    assert "unused(float)" in pages["index.html"]


@pytest.mark.parametrize("compiled", ["with lines", "without lines"])
def test_opt_viewer_lists_all_passes(folder: Path, tmp_path: Path, compiled: str) -> None:
    """It opens the file of each place, of which none may be a cubin."""
    viewer = opt_viewer()
    if compiled == "without lines":
        for name, data in cubins("100").items():
            (tmp_path / name).write_bytes(data)
        folder = tmp_path
    link(folder)
    viewer("remarks", folder=folder)
    index = (folder / "html/index.html").read_text()
    for name in ("merc-dedup", "debug", "relocate", "dce"):
        assert f">{name}<" in index
    assert "scale.cubin:(.nv.merc" in index
    assert "out.cubin:(*):0:0" in index

"""What --register-link-binaries says of inputs that host code cannot register."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import nvlink, pylink

KERNEL = "__global__ void NAME(int *p) { p[0] = 1; }\n"
HOST = "void launch(int *p) { NAME<<<1, 1>>>(p); }\n"
LINKS = [
    ("hosted.o", "plain.cubin"),
    ("plain.cubin", "other.cubin"),
    ("plain.cubin", "hosted.o"),
    ("plain.fatbin", "hosted.o"),
    ("hosted.o",),
]


@pytest.mark.parametrize("words", [(), ("-disable-infos",), ("-w",), ("-Werror",), ("-r",)])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_they_are_named(tmp_path: Path, release: str, words: tuple[str, ...]) -> None:
    with oracle.release(release):
        hosted = (KERNEL + HOST).replace("NAME", "hosted")
        (tmp_path / "hosted.o").write_bytes(oracle.compile_host(hosted, "80"))
        for name in ("plain", "other"):
            cubin = oracle.compile(KERNEL.replace("NAME", name), "80")
            (tmp_path / f"{name}.cubin").write_bytes(cubin)
        wrap = [oracle.toolchain().tool("fatbinary"), "-64", "--create=plain.fatbin", "-c"]
        subprocess.run(
            [*wrap, "--image3=kind=elf,sm=80,file=plain.cubin"], cwd=tmp_path, check=True
        )
        for files in LINKS:
            command = ["-arch=sm_80", *words, *files]
            theirs = nvlink(tmp_path, [*command, "--register-link-binaries=theirs.txt"])
            ours = pylink(
                tmp_path,
                [*command, "--register-link-binaries=ours.txt", f"--nvlink-version={release}"],
            )
            assert theirs == ours, files
            assert (tmp_path / "ours.txt").read_text() == (tmp_path / "theirs.txt").read_text()

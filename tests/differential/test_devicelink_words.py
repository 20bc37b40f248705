"""Random command lines: what pylink makes of them against what nvcc --dryrun would start."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from helpers import oracle
from helpers.hostlink import needs_host_compiler

from pylink.devicelink.commandline import read_request
from pylink.devicelink.links import link_values
from pylink.devicelink.request import CUBIN, FATBIN, UNIT, LeftToNvcc, Request
from pylink.devicelink.toolkit import Toolkit

pytestmark = [oracle.needs_oracle, needs_host_compiler]

# Each a line; a blank separates words.
WORDS = """\
-w
--disable-warnings
-G
--device-debug
-g
-lineinfo
--generate-line-info
-shared
-res-usage
-Werror all-warnings
-Werror=cross-execution-space-call,all-warnings
-dlto
--dlink-time-opt
-Xptxas -O2
-Xptxas=-v,-O1
--ptxas-options=--verbose
-split-compile=3
--split-compile 0
-L/a
-L /a,/b
--library-path=/c
-lx
-l y,z
--library=m
-cudadevrt=none
--cudadevrt static
-compress-mode=size
--compress-mode=none
-no-compress
-O3
--optimize=1
-std=c++17
--std c++20
-DA=b
-D A,B
-U A
-Ix
-isystem q
-Xlinker -z,now
-Xarchive q
-cudart shared
-maxrregcount=32
-use_fast_math
-fmad=false
-rdc=true
--relocatable-device-code=false
-m64
--machine=64
-Xnvlink --suppress-stack-size-warning
-Xnvlink=-v
-Xnvlink -w,-v
-Xcompiler -fPIC
-Xcompiler=-O2,-Wall
--compiler-options '-fvisibility=hidden'
-Xcudafe --diag_suppress=20
-extra-device-vectorization
-static-global-template-stub=false
-device-entity-has-hidden-visibility=false
-opt-info=inline
-dopt=on
-t 2
--threads=0
-expt-relaxed-constexpr
--extended-lambda
-diag-suppress=20
-ccbin g++
-fatbin
-cubin
-r
-lib
-v
-ftz=true
--default-stream per-thread
-hls=use-lcs
-restrict
-err-no
-Wreorder
-odir /tmp
-o x.o
-forward-unknown-to-host-compiler
-fno-exceptions
--generate-code arch=compute_80,code=sm_80
-arch sm_90
-arch=all-major
-code=sm_90
-gencode=arch=compute_90,code=[sm_90,compute_90]
-gencode arch=compute_100f,code=[sm_100,sm_103]
--relocatable-ptx
-ewp
-pg
-keep-dir /x
-x cu
--unheard-of
""".splitlines()

# Flags of nvlink, and what they are of a link here.
FLAGS = {
    "-g": "debug",
    "-w": "disable_warnings",
    "-v": "verbose",
    "--warning-as-error": "warning_as_error",
    "--shared": "shared",
    "-dlto": "dlto",
    "-report-arch": "report_arch",
    "--suppress-stack-size-warning": "suppress_stack_size_warning",
}
LINES = 110


def started(words: list[str], folder: Path) -> tuple[int, list[list[str]]]:
    """The status of nvcc, and the words of each program that it would start."""
    done = subprocess.run(
        [oracle.toolchain().tool("nvcc"), "-dlink", "--dryrun", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line[3:] for line in done.stderr.splitlines() if line.startswith("#$ ")]
    return done.returncode, [shlex.split(line) for line in lines if "=" not in line.split()[0]]


def expected(commands: list[list[str]]) -> dict[str, object]:
    """What these programs would do."""
    links = [words for words in commands if words[0] == "nvlink"]
    packs = [words for words in commands if words[0] == "fatbinary"]
    hosts = [words for words in commands if any("link.stub" in word for word in words)]
    first = links[0]
    found: dict[str, object] = {name: flag in first for flag, name in FLAGS.items()}
    found["archs"] = [
        word.partition("=")[2] for words in links for word in words if "--arch=" in word
    ]
    for letter in "Ll":
        found[letter] = [
            os.path.normpath(word[2:]) for word in first if word.startswith(f"-{letter}")
        ]
    found["compiler options"] = any(word.startswith("-Xptxas") for word in first)
    last = (hosts or packs or links)[-1]
    outputs = [value for word in last for value in re.findall(r"--create=(.*)", word)]
    found["output"] = os.path.normpath((outputs or [last[last.index("-o") + 1]])[0])
    found["unit"] = bool(hosts) and "prelink.stub" in " ".join(hosts[0])
    found["object"] = bool(hosts)
    if packs:
        words = packs[0]
        found["name"] = "".join(
            word.partition("=")[2] for word in words if word.startswith("--ident=")
        )
        found["marked"] = "-g" in words
        modes = [word for word in words if "compress" in word]
        said = re.sub(r"-+compress(-mode)?=", "", modes[0]) if modes else "default"
        found["mode"] = "none" if said == "false" else said
    return found


def actual(request: Request) -> dict[str, object]:
    """What a step of this request does, in the same terms."""
    values = link_values(request, "X86_64", Toolkit(oracle.toolchain().tool("nvcc")))
    found: dict[str, object] = {name: bool(values.get(name)) for name in FLAGS.values()}
    found["archs"] = request.archs
    for letter, name in (("L", "library_path"), ("l", "library")):
        texts = values.get(name, ())
        assert isinstance(texts, tuple)
        found[letter] = [os.path.normpath(text) for text in texts]
    found["compiler options"] = "Xptxas" in values
    assert request.output is not None
    found["output"] = os.path.normpath(request.output)
    found["unit"] = request.form == UNIT
    found["object"] = request.form not in (FATBIN, CUBIN)
    if request.form != CUBIN:
        found["name"] = request.entry_name
        found["marked"] = request.debug
        mode = request.compress_mode
        found["mode"] = mode
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_command_line_means_what_it_means_to_nvcc(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    taken = 0
    for _ in range(LINES // 4):
        words = [
            word
            for line in chance.choices(WORDS, k=chance.randrange(5))
            for word in line.split(" ")
        ]
        words.insert(0, "a.o")
        words.append("b.o")
        try:
            request = read_request(words, {})
        except LeftToNvcc:
            continue  # nvcc does that step, whatever it is
        status, commands = started(words, tmp_path)
        assert status == 0, words
        assert actual(request) == expected(commands), words
        taken += 1
    assert taken > LINES // 16

"""Under nvlink's name and with the same words, pylink says the same and ends with the same status.

Each line below is an argument vector. Both tools run it in a directory of their own with the same
files; status, both streams and the names of the files made have to agree, the name of the tool in
front of each message aside. `N` is a file that does not exist.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from helpers import oracle

from pylink.command.cli import main

pytestmark = oracle.needs_oracle

A = "extern __device__ int f(int); __global__ void k(int *p) { *p = f(*p); }"
B = "__device__ int g = 3; __device__ int f(int x) { return x * g; }"

OPTION_FILES = {
    "ok.opt": "-arch=sm_75 N\n-o o\n",
    "inner.opt": '"x y" -o o',
    "outer.opt": "-arch=sm_75 -optf inner.opt",
    "self.opt": "-optf self.opt",
    "empty.opt": "",
    "trail.opt": "-o",
    "bogus.opt": "-bogus",
    "words.opt": "-arch=sm_75 -o o \"x y\" 'z w'",
    "single.opt": "-arch=sm_75 -o o 'z w'",
    "comment.opt": "-arch=sm_75 -o o # c",
    "escape.opt": r"-arch=sm_75 -o o x\ y",
    "escaped.opt": r"-arch=sm_75 -o o x\\y",
    "quote.opt": r'-arch=sm_75 -o o "x\"y"',
    "behind.opt": r'-arch=sm_75 -o o x\\"y z"',
    "open.opt": '-arch=sm_75 -o o "x y',
    "end.opt": "-arch=sm_75 -o o x\\",
    "joined.opt": '-arch=sm_75 -o o a"b c"d',
    "return.opt": "-arch=sm_75 -o o x\r\ny",
    "nul.opt": "-arch=sm_75 -o o x\0y",
    "none.opt": '-arch=sm_75 -o o ""',
}

SPELLINGS = """
-arch=sm_75 N -o o
--arch=sm_75 N --output-file=o
--arch sm_75 N --output-file o
-arch sm_75 N -output-file o
-archsm_75 N
-arch=sm_75 N -oo
-arch=sm_75 N --o o
-arch=sm_75 N --o=o
-arch=sm_75 N -o=a=b
-arch=sm_75 N -o --help
-verbose
--v
-vv
-Vx
-machine 64
-m64 -arch=sm_75
--m64
--machine64
-library x
--l=x
--lib x
--Werror
-lto=1
-ltofoo -arch=sm_75
-L=.= -l=x=y -arch=sm_75
-bogus
--bogus
--bogus=3
-bogus=3
-
--
-=
--=
---v
-DFOO
@empty.opt
"""

VALUES = """
-o
--output-file
-arch
-l
-kernels-used
--register-link-binaries
-v=true
--verbose=true
-v=
--help=3
-arch=
-arch=sm_99
-arch=sm_70
-arch=75
-arch=SM_75
-arch=sm_75,sm_80
-arch=sm_75=3
-arch '"sm_75"'
-arch -o o N
-cpu-arch foo
-cpu-arch=
-ghls=foo
-ghls ''
-m 32
-m 0x40 -arch=sm_75
-m ' 64' -arch=sm_75
-m +64 -arch=sm_75
-m 064
-m ''
-m abc
-m '64 '
-m 6_4
-m -v
-m=64=3
-m=99999999999
-maxrregcount foo
-maxrregcount 2147483648
-maxrregcount -2147483649
-maxrregcount 0x
-maxrregcount 09
-device-stack-protector
-device-stack-protector=TRUE
-device-stack-protector ''
-l '"xy'
-l '\\"'
-Xptxas=
-m 32 -bogus
-bogus -m 32
"""

REDEFINITIONS = """
-arch=sm_75 -arch=sm_75 N -o o
-arch=sm_75 -arch=sm_80 N -o o
-arch=sm_75 -arch=sm_80 -arch=sm_75 -bogus
-arch=sm_75 N -o o -o p -o p
-arch=sm_75 N -o o -cpu-arch X86 -cpu-arch X86_64 -w -Werror
-arch=sm_75 N -o o -time t -time u
-arch=sm_75 N -o o -v -v -l a -l b -m 64 -m 0x40
-report-arch -arch=sm_75 -arch=sm_80 -o o N
-maxrregcount 5 -maxrregcount 0x5 -bogus
-split-compile 5 -split-compile 6 -bogus
-uidx a -uidx b -bogus
-ghls -ghls=lcs-aug
-ghls=lcs-aug -ghls=lcs-aug
"""

OPTION_FILE_WORDS = """
-optf ok.opt
-optf=ok.opt
--options-file=ok.opt
-optf outer.opt
-optf self.opt
-optf empty.opt
-optf trail.opt x
-optf bogus.opt
-optf missing.opt
-optf words.opt
-optf single.opt
-optf comment.opt
-optf escape.opt
-optf escaped.opt
-optf quote.opt
-optf behind.opt
-optf open.opt
-optf end.opt
-optf joined.opt
-optf return.opt
-optf nul.opt
-optf none.opt
-optf .
-optf
-optf ''
-optf empty.opt,,x1
-optf '"a,b"'
-optf '"a'
-optf [a,b]
-optf ok.opt -optf empty.opt,empty.opt
"""

CHECKS = """
N
-o o
-arch=sm_75
-arch=sm_75 -o o
-arch=sm_75 N
-arch=sm_75 -o o -lfoo
-arch=lto_75
-arch=lto_75 N
-arch=lto_75 -o o N -suppress-debug-info
-arch=lto_75 -o o N -emit-ptx
-arch=lto_75 N -dlto
-arch=compute_75
-suppress-debug-info
-suppress-debug-info -arch=sm_75
-suppress-debug-info -arch=sm_75 -o o
-suppress-debug-info -arch=sm_75 -o o N
-arch=sm_75 -o o N -use-host-info -ignore-host-info
-arch=sm_75 -o o N -ignore-host-info -use-host-info
-arch=sm_75 -o o N -dump-callgraph -dump-callgraph-no-demangle
-arch=sm_75 -o o N -use-host-info -ignore-host-info -dump-callgraph -dump-callgraph-no-demangle
-arch=sm_75 -o o N -use-host-info -ignore-host-info -emit-ptx
-arch=sm_75 -o o N -emit-ptx
-arch=sm_75 -o o N -Ofc 0
-arch=sm_75 -o o N -emit-ptx -Ofc max
-arch=sm_75 -o o N -lto
-arch=sm_75 -o o N --dlto
-arch=sm_75 -o o N -emit-ptx -dlto
-arch=sm_75 -o o N -use-host-info -kernels-used k
-arch=sm_75 -o o N -use-host-info -kernels-used=
-arch=sm_75 -o o N -use-host-info -variables-used k -w -Werror -disable-infos -report-arch
-report-arch -arch=sm_75
-arch=sm_75 -report-arch -bogus
"""

HOST_SCRIPTS = """
-ghls=lcs-aug
-ghls lcs-aug
--gen-host-linker-script=lcs-aug -arch=sm_75 -lfoo -use-host-info -ignore-host-info
-ghls=lcs-aug -o o
-ghls=lcs-aug -o ''
-ghls=lcs-aug -o .
-ghls=lcs-aug -time t
-ghls=lcs-aug N
-ghls=lcs-aug lcs-abs
-ghls lcs-aug -bogus
-ghls -o
-ghls N
-arch=sm_75 N -o o -ghls
"""

TIMES = """
-arch=sm_75 N -o o -time -
-arch=sm_75 N -o o -time t
-arch=sm_75 N -o o -time old
-arch=sm_75 N -o o -time nowhere
-arch=sm_75 N -o o -time ''
-arch=sm_75 N -o o -time .
-arch=sm_75 N -o o -time missing/t
-arch=sm_75 N -o o -time missing/t -suppress-debug-info
-arch=sm_75 -o o -time t
-arch=sm_75 N -o o -time t -use-host-info -kernels-used k
-arch=sm_75 a.cubin b.cubin -o o -time -
-arch=sm_75 a.cubin b.cubin -o o -time t
-arch=sm_75 a.cubin b.cubin -o o -time old
-arch=sm_75 a.cubin b.cubin -o o -time /dev/full
-arch=sm_75 a.cubin b.cubin -o o -time missing/t
-arch=sm_75 a.cubin N -o o -time t
"""

LINKS = """
-arch=sm_75 a.cubin b.cubin -o o
-arch=sm_75 a.cubin b.cubin -o o -v
-arch=sm_75 a.cubin b.cubin -o o -v -disable-infos -report-arch
-arch=sm_75 a.cubin b.cubin -o o -lfoo -L. -L missing
-arch=sm_75 a.cubin b.cubin -o o -arch=sm_80 -arch=sm_75 -Werror
-arch=sm_75 a.cubin b.cubin -o o -use-host-info -kernels-used=k
-arch=sm_75 a.cubin b.cubin -o o -g -suppress-debug-info
-arch=sm_75 a.cubin b.cubin -o o -dump-callgraph
-arch=sm_75 a.cubin -o o -r
-arch=sm_75 a.cubin -o o
-arch=sm_75 a.cubin -o o -w
-arch=sm_75 a.cubin -o o -Werror -report-arch
-arch=sm_75 a.cubin b.cubin b.cubin -o o
-arch=sm_75 a.cubin a.cubin b.cubin -o o -report-arch
-arch=sm_80 a.cubin b.cubin -o o
-arch=sm_90a a.cubin b.cubin -o o
-arch=sm_90a a.cubin b.cubin -o o -w
-arch=sm_75 a.cubin N -o o
-arch=sm_75 a.cubin '' -o o
-arch=sm_75 a.cubin . -o o
-arch=sm_75 a.cubin b.cubin -o missing/o
-arch=sm_75 a.cubin b.cubin -o .
-arch=sm_75 a.cubin b.cubin -o ''
-arch=sm_75 a.cubin b.cubin -o o --register-link-binaries=reg
-arch=sm_75 a.cubin -o o --register-link-binaries=reg
-arch=sm_75 a.cubin b.cubin b.cubin -o o --register-link-binaries=reg
-arch=sm_75 a.cubin N -o o --register-link-binaries=reg
-arch=sm_75 a.cubin b.cubin -o o --register-link-binaries=missing/reg
-arch=sm_75 a.cubin b.cubin -o o --register-link-binaries=.
-arch=sm_75 -r a.cubin -o o --register-link-binaries=reg
"""


def lines(table: str) -> list[str]:
    return ["", *table.strip().splitlines()] if table is SPELLINGS else table.strip().splitlines()


EVERYTHING = [
    line
    for table in (
        SPELLINGS,
        VALUES,
        REDEFINITIONS,
        OPTION_FILE_WORDS,
        CHECKS,
        HOST_SCRIPTS,
        TIMES,
        LINKS,
    )
    for line in lines(table)
]


@pytest.fixture(scope="module")
def cubins() -> dict[str, bytes]:
    return {"a.cubin": oracle.compile(A, "75"), "b.cubin": oracle.compile(B, "75")}


def fill(folder: Path, cubins: dict[str, bytes]) -> None:
    """The files that the argument vectors name."""
    folder.mkdir()
    for name, data in cubins.items():
        (folder / name).write_bytes(data)
    for name, text in OPTION_FILES.items():
        (folder / name).write_bytes(text.encode())
    (folder / "old").write_text("old\n")
    (folder / "nowhere").symlink_to("made")


def files(folder: Path) -> dict[str, bytes]:
    """What is in the folder but the linked image, whose bytes other tests compare."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return {name: b"" if name == "o" else data for name, data in found.items()}


@pytest.mark.parametrize("line", EVERYTHING, ids=lambda line: line or "nothing")
def test_same_answer(
    line: str,
    cubins: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = shlex.split(line)
    folder = tmp_path / "folder"  # one path for both: it is part of what they write
    fill(folder, cubins)
    expected = oracle.run_nvlink(words, folder)
    made = files(folder)
    shutil.rmtree(folder)
    fill(folder, cubins)
    monkeypatch.chdir(folder)
    status = main(words, tool="nvlink")
    out, err = capfd.readouterr()
    assert (status, err, out) == (expected.code, expected.stderr, expected.stdout)
    assert files(folder) == made

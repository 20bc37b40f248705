"""LTO-IR: what nvJitLink is told, what keeps functions alive, and what happens without it."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.compare import compare
from helpers.cubin_builder import one_kernel
from helpers.fake_tool import fake_tool
from hypothesis import example, given
from hypothesis import strategies as st

import pylink
from pylink.command.cli import main
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.facts.fatbinentries import check_entries, recorded_options
from pylink.facts.inputkinds import LTOIR
from pylink.facts.target import Target
from pylink.inputs.compileinputs import CompileInput
from pylink.options.model import Options
from pylink.options.table import Value
from pylink.phases.lto import EXTERN
from pylink.subtools import lto
from pylink.subtools.keptfunctions import drop_unused, keep_source, quote

ARCH = "sm_90"
LTO = ("-lto", "-nvvmpath=nvvm")

# The first bytes of LTO-IR; what follows is none.
DAMAGED = bytes.fromhex("ed434e7f0141026203020700180001002800000000000000") + bytes(400)


def words(values: dict[str, Value], *, whole: bool = True) -> str:
    return " ".join(lto.nvjitlink_arguments(Options({"arch": ARCH, **values}), is_whole=whole))


def fatbin(text: str) -> bytes:
    """A fat binary of one entry, of `entry`."""
    body = entry(text)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def entry(text: str) -> bytes:
    """An entry without payload that has these options."""
    options = text.encode() + b"\0"
    block = struct.pack("<II", 0x48, len(options)) + options.ljust(len(options) + 7 & ~7, b"\0")
    header = struct.pack("<HHIQIIHHI", 8, 0x101, 64 + len(block), 0, 0, 64, 1, 65, 80)
    return header.ljust(64, b"\0") + block


def test_arguments() -> None:
    assert words({}) == "-arch=sm_90 -lto -ptx"
    assert words({"Ofast_compile": "min", "Xnvvm": ("-opt=0", "-fma=0")}) == (
        "-arch=sm_90 -lto -ptx -Ofc=min -Xnvvm=-opt=0 -Xnvvm=-fma=0"
    )
    assert words({"split_compile": 2}) == "-arch=sm_90 -lto -ptx -split-compile=2"
    both: dict[str, Value] = {"split_compile": 2, "split_compile_extended": 3}
    assert words(both) == "-arch=sm_90 -lto -ptx -split-compile=3"


def test_used_names_count_for_whole_programs_only() -> None:
    kernels: dict[str, Value] = {"kernels_used": ("k", "q")}
    assert words(kernels) == (
        "-arch=sm_90 -lto -ptx -kernels-used=k -kernels-used=q -optimize-unused-variables"
    )
    both: dict[str, Value] = {"kernels_used": ("k",), "variables_used": ("v",)}
    assert words(both) == "-arch=sm_90 -lto -ptx -kernels-used=k -variables-used=v"
    assert words(both, whole=False) == "-arch=sm_90 -lto -ptx"


def test_kept_functions_are_declared_and_used() -> None:
    source = keep_source(["_Z1fi", "g"])
    assert 'declare void @"_Z1fi"()\ndeclare void @"g"()\n' in source
    assert "@llvm.used = appending global [2 x i8*] [" in source
    assert 'i8* bitcast (void ()* @"g" to i8*)], section "llvm.metadata"' in source
    assert keep_source([]) == ""


def test_unused_declarations_are_dropped() -> None:
    def declared(name: str) -> bytes:
        return f".extern .func {name}\n()\n;\n".encode()

    text = b".version 9.0\n" + declared("a") + declared("b") + declared("ab") + declared("other")
    used = b".extern .func c\n(\n\t.param .b64 c_param_0\n)\n;\n{\n\tcall.uni \n\tb, \n}\n"
    expected = b".version 9.0\n" + declared("b") + declared("other") + used
    assert drop_unused(text + used, ["a", "b", "ab", "c", "missing"]) == expected
    assert drop_unused(text, []) == text
    assert drop_unused(b"", ["a"]) == b""


@given(st.binary(min_size=1))
@example(b"\\41")
def test_any_name_can_be_quoted(name: bytes) -> None:
    quoted = quote(name.decode("utf-8", "surrogateescape"))
    assert quoted.isascii()
    assert quoted.isprintable()
    assert '"' not in quoted[1:-1]
    assert quoted[0] == quoted[-1] == '"'
    read = re.sub(r"\\(..)", lambda code: chr(int(code[1], 16)), quoted[1:-1])
    assert read.encode("latin-1") == name


def test_settings_of_all_entries_must_agree() -> None:
    def check(*texts: str) -> Sink:
        sink = Sink()
        check_entries(
            [CompileInput(f"{i}", LTOIR, fatbin(text)) for i, text in enumerate(texts)], sink
        )
        return sink

    whole = entry("-ftz=0 -fmad=1 ")
    assert recorded_options(whole) == "-ftz=0 -fmad=1 "
    (size,) = struct.unpack_from("<I", whole, 0x44)
    longer = whole[:0x44] + struct.pack("<I", size + 1) + whole[0x48:]
    assert recorded_options(longer + bytes(8)) == ""  # it would reach into the payload
    assert not check("-ftz=0 -prec_div=1", "-ftz=0 -prec_div=1", "").diagnostics
    for name in ("ftz", "prec_div", "prec_sqrt", "fmad"):
        message = f"Cicc option values for '-{name.replace('_', '-')}' do not match"
        with pytest.raises(LinkError, match=message):
            check(f"-{name}=0", f"-{name}=1")
    kinds = [
        diagnostic.kind for diagnostic in check("-generate-line-info -ftz=0", "-ftz=0").diagnostics
    ]
    assert kinds == ["lto-line-info"]
    assert not check("-generate-line-info", "-generate-line-info").diagnostics


@given(st.binary(max_size=200))
def test_damaged_entries_have_no_options(data: bytes) -> None:
    assert isinstance(recorded_options(data), str)
    assert isinstance(recorded_options(entry("-ftz=0")[:4] + data), str)


def test_undefined_functions_of_ptx() -> None:
    text = b""".version 9.0
.extern .func  (.param .b64 func_retval0) __cudaCDP2GetParameterBufferV2
(
)
;
.extern .func plain
()
;
.extern .global .align 4 .u32 gvar;
.visible .func other()
"""
    assert EXTERN.findall(text) == [b"__cudaCDP2GetParameterBufferV2", b"plain"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with something that begins like LTO-IR, and a cubin."""
    monkeypatch.chdir(tmp_path)
    Path("a.ltoir").write_bytes(DAMAGED)
    made = one_kernel()
    made.e_flags = Target(ARCH).elf_flags
    Path("a.cubin").write_bytes(made.build())
    return tmp_path


def link(*argv: str) -> int:
    return main([f"-arch={ARCH}", "-o", "out", *argv])


def test_without_nvjitlink(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(pylink.__file__).parents[1])])
    assert link(*LTO, "a.ltoir", "-time=t") == 1
    text = capfd.readouterr().err
    assert text.startswith(
        "pylink fatal   : Link-time optimization needs nvJitLink, which was not found; "
        "install it with \"pip install 'pylink-cuda[cuda]'\" ("
    )
    assert text.count("\n") == 1
    assert not Path("out").exists()
    assert Path("t").read_text().count("\n") == 1


def test_damaged_ltoir(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cuda.bindings", reason="needs nvJitLink: pip install '.[cuda]'")
    assert link(*LTO, "a.ltoir", "-time=t") == 1
    text = capfd.readouterr().err
    assert text.startswith("pylink fatal   : Link-time optimization failed: ")
    assert text.count("\n") == 1
    assert not Path("out").exists()
    assert Path("t").read_text().count("\n") == 1


def test_a_compiler_that_does_not_end(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("python").write_text("#!/bin/sh\nexec sleep 60\n")
    Path("python").chmod(0o755)
    code = "import sys; from pylink.command.cli import main; sys.executable = './python'; "
    code += "sys.exit(main(sys.argv[1:]))"
    argv = [f"-arch={ARCH}", "-o", "out", *LTO, "a.ltoir", "--tool-timeout=1"]
    # What is looked for before the compiler starts; where there are others, they serve as well.
    Path("cuda/lib64").mkdir(parents=True)
    Path("cuda/lib64/libnvJitLink.so.13").write_bytes(b"\0__nvJitLinkCreate_13_0\0")
    fake_tool(Path("cuda/bin/ptxas"), "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    done = subprocess.run(
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        check=False,
        env={**os.environ, "CUDA_HOME": str(folder / "cuda")},
    )
    assert done.returncode == 1
    assert b"failed: the compiler did not end in time and was stopped" in done.stderr


def test_ltoir_needs_the_option(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert link("a.ltoir") == 1
    assert (
        capfd.readouterr().err
        == "pylink fatal   : should only see nvvm files when -lto (a.ltoir)\n"
    )


def test_inputs_without_ltoir(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert link("a.cubin") == 0
    plain = Path("out").read_bytes()
    for more in ((), ("-emit-ptx",)):
        assert link(*LTO, *more, "a.cubin") == 0
        assert capfd.readouterr().err.splitlines() == [
            "pylink info    : requested LTO but 'a.cubin' not built for LTO so doing partial LTO",
            "pylink warning : Ignoring -dlto option because no LTO objects found",
        ]
        assert compare(Path("out").read_bytes(), plain) == []  # but for the options it notes


def test_relocatable_outputs_are_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert link(*LTO, "-r", "a.ltoir") == 1
    assert "Option '-r' cannot be combined with LTO input 'a.ltoir'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("-Ofc=fast",), "fatal   : Invalid argument for option '--Ofast-compile'"),
        (
            ("-emit-ptx", "-split-compile-extended=2"),
            "info    : Incompatible options '-emit-ptx' and '-split-compile-extended', "
            "using '-split-compile'",
        ),
        (
            ("-split-compile=2", "-split-compile-extended=2"),
            "info    : Incompatible options '-split-compile' and '-split-compile-extended', "
            "using '-split-compile-extended'",
        ),
    ],
)
def test_values_and_combinations(
    more: tuple[str, ...], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    link(*LTO, *more, "a.cubin")
    assert capfd.readouterr().err.startswith(f"pylink {message}\n")

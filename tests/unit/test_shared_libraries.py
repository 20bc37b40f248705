"""Shared libraries with relocatable device code: what is linked of them, and what is said."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.archive_builder import gnu
from helpers.cubin_builder import IN_GLOBAL, SHT_GLOBAL_INIT, Cubin, Section, Symbol
from helpers.fatbin_builder import container, entry, host_object
from helpers.linked import functions
from helpers.section_names import with_numbers_in_first_header
from helpers.shared_builder import LISTS, SharedLibrary

from pylink.command.cli import main
from pylink.outputs.registerlink import register_text

A, B, C = "_0000000a_4_a_cu_a", "_0000000b_4_b_cu_b", "_0000000c_4_c_cu_c"
D = "_0000000d_4_d_cu_d"
STO_MANAGED = 4


def code(*kernels: str, defines: tuple[str, ...] = (), calls: tuple[str, ...] = ()) -> bytes:
    cubin = Cubin()
    for name in defines:
        cubin.function(name)
    for name in kernels:
        kernel = cubin.function(name, kernel=True)
        for callee in calls:
            outside = cubin.external(callee)
            cubin.call(kernel, outside)
            cubin.relocate(kernel_section(cubin, name), [(16, 58, outside, 0)], implicit=True)
    return cubin.build()


def needing(name: str, callee: str) -> bytes:
    """A function that calls another file's."""
    cubin = Cubin()
    function = cubin.function(name)
    outside = cubin.external(callee)
    cubin.call(function, outside)
    cubin.relocate(kernel_section(cubin, name), [(16, 58, outside, 0)], implicit=True)
    return cubin.build()


def kernel_section(cubin: Cubin, name: str) -> int:
    return cubin.find(f".text.{name}")


def host(text: str, cubin: bytes, *kernels: str) -> bytes:
    """A host object of one module, with the list of the kernels that it uses."""
    lists = [
        (
            f".nvHR{kind}",
            b"".join(f"{name}\0".encode() for name in kernels * (kind == "KE")) + b"\0",
        )
        for kind in LISTS
    ]
    ids = ("__nv_module_id", text.encode() + b"\0")
    return host_object([("__nv_relfatbin", container(entry(cubin, 80))), ids, *lists])


MAIN = host(A, code("main_kernel", "unused", calls=("b_fun",)), "main_kernel")
ALONE = host(A, code("main_kernel", "unused"), "main_kernel")
B_CODE = code("b_kernel", defines=("b_fun",))
LIBRARY = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"])
ALL = {"main_kernel", "b_kernel", "b_fun"}
BORROWING = ALL - {"b_kernel"}


Link = Callable[..., "Result"]
Capture = pytest.CaptureFixture[str]


class Result:
    """What one command line made and said; `functions` is None without an output."""

    def __init__(self, folder: Path, files: dict[str, bytes], words: list[str], name: str) -> None:
        for file, data in files.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(data)
        output, listed = folder / "out", folder / "reg.c"
        output.unlink(missing_ok=True)
        words = [*words, "-arch=sm_80", "-o", "out", "--register-link-binaries=reg.c"]
        self.code = main(words, tool=name)
        self.functions = functions(output.read_bytes()) if output.exists() else None
        self.registered = listed.read_text() if listed.exists() else ""

    @property
    def ids(self) -> list[str]:
        return re.findall(r"DEFINE_REGISTER_FUNC\((.*)\)", self.registered)


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Link:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, name: str = "pylink", **files: bytes) -> Result:
        named = {key.replace("_", ".").replace("..", "/"): data for key, data in files.items()}
        return Result(tmp_path, named, list(words) or list(named), name)

    return run


def test_code_of_an_open_library_is_linked(link: Link, capsys: Capture) -> None:
    found = link(main_o=MAIN, libb_so=LIBRARY.build())
    assert (found.code, found.functions, found.ids) == (0, ALL, [A, B])
    first = link(libb_so=LIBRARY.build(), main_o=MAIN)
    assert (first.functions, first.ids) == (ALL, [B, A])
    assert capsys.readouterr().err == ""


def test_a_library_in_a_directory_of_L(link: Link) -> None:
    files = {"main_o": MAIN, "d__libb_so": LIBRARY.build(), "c__libb_a": gnu([("x.o", ALONE)])}
    files |= {"d__libb_so_1": LIBRARY.build()}
    for words in (["-Lc", "-Ld", "-lb"], ["-Ld", "-l:libb.so"], ["-Ld", "-l:libb.so.1"]):
        found = link("main.o", *words, **files)
        assert (found.code, found.functions, found.ids) == (0, ALL, [A, B])


def test_a_library_with_its_counts_in_the_first_section_header(link: Link, capsys: Capture) -> None:
    """There they are if it has 65,280 sections or more. Wrong ones make it no library."""
    words, library = ("main.o", "-Ld", "-lb"), LIBRARY.build()
    found = link(*words, main_o=MAIN, d__libb_so=with_numbers_in_first_header(library))
    assert (found.code, found.functions, found.ids) == (0, ALL, [A, B])
    assert capsys.readouterr().err == ""
    for wrong in ({"count": 0}, {"count": 1000}, {"count": (1 << 64) - 1}, {"names": 0xFFFFFFFF}):
        damaged = with_numbers_in_first_header(library, **wrong)
        found = link(*words, main_o=MAIN, d__libb_so=damaged)
        assert (found.code, found.functions) == (255, None)
        assert "Undefined reference to 'b_fun'" in capsys.readouterr().err


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("when", range(1, 8))
def test_a_library_that_is_cut_while_it_is_read(
    link: Link, capsys: Capture, monkeypatch: pytest.MonkeyPatch, when: int, closed: bool
) -> None:
    """That is an error, if it matters; a mapped file would end the process by a signal."""
    library = SharedLibrary(
        modules=[(B, B_CODE)], kernels=["b_kernel"], closed=[B] if closed else []
    ).build()
    real, count = os.pread, 0

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        nonlocal count
        count += 1
        if count == when:
            os.truncate("d/libb.so", 64)
        return real(descriptor, size, offset)

    monkeypatch.setattr("pylink.inputs.libraryfile.os.pread", pread)
    found = link("main.o", "-Ld", "-lb", main_o=ALONE, d__libb_so=library)
    said = capsys.readouterr().err
    assert count >= min(when, 5)
    assert (found.code != 0) is bool(said)
    if 1 < when <= count:
        assert "it became shorter while it was read" in said


def test_a_library_whose_file_cannot_be_read(
    link: Link, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pread(*_: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("pylink.inputs.libraryfile.os.pread", pread)
    assert link("main.o", "-Ld", "-lb", main_o=MAIN, d__libb_so=LIBRARY.build()).code == 1
    assert "'d/libb.so'" in (said := capsys.readouterr().err)
    assert "Input/output error" in said


def test_a_library_that_claims_large_sections(link: Link, capsys: Capture, tmp_path: Path) -> None:
    """Symbols of gigabytes of holes are not read, nor is a pipe."""
    large = SharedLibrary(modules=[(B, B_CODE)], damage=".dynsym").build()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/libb.so").write_bytes(large)
    os.truncate(tmp_path / "d/libb.so", 1 << 41)
    assert link("main.o", "-Ld", "-lb", main_o=ALONE).code == 1
    assert "its sections are too large" in capsys.readouterr().err
    os.unlink(tmp_path / "d/libb.so")
    os.mkfifo(tmp_path / "d/libb.so")
    assert link("main.o", "-Ld", "-lb").functions == {"main_kernel"}


def test_a_library_for_another_machine_is_passed_over(link: Link, capsys: Capture) -> None:
    other = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], machine=183).build()
    assert link("main.o", "-Ld", "-lb", main_o=MAIN, d__libb_so=other).code == 255
    assert "Undefined reference to 'b_fun'" in capsys.readouterr().err
    assert link("main.o", "-Ld", "-lb", "--cpu-arch=AARCH64").code == 0


@pytest.mark.parametrize(
    "library",
    [
        SharedLibrary(),
        SharedLibrary(modules=[(B, B_CODE)], closed=[B], words=[f"def {B}"]),
        SharedLibrary(modules=[(B, B_CODE)], nobits=True),
        SharedLibrary(extra=[(".nv_fatbin", container(entry(B_CODE, 80)))]),
    ],
    ids=["no code", "closed", "no bytes", "no relocatable code"],
)
@pytest.mark.parametrize("name", ["libb_so", "libb_so_1", "libb_o", "libb_weird"])
def test_a_library_without_open_code_is_not_there(
    link: Link, capsys: Capture, library: SharedLibrary, name: str
) -> None:
    """Neither its code, nor its ids, nor the lack of lists in it count."""
    found = link(main_o=ALONE, **{name: library.build()})
    assert (found.code, found.functions, found.ids) == (0, {"main_kernel"}, [A])
    assert capsys.readouterr().err == ""


def test_a_text_in_the_place_of_a_library_is_not_there(link: Link, capsys: Capture) -> None:
    for text in (b"INPUT(x)", b"GROUP ( /lib/libc.so.6 AS_NEEDED ( /lib/ld-linux-x86-64.so.2 ) )"):
        found = link(main_o=ALONE, libc_so=text)
        assert (found.code, found.functions) == (0, {"main_kernel"})
        assert link("main.o", "-L.", "-lc").functions == {"main_kernel"}
    assert capsys.readouterr().err == ""
    assert link(main_o=ALONE, libc_txt=b"GROUP ( /lib/libc.so.6 )").code == 1


@pytest.mark.parametrize("order", [["m.o", "b.o", "libb.so"], ["m.o", "libb.so", "b.o"]])
@pytest.mark.parametrize("twin", ["b.o", "libt.a"])
def test_the_static_twin_of_a_library_is_linked(
    link: Link, order: list[str], twin: str, capsys: Capture
) -> None:
    words = [twin if word == "b.o" else word for word in order]
    static = host(B, B_CODE, "b_kernel")
    files = {"m_o": MAIN, "b_o": static, "libt_a": gnu([("b.o", static)])}
    expected = link("m.o", twin, **files)
    found = link(*words, libb_so=LIBRARY.build(), **files)
    assert (found.code, found.functions, found.ids) == (0, expected.functions, expected.ids)
    said = "warning : 'libb.so' and 'b.o' contain the same module; link only one of them"
    assert (said in capsys.readouterr().err) is (twin == "b.o")


def test_the_same_library_twice_counts_once(link: Link) -> None:
    found = link(
        "m.o", "libb.so", "copy.so", m_o=MAIN, libb_so=LIBRARY.build(), copy_so=LIBRARY.build()
    )
    assert (found.code, found.functions, found.ids) == (0, ALL, [A, B])


def test_of_a_partly_closed_library_the_rest_is_linked(link: Link) -> None:
    both = SharedLibrary(
        modules=[(B, B_CODE), (C, code("c_kernel", defines=("b_fun",)))],
        kernels=["b_kernel", "c_kernel"],
        closed=[C],
        words=[f"def {C}", "__NV_MODULE_ID"],
    )
    found = link(m_o=MAIN, libbc_so=both.build())
    assert (found.code, found.functions, found.ids) == (0, ALL, [A, B])


def test_lists_that_the_host_linker_cut_keep_all_kernels(link: Link) -> None:
    cut = SharedLibrary(modules=[(B, B_CODE)], kernels=[], kept_lists=False)
    assert link(m_o=MAIN, libb_so=cut.build()).functions == ALL | {"unused"}
    whole = SharedLibrary(modules=[(B, B_CODE)], kernels=[])
    assert link(m_o=MAIN, libb_so=whole.build()).functions == ALL - {"b_kernel"}


def test_a_module_has_one_owner(link: Link, capsys: Capture) -> None:
    owner = SharedLibrary(modules=[(C, code("c_kernel"))], closed=[C], linked=[B]).build()
    for words in (["m.o", "libx.so", "libb.so"], ["m.o", "libb.so", "libx.so"]):
        found = link(*words, m_o=ALONE, libx_so=owner, libb_so=LIBRARY.build())
        assert (found.code, found.functions, found.ids) == (0, {"main_kernel"}, [A])
        assert capsys.readouterr().err == ""
        found = link(*words, m_o=MAIN)
        assert (found.code, found.functions, found.ids) == (0, BORROWING, [A])
        assert found.registered == register_text([(A, True)], "", {}, [B])
        assert capsys.readouterr().err == ""
    assert link("m.o", "-L.", "-lx", "-lb").functions == BORROWING


CLOSED = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], closed=[B])


def test_code_of_a_closed_library_is_borrowed(link: Link, capsys: Capture) -> None:
    """It is linked and not registered again, its kernels are no roots, and its PTX is named."""
    for words in (["m.o", "libb.so"], ["libb.so", "m.o"], ["m.o", "-L.", "-lb"]):
        for name in ("pylink", "nvlink"):
            found = link(*words, m_o=MAIN, libb_so=CLOSED.build(), name=name)
            assert (found.code, found.functions, found.ids) == (0, BORROWING, [A])
            assert found.registered == register_text([(A, True)], "", {}, [B])
            assert "NUM_PRELINKED_OBJECTS 2\n" in found.registered
    assert capsys.readouterr().err == ""


def test_nothing_is_borrowed_that_is_not_missing(link: Link) -> None:
    """What nvlink links stays as it is: dead code may lack what it refers to, and -r anything."""
    dead = host(A, code("main_kernel", "unused", calls=("b_fun",)), "unused_name")
    lacking = host(D, code(defines=("d_fun",)))
    closed = CLOSED.build()
    expected = link("m.o", "d.o", m_o=ALONE, d_o=lacking, libb_so=closed)
    assert link("m.o", "d.o", "libb.so").registered == expected.registered
    assert link("n.o", "libb.so", n_o=dead).registered == link("n.o").registered
    assert link("m.o", "libb.so", "-r", m_o=MAIN).functions == {"main_kernel", "unused"}
    # An archive's code comes first, wherever it stands.
    archive = gnu([("b.o", host(C, B_CODE, "b_kernel"))])
    for words in (["m.o", "libb.so", "libt.a"], ["m.o", "libt.a", "libb.so"]):
        found = link(*words, libt_a=archive)
        assert (found.functions, found.ids) == (ALL, [A, C])
        assert "lend" not in found.registered


def test_what_borrowed_code_needs_is_linked(link: Link) -> None:
    """Of other libraries, and of archives, whose code is registered as ever."""
    calling = code("c_kernel", defines=("c_fun",))
    chain = SharedLibrary(
        modules=[(B, needing("b_fun", "c_fun")), (D, code("d_kernel", defines=("d_fun",)))],
        closed=[B, D],
    )
    files = {"m_o": MAIN, "libb_so": chain.build()}
    closed = SharedLibrary(modules=[(C, calling)], closed=[C]).build()
    found = link("m.o", "libb.so", "libc.so", libc_so=closed, **files)
    assert found.functions == {"main_kernel", "unused", "b_fun", "c_fun"} - {"unused"}
    assert found.registered == register_text([(A, True)], "", {}, [B, C])
    found = link("m.o", "libt.a", "libb.so", libt_a=gnu([("c.o", host(C, calling))]), **files)
    assert found.functions == {"main_kernel", "b_fun", "c_fun"}
    assert found.registered == register_text([(A, True), (C, True)], "", {}, [B])


def test_what_is_missing_nevertheless_is_told_as_before(link: Link, capsys: Capture) -> None:
    other = SharedLibrary(modules=[(C, code("c_kernel", defines=("c_fun",)))], closed=[C]).build()
    assert link(m_o=MAIN, libc_so=other).code == 255
    assert capsys.readouterr().err == "pylink error   : Undefined reference to 'b_fun' in 'm.o'\n"
    damaged = SharedLibrary(modules=[(B, B_CODE)], closed=[B], ids=[B, C]).build()
    assert link("m.o", "libb.so", libb_so=damaged).code == 255
    assert "'libb.so' has 1 fat binaries of relocatable code but 2 module ids" in (
        capsys.readouterr().err
    )
    newer = SharedLibrary(modules=[(B, B_CODE)], closed=[B], sm=90).build()
    assert link("m.o", "libb.so", libb_so=newer).code == 255
    said = capsys.readouterr().err
    assert "warning : SM Arch ('sm_80') not found in 'libb.so'" in said
    assert "Undefined reference to 'b_fun'" in said


@pytest.mark.parametrize("ptx", [False, True])
def test_a_wrapper_that_nobody_sees_is_not_lent(link: Link, capsys: Capture, ptx: bool) -> None:
    library = SharedLibrary(
        modules=[(B, B_CODE)], kernels=["b_kernel"], closed=[B], hidden=[B], with_ptx=ptx
    )
    found = link(m_o=MAIN, libb_so=library.build())
    assert (found.code, found.functions) == (0, BORROWING)
    assert found.registered == register_text([(A, True)], "", {})
    assert ("warning : 'libb.so' hides '__fatbinwrap" in capsys.readouterr().err) is ptx


@pytest.mark.parametrize("order", [["libt.a", "libb.so"], ["libb.so", "libt.a"]])
def test_an_archive_module_of_a_plugin_is_registered_where_it_is(
    link: Link, capsys: Capture, order: list[str]
) -> None:
    """Kernels stay if the host's linker may take the member."""
    archive = gnu([("b.o", host(B, B_CODE, "b_kernel"))])
    found = link("m.o", *order, "--shared", m_o=MAIN, libb_so=CLOSED.build(), libt_a=archive)
    text = register_text([(A, True), (B, True)], "", {}, [], {B})
    assert (found.code, found.registered) == (0, text)
    assert found.functions == (ALL if order[0] == "libt.a" else BORROWING)
    assert capsys.readouterr().err == ""
    assert link("m.o", *order).ids == [A, B]


def variables(*, name: str = "state", managed: bool = False) -> bytes:
    """Code of B, whose function uses a variable."""
    cubin = Cubin()
    section = cubin.section(Section(".nv.global.init", SHT_GLOBAL_INIT, b"\1\0\0\0", 3))
    other = IN_GLOBAL | (STO_MANAGED if managed else 0)
    variable = cubin.symbol(Symbol(name, section=section, size=4, other=other))
    cubin.function("b_fun")
    cubin.relocate(kernel_section(cubin, "b_fun"), [(16, 57, variable, 0)], implicit=True)
    return cubin.build()


def test_variables_of_borrowed_modules_are_told(link: Link, capsys: Capture) -> None:
    name = f"__nv_static_{len(B)}_{B}_state"
    library = SharedLibrary(modules=[(B, variables(name=name))], closed=[B])
    assert link(m_o=MAIN, libb_so=library.build()).code == 0
    assert capsys.readouterr().err.startswith(
        "pylink warning : 'state' of 'libb.so' is copied into this image, because 'libb.so' was "
        "device-linked with it; neither sees what the other writes to it\n"
    )
    library = SharedLibrary(modules=[(B, variables(managed=True))], closed=[B])
    assert link("m.o", "libb.so", libb_so=library.build()).code == 255
    assert "error   : __managed__ variable 'state' of 'libb.so' has no address in this image" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("imports", "own"),
    [
        (["dlopen", "dlsym"], True),
        (["dlsym", "cudalike", "_cudaFree", "cuda", "__cuda_x"], True),
        (["dlsym", "__cudaRegisterFunction"], False),
        (["cudaMalloc", "dlsym"], False),
        (["__cudaUnregisterFatBinary"], False),
        ([], False),
    ],
)
def test_a_library_with_a_runtime_of_its_own(
    link: Link, capsys: Capture, imports: list[str], own: bool
) -> None:
    """One that is linked in looks for the driver by name; nothing else shows."""
    library = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], imports=imports)
    assert link(m_o=MAIN, libb_so=library.build()).code == 0
    said = capsys.readouterr().err
    assert ("warning : 'libb.so' contains its own CUDA runtime" in said) is own


def test_a_hidden_wrapper_is_handed_over(link: Link, capsys: Capture) -> None:
    library = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], hidden=[B])
    found = link(m_o=MAIN, libb_so=library.build())
    assert found.ids == [A]
    assert found.registered == register_text([(A, True), (B, True)], "", {B: "lib_function"})
    assert f"void __cudaRegisterLinkedBinary{B}(" in found.registered
    assert "&lib_function;" in found.registered
    assert capsys.readouterr().err == ""
    nothing = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], hidden=[B], exports=[])
    assert "&" not in link(m_o=MAIN, libb_so=nothing.build()).registered.replace("&p", "")
    assert "warning : 'libb.so' exports neither" in capsys.readouterr().err


SYMBOLIC, FIRST, PART, LOCAL, ONLY_ONE, TWICE = (
    "kernels of 'libbc.so' will not be found (link it with -Bsymbolic)",
    "name 'libt.a' before 'libbc.so'",
    "(rebuild 'libbc.so' with nvcc -nodlink)",
    "If 'libbc.so' is loaded first, kernels of this link will not be found",
    "'libbc.so' and 'b.o' contain the same module",
    "'libbc.so' and 'libo.so' were both device-linked with module",
)


@pytest.mark.parametrize(
    ("words", "changes", "warning"),
    [
        ("m.o b.o libbc.so", {}, SYMBOLIC),
        ("m.o libt.a libbc.so", {}, SYMBOLIC),
        ("m.o libbc.so libt.a", {}, PART),
        ("m.o libbc.so libt.a", {"hidden": [B]}, SYMBOLIC),
        ("m.o b.o libbc.so", {"symbolic": True}, None),
        ("m.o b.o libbc.so", {"interposable": False}, None),
        ("m.o libt.a libbc.so", {"symbolic": True}, None),
        ("m.o libbc.so libt.a", {"symbolic": True}, FIRST),
        ("m.o libbc.so libt.a", {"interposable": False}, FIRST),
        ("m.o libbc.so libt.a --shared", {}, None),
        ("m.o libbc.so libt.a --shared", {"symbolic": True}, None),
        ("m.o libt.a libbc.so --shared", {"symbolic": True}, None),
        ("m.o b.o libbc.so --shared", {}, LOCAL),
        ("m.o libbc.so --shared", {}, None),
        ("x.o libbc.so libo.so", {}, TWICE),
        ("x.o libbc.so libo.so", {"symbolic": True}, None),
        ("x.o libbc.so -L. -lbc", {}, None),
    ],
    ids=str,
)
def test_a_part_of_what_a_library_registers(
    link: Link, capsys: Capture, words: str, changes: Any, warning: str | None
) -> None:
    """What helps depends on who calls which registration, and on who comes first."""
    closed = SharedLibrary(
        modules=[(B, B_CODE), (C, code("c_kernel"))], closed=[B, C], **changes
    ).build()
    other = SharedLibrary(modules=[(B, B_CODE)], closed=[B], **changes).build()
    static = host(B, B_CODE, "b_kernel")
    files = {"m_o": MAIN, "x_o": ALONE, "b_o": static, "libt_a": gnu([("b.o", static)])}
    found = link(*words.split(), libbc_so=closed, libo_so=other, **files)
    said = capsys.readouterr().err
    assert found.code == 0
    assert said.count("warning") == (warning is not None)
    assert warning is None or warning in said


@pytest.mark.parametrize("shared", [False, True])
def test_all_of_what_a_library_registers(link: Link, capsys: Capture, shared: bool) -> None:
    """It is called for the module twice where an object has it, and loses it to a plugin."""
    closed = SharedLibrary(modules=[(B, B_CODE)], closed=[B]).build()
    words = ["--shared"] if shared else []
    static = host(B, B_CODE, "b_kernel")
    files = {"m_o": MAIN, "b_o": static, "libt_a": gnu([("b.o", static)]), "libbc_so": closed}
    link("m.o", "b.o", "libbc.so", *words, **files)
    assert (LOCAL if shared else ONLY_ONE) in capsys.readouterr().err
    for order in (["libbc.so", "libt.a"], ["libt.a", "libbc.so"]):
        link("m.o", *order, *words, **files)
        assert capsys.readouterr().err == ""


def test_a_library_that_only_holds_a_link_is_an_owner(link: Link, capsys: Capture) -> None:
    final = SharedLibrary(linked=[B, C]).build()
    for words in (["m.o", "libf.so", "libb.so"], ["m.o", "libb.so", "libf.so"]):
        found = link(*words, m_o=ALONE, libf_so=final, libb_so=LIBRARY.build())
        assert (found.code, found.functions, found.ids) == (0, {"main_kernel"}, [A])
        assert capsys.readouterr().err == ""
        found = link(*words, m_o=MAIN)
        assert (found.functions, found.ids) == (BORROWING, [A])
        assert found.registered == register_text([(A, True)], "", {}, [B])
    static = host(B, B_CODE, "b_kernel")
    assert link("m.o", "b.o", "libf.so", m_o=MAIN, b_o=static).functions == ALL
    assert "omit 'libf.so' or 'b.o'" in capsys.readouterr().err
    link("m.o", "libf.so", "libg.so", m_o=ALONE, libg_so=SharedLibrary(linked=[D, B]).build())
    assert "'libf.so' and 'libg.so' were both device-linked with module" in capsys.readouterr().err
    link("m.o", "libf.so", "libg.so", libg_so=final)
    assert capsys.readouterr().err == ""  # nothing calls the second, and nothing has to


def test_a_library_of_other_images_is_not_there(link: Link, capsys: Capture) -> None:
    """Code that is not relocatable has an image, too, and no registration of modules."""
    image = [(".nv_fatbin", b"image")]
    for library in (
        SharedLibrary(extra=image, exports=["__cudaRegisterFatBinary"]),
        SharedLibrary(extra=image, imports=[f"__cudaRegisterLinkedBinary{B}"]),
    ):
        plain = library.build().replace(b"__nv_relfatbin", b"__nv_otherthing")
        assert link(m_o=ALONE, libb_so=plain).functions == {"main_kernel"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"damage": ".dynsym"}, "its dynamic symbols lie outside the file"),
        ({"damage": ".dynstr"}, "its dynamic symbols lie outside the file"),
        ({"damage": "name"}, "the name of a dynamic symbol lies outside the string table"),
        ({"damage": "__nv_relfatbin"}, "section 5 lies outside the file"),
        ({"ids": []}, "'libb.so' has 1 fat binaries of relocatable code but 0 module ids"),
        ({"ids": [B, C, A]}, "'libb.so' has 1 fat binaries of relocatable code but 3 module ids"),
    ],
    ids=str,
)
def test_damage_is_told(link: Link, capsys: Capture, changes: Any, reason: str) -> None:
    library = SharedLibrary(modules=[(B, B_CODE)], kernels=["b_kernel"], **changes)
    assert link(m_o=ALONE, libb_so=library.build()).code == 255
    assert reason in capsys.readouterr().err


def test_no_cut_of_a_library_does_harm(link: Link) -> None:
    library = LIBRARY.build()
    for size in range(64, len(library), 37):
        assert link("m.o", "libb.so", m_o=ALONE, libb_so=library[:size]).code in (0, 1, 255)


def test_a_library_without_section_headers_has_no_code(link: Link, capsys: Capture) -> None:
    library = bytearray(LIBRARY.build())
    library[40:48] = bytes(8)
    assert link(m_o=ALONE, libb_so=bytes(library)).functions == {"main_kernel"}
    assert capsys.readouterr().err == ""
    assert link("m.o", "libb.so", m_o=MAIN).code == 255
    assert "note    : 'libb.so' has no section headers" in capsys.readouterr().err


def test_a_closed_library_of_thousands_of_modules(link: Link) -> None:
    """Of which one is wanted; their ids may be anything, and are no code in the header."""
    names = [f"_{number:08x}_4_x_cu_x" for number in range(4000)]
    modules = [(name, code(defines=(f"f{name}",))) for name in names]
    odd = "_b; system(name); //"
    closed = SharedLibrary(modules=[*modules, (odd, B_CODE)], closed=[*names, odd])
    found = link(m_o=MAIN, libb_so=closed.build())
    assert (found.code, found.functions) == (0, BORROWING)
    assert found.registered == register_text([(A, True)], "", {})


def test_a_borrowed_kernel_stays_that_code_launches(link: Link) -> None:
    """Its address is taken; other kernels of the module go."""
    cubin = Cubin()
    cubin.function("b_fun")
    cubin.take_address(cubin.function("launched", kernel=True), "F1i1i")
    cubin.function("b_kernel", kernel=True)
    library = SharedLibrary(modules=[(B, cubin.build())], closed=[B])
    for names in (("main_kernel",), ("main_kernel", "unused")):
        main_object = host(A, code("main_kernel", "unused", calls=("b_fun",)), *names)
        found = link(m_o=main_object, libb_so=library.build())
        assert found.functions == {*names, "b_fun", "launched"}


def test_a_library_that_says_an_id_twice(link: Link) -> None:
    twice = SharedLibrary(modules=[(B, B_CODE), (B, B_CODE)], closed=[B])
    found = link(m_o=MAIN, libb_so=twice.build())
    assert (found.code, found.functions) == (0, BORROWING)
    assert found.registered == register_text([(A, True)], "", {}, [B])


@pytest.mark.parametrize("words", [["-Ld", "-lb"], ["d/libb.so"], ["-Ld", "-l:libb.so"]])
@pytest.mark.parametrize("closed", [False, True])
def test_a_link_with_a_library_is_packed(
    link: Link, tmp_path: Path, capsys: Capture, words: list[str], closed: bool
) -> None:
    """It is the same elsewhere."""
    library = SharedLibrary(
        modules=[(B, B_CODE)], kernels=["b_kernel"], closed=[B] if closed else []
    )
    files = {"main_o": MAIN, "d__libb_so": library.build()}
    first = link("main.o", *words, "--reproduce=r.tar.zst", **files)
    said = capsys.readouterr().err
    assert first.code == 0
    for name in ("main.o", "d/libb.so", "out"):
        (tmp_path / name).unlink(missing_ok=True)
    assert main(["reproduce", "r.tar.zst", "-o", "again"]) == first.code
    assert capsys.readouterr().err == said
    again = functions((tmp_path / "again").read_bytes())
    assert again == first.functions == (BORROWING if closed else ALL)

"""Which members of archives a link takes, and how it names those it cannot read."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from helpers.archive_builder import bsd, device, gnu, header, member, thin, write
from helpers.cubin_builder import one_kernel, with_wide_counts
from helpers.fatbin_builder import container, entry, host_object
from helpers.linked import functions

import pylink
from pylink.command.cli import main
from pylink.inputs import archive

ARCH = "-arch=sm_80"
MAIN = device(calls=["f"], kernel="k")
F, G = device(["f"]), device(["g"])
F_NEEDS_G = device(["f"], calls=["g"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def linked(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """The functions of a link that works without a word."""
    code = main([ARCH, *words, "-o", "out.cubin"])
    assert (code, capsys.readouterr().err) == (0, "")
    return functions(Path("out.cubin").read_bytes())


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is said about a link that does not work."""
    Path("out.cubin").unlink(missing_ok=True)
    assert main([ARCH, *words, "-o", "out.cubin"]) != 0
    assert not Path("out.cubin").exists()
    return capsys.readouterr().err


def test_cubins_are_taken_where_something_is_undefined(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = gnu([("g.cubin", G), ("f.cubin", F), ("other.cubin", device(kernel="other"))])
    write(here, {"main.cubin": MAIN, "lib.a": archive})
    # All of the archive, as it is with members of other kinds.
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "f", "other"}
    assert linked(capsys, "lib.a", "main.cubin") == {"k", "f", "other"}


def test_of_archives_only_those_that_are_needed_are_taken(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, {"main.cubin": MAIN, "1.a": gnu([("f.cubin", F)])})
    write(here, {"2.a": gnu([("other.cubin", device(kernel="other"))])})
    assert linked(capsys, "main.cubin", "1.a", "2.a") == {"k", "f"}
    assert linked(capsys, "2.a", "1.a", "main.cubin") == {"k", "f"}


def test_cubins_that_nothing_needs_change_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, {"main.cubin": one_kernel().build(), "lib.a": gnu([("f.cubin", F)])})
    linked(capsys, "main.cubin")
    alone = Path("out.cubin").read_bytes()
    linked(capsys, "main.cubin", "lib.a")
    assert Path("out.cubin").read_bytes() == alone


def test_host_objects_that_nvlink_overlooks_are_for_what_is_undefined(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It links all others, whatever needs them."""
    hosted = host_object([("__nv_relfatbin", container(entry(device(kernel="other"), 80)))])
    write(here, {"main.cubin": one_kernel("k").build(), "lib.a": gnu([("x.o", hosted)])})
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "other"}
    write(here, {"lib.a": gnu([("notes", b"text"), ("x.o", hosted)])})
    assert linked(capsys, "main.cubin", "lib.a") == {"k"}


def test_an_archive_alone_is_the_program(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {"lib.a": gnu([("f.cubin", F), ("main.cubin", MAIN)])})
    assert linked(capsys, "lib.a") == {"k", "f"}


@pytest.mark.parametrize("pack", [gnu, bsd])
def test_members_of_no_use_are_passed_over(
    here: Path, capsys: pytest.CaptureFixture[str], pack: type
) -> None:
    inner = gnu([("f.cubin", F)])
    members = [("notes.txt", b"text"), ("empty", b""), ("inner.a", inner), ("x.ptx", b".version")]
    write(here, {"main.cubin": MAIN, "lib.a": pack(members)})
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "f"}


def test_lazy_archives_give_what_is_needed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = device(["h"], kernel="other")
    first = gnu([("other.cubin", other), ("f.cubin", F_NEEDS_G), ("again.cubin", F)])
    second = gnu([("g.cubin", G), ("f.cubin", F)])
    write(here, {"main.cubin": MAIN, "1.a": first, "2.a": second})
    # In any order of archives and users; the first definition in command order counts.
    lazy = "--lazy-archives"
    assert linked(capsys, lazy, "main.cubin", "1.a", "2.a") == {"k", "f", "g"}
    assert linked(capsys, lazy, "1.a", "2.a", "main.cubin") == {"k", "f", "g"}
    assert linked(capsys, lazy, "main.cubin", "2.a", "1.a") == {"k", "f"}


def test_whole_archives_by_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {f"{name}.a": gnu([(f"{name}.cubin", device(kernel=name))]) for name in "abc"}
    files["main.cubin"] = one_kernel("k").build()
    files["lib/libd.a"] = gnu([("d.cubin", device(kernel="d"))])
    write(here, files)
    assert linked(capsys, "main.cubin", "a.a", "b.a") == {"k"}
    words = ("main.cubin", "a.a", "--whole-archive", "b.a", "--no-whole-archive", "c.a")
    assert linked(capsys, *words) == {"k", "b"}
    assert linked(capsys, "--lazy-archives", *words) == {"k", "b"}
    libraries = ("-Llib", "--whole-archive", "-ld", "--no-whole-archive")
    assert linked(capsys, "main.cubin", *libraries) == {"k", "d"}
    (here / "words").write_text("--whole-archive a.a")
    assert linked(capsys, "main.cubin", "@words", "b.a") == {"k", "a", "b"}


def test_whole_archive_in_a_call(here: Path) -> None:
    write(here, {"a.a": gnu([("a.cubin", device(kernel="a"))])})
    program = one_kernel("k").build()
    assert functions(pylink.link([program, "a.a"], arch="sm_80").image) == {"k"}
    image = pylink.link([program, "a.a"], arch="sm_80", whole_archive=True).image
    assert functions(image) == {"k", "a"}
    result = pylink.link([program, ("b.a", gnu([("f", F)]))], arch="sm_80", whole_archive=True)
    assert functions(result.image) == {"k"}  # f is there, and removed as dead code
    with pytest.raises(TypeError, match="no_whole_archive"):
        pylink.link([program], arch="sm_80", no_whole_archive=True)  # type: ignore[call-arg]  # tested


def test_a_file_named_twice_counts_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {"main.cubin": MAIN, "lib.a": gnu([("f.cubin", F)])})
    os.symlink("lib.a", "link.a")
    whole = ("--whole-archive", "lib.a", "./lib.a", "link.a", "main.cubin")
    assert linked(capsys, *whole) == {"k", "f"}
    write(here, {"copy.a": (here / "lib.a").read_bytes()})
    assert "Multiple definition of 'f' in 'copy.a:f.cubin', first defined in 'lib.a:f.cubin'" in (
        refused(capsys, "--whole-archive", "lib.a", "copy.a", "main.cubin")
    )


def test_members_with_their_numbers_of_sections_in_the_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = [("other", device(kernel="other")), ("f", F)]
    library = gnu([(name, with_wide_counts(cubin)) for name, cubin in members])
    write(here, {"main.cubin": with_wide_counts(MAIN), "lib.a": library})
    assert linked(capsys, "--lazy-archives", "main.cubin", "lib.a") == {"k", "f"}


def test_members_of_equal_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {"main.cubin": device(calls=["f", "g"], kernel="k")})
    write(here, {"lib.a": gnu([("x.cubin", F), ("x.cubin", G)])})
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "f", "g"}


def test_thin_members_lie_beside_the_archive(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here, {"main.cubin": MAIN, "sub/lib.a": thin(["f.cubin", "in/ner.a:68"])})
    inner = gnu([("x", b"text"), ("g.cubin", G)])
    assert inner[72:].startswith(b"g.cubin")
    files = {"sub/lib.a": thin(["in/f.cubin", "in/ner.a:72"]), "sub/in/f.cubin": F_NEEDS_G}
    write(here, {**files, "sub/in/ner.a": inner})
    assert linked(capsys, "main.cubin", "sub/lib.a") == {"k", "f", "g"}
    monkeypatch.chdir(here / "sub")
    assert linked(capsys, "../main.cubin", "lib.a") == {"k", "f", "g"}
    # nvlink finds them where it runs: so they are found there, too, when they are not beside it.
    write(here, {"else/in/f.cubin": F})
    os.rename(here / "sub/in/f.cubin", here / "f.away")
    monkeypatch.chdir(here / "else")
    write(here, {"sub/lib.a": thin(["in/f.cubin"])})
    assert linked(capsys, "../main.cubin", "../sub/lib.a") == {"k", "f"}
    write(here, {"sub/in/f.cubin": F_NEEDS_G, "sub/lib.a": thin(["in/f.cubin", "in/ner.a:72"])})
    write(here, {"else/in/ner.a": b""})
    assert linked(capsys, "../main.cubin", "../sub/lib.a") == {"k", "f", "g"}


def test_thin_archives_in_thin_archives(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {"main.cubin": MAIN, "f.cubin": F, "1.a": thin(["2.a"]), "2.a": thin(["f.cubin"])})
    assert linked(capsys, "main.cubin", "1.a") == {"k", "f"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"lib.a": thin(["gone.o"])},
            "lib.a:gone.o: file 'gone.o' of the thin archive cannot be read: "
            "No such file or directory",
            id="missing file",
        ),
        pytest.param(
            {"lib.a": thin(["sub"]), "sub/x": b""},
            "lib.a:sub: file 'sub' of the thin archive cannot be read: it is not a regular file",
            id="folder",
        ),
        pytest.param(
            {"lib.a": thin(["lib.a"])},
            "lib.a:lib.a: thin archive contains itself",
            id="in itself",
        ),
        pytest.param(
            {"lib.a": thin(["b.a"]), "b.a": gnu([("x", F)]) + member(b"t.a/", thin(["lib.a"]))},
            "lib.a:b.a:t.a:lib.a: thin archive contains itself",
            id="in itself through others",
        ),
        pytest.param(
            {"lib.a": thin(["x.a:9"]), "x.a": gnu([("f", F)])},
            "lib.a:x.a: archive is damaged: 'x.a' has no member at 0x9",
            id="no such place",
        ),
        pytest.param(
            {"lib.a": thin(["x.a:8"]), "x.a": thin(["f"])},
            "lib.a:x.a: archive is damaged: it is a thin archive, whose members are named by "
            "their files",
            id="place in a thin archive",
        ),
        pytest.param(
            {"lib.a": gnu([("in.a", gnu([("x.o", b"1")])[:-1] + b"12")])[:-1]},
            "lib.a:in.a: archive is damaged: the header at 0x46 is cut short",
            id="nested",
        ),
        pytest.param(
            {"lib.a": gnu([("f.o", F)]) + header(b"g.o/", 10**9)},
            "lib.a:g.o: archive is damaged: its header says 1000000000 bytes, and 0 are left "
            "(header at 0x",
            id="size",
        ),
        pytest.param(
            {"lib.a": gnu([("ünd.o", b"")]).replace(b"0         `", b"x         `")},
            "lib.a:ünd.o: archive is damaged: its size 'x' is not a decimal number (header at 0x8)",
            id="name of other letters",
        ),
    ],
)
def test_bad_archives_are_named(
    here: Path, capsys: pytest.CaptureFixture[str], files: dict[str, bytes], message: str
) -> None:
    write(here, {"main.cubin": MAIN, **files})
    assert refused(capsys, "main.cubin", "lib.a").startswith(f"pylink fatal   : {message}")


def test_archives_cannot_lead_on_for_ever(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = F
    for _ in range(17):
        deep = gnu([("x", deep)])
    write(here, {"main.cubin": MAIN, "deep.a": deep})
    assert "archive expands to more than 16 archives in each other" in (
        refused(capsys, "main.cubin", "deep.a")
    )
    # Sixteen are not too many.
    write(here, {"deep.a": gnu([("x", F)])})
    for _ in range(15):
        write(here, {"deep.a": gnu([("x", (here / "deep.a").read_bytes())])})
    assert linked(capsys, "main.cubin", "deep.a") == {"k", "f"}
    # Twelve levels of a hundred members each would be 10^24.
    for level in range(12):
        write(here, {f"{level}.a": thin([f"{level + 1}.a"] * 100)})
    write(here, {"12.a": thin(["f.txt"] * 100), "f.txt": b"text"})
    assert "0.a: archive expands to more than 262144 members" in (
        refused(capsys, "main.cubin", "0.a")
    )


def test_archives_that_lead_to_archives_alone_have_a_limit(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No member that could be linked is ever met: two to the power of 12 empty archives are."""
    for level in range(12):
        write(here, {f"{level}.a": thin([f"{level + 1}.a"] * 2)})
    write(here, {"main.cubin": MAIN, "12.a": b"!<arch>\n"})
    assert "0.a: archive expands to more than 4096 archives" in refused(capsys, "main.cubin", "0.a")


def test_files_of_all_thin_archives_count_together(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = bytes(1 << 16)
    write(here, {"main.cubin": device(kernel="k"), "x.a": b"!<arch>\n" + member(b"x/", large)})
    write(here, {"inner.a": thin(["x.a"]), "outer.a": thin(["inner.a"] * 3)})
    assert linked(capsys, "main.cubin", "outer.a") == {"k"}
    monkeypatch.setattr(archive, "MAX_SIZE", 2 << 16)
    assert "outer.a: archive expands to more than 131072 bytes" in (
        refused(capsys, "main.cubin", "outer.a")
    )


def test_members_are_counted_before_they_are_listed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive of headers alone would take several times its size in memory."""
    headers = member(b"x/", b"") * (1 << 20)
    write(here, {"main.cubin": MAIN, "many.a": b"!<arch>\n" + headers})
    tracemalloc.start()
    said = refused(capsys, "main.cubin", "many.a")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "many.a: archive expands to more than 262144 members" in said
    assert most < 2.5 * len(headers)  # the file, and a copy of it beside the other inputs


def test_as_many_members_as_are_allowed(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    write(here, {"main.cubin": MAIN, "lib.a": gnu([("x", b"text"), ("y", b"text"), ("f", F)])})
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "f"}
    write(here, {"lib.a": gnu([("x", b"text"), ("y", b"text"), ("z", b"text"), ("f", F)])})
    assert "lib.a: archive expands to more than 3 members" in refused(capsys, "main.cubin", "lib.a")


def test_a_missing_architecture_is_warned_of_where_nvlink_looks(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in archives and device runtime libraries, of which a link needs a part if any."""
    other = host_object([("__nv_relfatbin", container(entry(F, 75)))])
    lone = container(entry(F, 75))
    write(here, {"main.cubin": one_kernel("k").build(), "x.o": other, "cudadevrt.o": other})
    archives = {
        "lib.a": gnu([("x.o", other)]),
        "text.a": gnu([("notes", b"text"), ("x.o", other)]),
        "nested.a": gnu([("in.a", gnu([("x.o", other)]))]),
        "fat.a": gnu([("f.fatbin", lone)]),
        "thin.a": thin(["x.o"]),
    }
    write(here, archives)
    silent = [[name] for name in archives]
    silent += [["cudadevrt.o"], ["cudadevrt.o", "-keep-system-libraries"], ["-L.", "-l:lib.a"]]
    for words in silent:
        assert linked(capsys, "main.cubin", "-Werror", *words) == {"k"}
    for words, name in ((["x.o"], "x.o"), (["--whole-archive", "lib.a"], "lib.a:x.o")):
        assert main([ARCH, "main.cubin", *words, "-o", "out.cubin"], tool="nvlink") == 0
        warning = f"nvlink warning : SM Arch ('sm_80') not found in '{name}'\n"
        assert capsys.readouterr().err == warning


def test_large_files_are_not_read_twice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.txt").write_bytes(b"text")
    os.truncate(here / "f.txt", 1 << 20)
    write(here, {"main.cubin": MAIN, "f.cubin": F, "lib.a": thin(["f.txt"] * 10000 + ["f.cubin"])})
    assert linked(capsys, "main.cubin", "lib.a") == {"k", "f"}
    for number in range(5):
        (here / f"{number}.txt").touch()
        os.truncate(here / f"{number}.txt", 1 << 30)
    write(here, {"lib.a": thin([f"{number}.txt" for number in range(5)])})
    assert "lib.a: archive expands to more than 4294967296 bytes" in (
        refused(capsys, "main.cubin", "lib.a")
    )

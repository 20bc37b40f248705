"""--reproduce and `pylink reproduce`: the same link again, where none of its files are."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from helpers.archive_builder import gnu, thin
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry, host_object

import pylink
from pylink.command.cli import main
from pylink.options.table import OPTIONS
from pylink.outputs.reproducer import IGNORED_OPTIONS

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a link runs, with a folder of others beside it."""
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    folder = tmp_path / "first" / "build"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "first" / "beside").mkdir()
    (folder / "a.cubin").write_bytes(one_kernel("a").build())
    monkeypatch.chdir(folder)
    return folder


def again(place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> bytes:
    """Link, remove everything, link again: the same exit status, diagnostics and output."""
    first = place.parents[1]
    archive, copy = first / "r.tar.zst", first / "copy"
    capsys.readouterr()
    status = main(["-arch=sm_80", *words, "-o", "out", "--reproduce", str(archive)])
    said = capsys.readouterr().err
    made = Path("out").read_bytes() if status == 0 else b""
    other = first / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    shutil.rmtree(first / "first")
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    assert main(["reproduce", str(archive), "-o", str(copy)]) == status
    assert capsys.readouterr().err == said
    assert (copy.read_bytes() if copy.exists() else b"") == made
    assert list(other.iterdir()) == []
    return made


def test_files_by_every_kind_of_name(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """-g has the names of the inputs and the output in the output."""
    for folder in ("beside", "build/sub"):
        (place.parent / folder / "same.cubin").write_bytes(one_kernel(Path(folder).name).build())
    words = ["a.cubin", "sub/../../beside/same.cubin", str(place / "sub" / "same.cubin"), "-g"]
    assert b"beside/same.cubin" in again(place, words, monkeypatch, capsys)


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("variable", [True, False])
def test_libraries(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    absolute: bool,
    variable: bool,
) -> None:
    folder = place.parent / "beside"
    (folder / "libx.a").write_bytes(gnu([("m.cubin", one_kernel("inside").build())]))
    name = str(folder) if absolute else "../beside"
    if variable:
        monkeypatch.setenv("LIBRARY_PATH", name)
    words = ["a.cubin", "--whole-archive", "-lx", *([] if variable else ["-L", name])]
    assert b"inside" in again(place, words, monkeypatch, capsys)


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("direct", [True, False])
def test_thin_archives(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    absolute: bool,
    direct: bool,
) -> None:
    member = place / "sub" / "member.cubin"
    member.write_bytes(one_kernel("inside").build())
    (place / "libx.a").write_bytes(thin([str(member) if absolute else "sub/member.cubin"]))
    words = ["a.cubin", "--whole-archive", *(["libx.a"] if direct else ["-L.", "-lx"])]
    assert b"inside" in again(place, words, monkeypatch, capsys)


@pytest.mark.parametrize("form", ["@words", "-optf=words"])
def test_options_and_response_files(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, form: str
) -> None:
    (place / "words").write_text("-g sub/b.cubin")
    (place / "sub" / "b.cubin").write_bytes(one_kernel("b").build())
    assert again(place, ["a.cubin", form], monkeypatch, capsys)
    with opened(place.parents[1] / "r.tar.zst") as archive:
        names = [Path(row.name).name for row in archive]
    assert "words" in names


def test_host_objects(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code = container(entry(one_kernel("inside").build(), 80))
    (place / "h.o").write_bytes(host_object([("__nv_relfatbin", code)]))
    assert b"inside" in again(place, ["h.o"], monkeypatch, capsys)


@pytest.mark.parametrize("form", ["nvlink", "text", "sarif"])
@pytest.mark.parametrize(
    "broken", ["missing.cubin", "twice.cubin", "text", "folder", "-lmissing_x"]
)
def test_links_that_fail(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, form: str, broken: str
) -> None:
    (place / "twice.cubin").write_bytes(one_kernel("a").build())
    (place / "text").write_bytes(b"no cubin")
    (place / "folder").mkdir()
    name = broken if broken.startswith("-") else str(place / broken)
    words = ["a.cubin", name, f"-L{place}", f"--diagnostics_format={form}"]
    assert again(place, words, monkeypatch, capsys) == b""


def test_contents_in_memory(place: Path, tmp_path: Path) -> None:
    archive = tmp_path / "r.tar.zst"
    pair = ("name", one_kernel("b").build())
    made = pylink.link([pair, "a.cubin"], arch="sm_80", debug=True, reproduce=archive).image
    assert main(["reproduce", str(archive), "-o", "copy"]) == 0
    assert Path("copy").read_bytes() == made


def test_the_same_archive_each_time(place: Path) -> None:
    for name in ("1", "2"):
        assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", f"{name}.tar.zst"]) == 0
    assert Path("1.tar.zst").read_bytes() == Path("2.tar.zst").read_bytes()


def test_more_options(place: Path) -> None:
    assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", "r"]) == 0
    Path("b.cubin").write_bytes(one_kernel("added").build())
    assert main(["reproduce", "r", "-o", "copy", "--Map", "map", "b.cubin"]) == 0
    assert b"added" in Path("copy").read_bytes()
    assert Path("map").exists()


def test_no_input_is_overwritten(place: Path) -> None:
    Path("libx.a").write_bytes(gnu([("m.cubin", one_kernel("inside").build())]))
    for name, words in (("a.cubin", ["a.cubin"]), ("libx.a", ["a.cubin", "-L.", "-lx"])):
        before = Path(name).read_bytes()
        assert main(["-arch=sm_80", *words, "-o", "out", "--reproduce", name]) == 1
        assert Path(name).read_bytes() == before


def test_what_writes_starts_or_loads_is_never_taken() -> None:
    risky = {row.attribute for row in OPTIONS if row.writes}
    risky |= {"nvvmpath", "ptxas_path", "rule", "section_folder", "section_folder_recursive"}
    assert risky <= IGNORED_OPTIONS


def opened(file: Path) -> tarfile.TarFile:
    data = zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read()
    return tarfile.open(fileobj=io.BytesIO(data))


Change = Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]


def changed(file: Path, change: Change) -> None:
    """Rewrite an archive."""
    rows = []
    with opened(file) as archive:
        for row in archive:
            stream = archive.extractfile(row)
            rows.append((row, stream.read() if stream else b""))
    change(rows)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for row, data in rows:
            row.size = len(data)
            archive.addfile(row, io.BytesIO(data))
    file.write_bytes(zstandard.ZstdCompressor().compress(made.getvalue()))


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> Change:
    row = tarfile.TarInfo(name)
    row.type, row.linkname = kind, target
    return lambda rows: rows.append((row, b""))


def thin_archive(name: str) -> Change:
    return lambda rows: rows.append((tarfile.TarInfo("root/libt.a"), thin([name])))


def manifest(**values: object) -> Change:
    def change(rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        found = {**json.loads(rows[0][1]), **values}
        rows[0] = rows[0][0], json.dumps(found).encode()

    return change


HOSTILE = {
    "absolute": member("/tmp/pylink-hostile"),
    "upward": member("root/../../hostile"),
    "elsewhere": member("hostile"),
    "symbolic": member("root/s", tarfile.SYMTYPE, "/"),
    "hard": member("root/h", tarfile.LNKTYPE, "manifest.json"),
    "thin": thin_archive("../../../etc/passwd"),
    "absolute thin": thin_archive("/../../../../etc/passwd"),
    "device": member("root/d", tarfile.CHRTYPE),
    "twice": member("manifest.json"),
    "nothing": lambda rows: rows.clear(),
    "format": manifest(format=99),
    "folder": manifest(folder="root/../.."),
    "no folder": manifest(folder=7),
    "input": manifest(inputs=[{"name": "/etc/passwd", "data": None, "whole": False}]),
    "upward input": manifest(
        inputs=[{"name": "../" * 40 + "etc/passwd", "data": None, "whole": False}]
    ),
    "values": manifest(values={"arch": "sm_80", "no_such": 1}),
    "types": manifest(values={"arch": "sm_80", "library": 5}),
    "library path": manifest(values={"arch": "sm_80", "library_path": ["/etc"]}),
    "variable": manifest(environment={"LIBRARY_PATH": "/etc"}),
    "compiler": manifest(values={"arch": "sm_80", "Xptxas": ["-o=/tmp/x"]}),
    "libraries": manifest(whole_libraries=[True]),
    "deep": manifest(inputs=None),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_archives(place: Path, attack: str, capsys: Capture) -> None:
    assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", "r"]) == 0
    changed(Path("r"), HOSTILE[attack])
    before = sorted(place.parents[1].rglob("*"))
    assert main(["reproduce", "r", "-o", "copy"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("pylink fatal   : Cannot reproduce the link in 'r': ")
    assert sorted(place.parents[1].rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (member("data/../x"), "it has a file 'data/../x', which --reproduce never writes"),
        (
            manifest(whole_libraries=[True]),
            "'manifest.json' is damaged: the entry 'whole_libraries' is not valid",
        ),
        (
            manifest(folder="elsewhere"),
            "'manifest.json' is damaged: the entry 'folder' is not valid",
        ),
        (
            manifest(inputs=[{"name": "a.cubin"}]),
            "'manifest.json' is damaged: the entry 'whole' is missing",
        ),
    ],
)
def test_a_refusal_names_what_is_wrong(
    place: Path, change: Change, reason: str, capsys: Capture
) -> None:
    assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", "r"]) == 0
    changed(Path("r"), change)
    assert main(["reproduce", "r", "-o", "copy"]) == 1
    assert capsys.readouterr().err.endswith(f"'r': {reason}\n")


def test_an_archive_names_no_output(place: Path) -> None:
    assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", "r"]) == 0
    names = {row.attribute: str(place / f"{row.long}.new") for row in OPTIONS if row.writes}
    words = [f"-pass-remarks-output={place}/xopt.new"]
    changed(Path("r"), manifest(values={"arch": "sm_80", "Xopt": words, **names}))
    assert main(["reproduce", "r"]) == 0
    assert not list(place.glob("*.new"))


@pytest.mark.parametrize("data", [b"", b"text", b"\x28\xb5\x2f\xfd", None])
def test_what_is_no_archive(place: Path, data: bytes | None, capsys: Capture) -> None:
    if data is not None:
        Path("r").write_bytes(data)
    assert main(["reproduce", "r"]) == 1
    assert capsys.readouterr().err.startswith("pylink fatal   : Cannot reproduce the link in 'r': ")


def test_a_cut_archive(place: Path, capsys: Capture) -> None:
    assert main(["-arch=sm_80", "a.cubin", "-o", "out", "--reproduce", "r"]) == 0
    whole = Path("r").read_bytes()
    for size in range(0, len(whole) - 8, max(1, len(whole) // 20)):
        Path("r").write_bytes(whole[:size])
        assert main(["reproduce", "r"]) == 1
        assert "Cannot reproduce the link in 'r'" in capsys.readouterr().err

"""Names of inputs reach people in one way: nothing of them that a terminal obeys, in any output."""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import pylink
from pylink.command.cli import main
from pylink.diagnostics.stream import printable
from pylink.inspect.image import Image

GOLDEN = Path(__file__).parents[1] / "golden"
ARCHES = ("75", "90a", "100")

# ESC, BEL, a C1 control as UTF-8 and as a lone byte, DEL, an override of direction, a line end.
EVIL = b"\x1b\x07\xc2\x9b\x9b\x7f\xe2\x80\xae\n"
# What must not reach people, but for the line ends of the output itself.
CONTROLS = {*range(10), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F}
CONTROLS |= {*range(0x2028, 0x202F), *range(0x2066, 0x206A)}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain", "plain"),
        ("größe_漢字", "größe_漢字"),
        (b"a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\t\r\n", "a\\t\\r\\n"),
        ("\x7f\x80\x9b\x9f\xa0", "\\x7f\\x80\\x9b\\x9f\xa0"),
        (b"\xff\x9b", "\\xff\\x9b"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("\u200d\u200e\u200f\u2010", "\u200d\\u200e\\u200f\u2010"),
        ("\u2028\u2029\u202a\u202e\u202f", "\\u2028\\u2029\\u202a\\u202e\u202f"),
        ("\u2066\u2069\u206a\u061c", "\\u2066\\u2069\u206a\\u061c"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_what_is_escaped(name: str | bytes, shown: str) -> None:
    assert printable(name) == shown
    assert printable(shown) == shown


def hostile(image: bytes) -> bytes:
    """The cubin with its functions and variables called by names that command a terminal."""
    # Linkers know those with two underscores in front.
    names = {name for name in Image(image).symbols if re.match(r"[^._]|_[^_]", name)}
    names = {name for name in names if len(name) > len(EVIL) + 4}
    for name in names:
        made = b"%04x" % (zlib.crc32(name.encode()) & 0xFFFF) + EVIL
        whole = re.compile(rb"(?<=[\0.])%b(?=\0)" % re.escape(name.encode()))
        image = whole.sub(made.ljust(len(name), b"_"), image)
    return image


@pytest.fixture(params=ARCHES)
def arch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with the cubins of a program, and of a part of it whose link fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pylink"])
    arch = str(request.param)
    for number, path in enumerate(sorted((GOLDEN / arch / "calls").glob("m*.cubin"))):
        name = f"{number}a\x1b]0;x\x07\u202e.cubin"
        Path(name).write_bytes(hostile(path.read_bytes()))
    return arch


def inputs() -> list[str]:
    return sorted(str(path) for path in Path().glob("*.cubin"))


Printed = Callable[..., str]


@pytest.fixture
def printed(arch: str, capfdbinary: pytest.CaptureFixture[bytes]) -> Printed:
    """Runs a command; what it printed, which has to be UTF-8 and without control characters."""

    def run(*words: str, files: tuple[str, ...] = (), status: int | None = None) -> str:
        ended = main(list(words))
        assert status is None or ended == status
        data = b"".join(capfdbinary.readouterr())
        data += b"".join(Path(file).read_bytes() for file in files)
        text = data.decode()
        found = sorted({hex(ord(letter)) for letter in text if ord(letter) in CONTROLS})
        assert not found, text
        # A name did not end the line either: what followed its line end would start one.
        assert not any(line.startswith("_") for line in text.splitlines())
        assert "\\x1b" in text, text
        return text

    return run


LINKS: dict[str, tuple[str, ...]] = {
    "verbose": ("-v",),
    "call graph": ("-dump-callgraph",),
    "call graph, names as they are": ("-dump-callgraph-no-demangle",),
    "folds": ("-edbg=1", "-v"),
    "profuse": ("-v", "-Xopt=-profusededup=true", "-Xopt=-profusetwins=true"),
    "remarks": ("--pass-remarks=.*", "--pass-remarks-missed=.*", "--pass-remarks-analysis=.*"),
    "why live": ("--pass-remarks=dce", "--pass-remarks-why-live=.*", "-v"),
}


@pytest.mark.parametrize("form", ["nvlink", "text"])
@pytest.mark.parametrize("link", LINKS)
def test_links(link: str, form: str, arch: str, printed: Printed) -> None:
    words = (f"-arch=sm_{arch}", f"--diagnostics_format={form}", *LINKS[link], "-o", "made.out")
    printed(*words, *inputs(), status=0)


@pytest.mark.parametrize("form", ["nvlink", "text"])
@pytest.mark.parametrize("words", [(), ("-r", "-v"), ("--error-limit=1",)])
def test_links_that_fail(words: tuple[str, ...], form: str, arch: str, printed: Printed) -> None:
    options = (f"-arch=sm_{arch}", f"--diagnostics_format={form}", *words, "-o", "made.out")
    text = printed(*options, *inputs()[:1], *inputs()[:1])
    assert "Multiple definition" in text
    if not words:
        printed(*options, *inputs()[:1])
        printed(*options, "no\x1bsuch")
        printed(*options, "--no\x1bsuch")
        printed(*options, "--diag-suppress=no\x1bsuch", *inputs())


def test_the_map_and_the_log(arch: str, printed: Printed) -> None:
    words = (f"-arch=sm_{arch}", "-o", "made.out", "--diag-log=log", "-v", "--Map=map")
    printed(*words, *inputs(), files=("map", "log"))
    printed(*words, *inputs()[:1], files=("log",))


def test_inspect(arch: str, printed: Printed) -> None:
    first, second = inputs()[:2]
    printed("inspect", first)
    printed("inspect", first, second)
    printed("inspect", "--diff", first, second)
    Path("m\x1b.cubin").write_bytes(Path(first).read_bytes()[:-1000])
    printed("inspect", "m\x1b.cubin")


def test_dedup(arch: str, printed: Printed) -> None:
    if arch == "100":  # others have nothing to say of their inputs
        printed("dedup", *inputs())
    Path("m\x1b.cubin").write_bytes(Path(inputs()[0]).read_bytes()[:1000])
    printed("dedup", "m\x1b.cubin")


def test_remarks(arch: str, printed: Printed) -> None:
    Path("r\x1b.yaml").write_text('--- !Passed\nPass: "p\\x1b"\nName: n\nFunction: f\n...\n')
    printed("remarks", "--count", "r\x1b.yaml")
    Path("r\x1b.yaml").write_text("--- !Broken\x1b\n")
    printed("remarks", "r\x1b.yaml")


def test_reports(arch: str, printed: Printed) -> None:
    main([f"-arch=sm_{arch}", *inputs(), "-o", "out", "--profile=p\x1b.ncu-rep"])
    main([f"-arch=sm_{arch}", *inputs(), "-o", "out", "--profile-aprof=g\x1b.aprof"])
    for page in ("details", "raw", "source"):
        printed("report", "p\x1b.ncu-rep", "--page", page, "--instances")
    printed("report", "p\x1b.ncu-rep", "g\x1b.aprof", "--fit")
    printed("report", "no\x1bsuch")


def test_exceptions(arch: str) -> None:
    """Python prints their texts as they are."""
    data = Path(inputs()[0]).read_bytes()
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([(inputs()[0], data)] * 2, arch=f"sm_{arch}", log=io.StringIO())
    assert not any(ord(letter) in CONTROLS for letter in str(caught.value))
    assert "\\x1b" in str(caught.value)

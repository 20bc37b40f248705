"""Outputs that are made in their file: where that can be, and what becomes of it when it cannot."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.contents import Piece, place
from helpers.cubin_builder import one_kernel
from helpers.threads import threads

import pylink
from pylink import pipeline
from pylink._native import image as native_image
from pylink._native.image import Canvas
from pylink._native.tables import Patches
from pylink.command.cli import main
from pylink.files import buffer
from pylink.files.atomic import WholeFile
from pylink.files.buffer import OutputBuffer
from pylink.files.lazyfile import LazyFile
from pylink.phases.relocate import Image

ARCH = "-arch=sm_80"
SIZE = 3 << 20


@pytest.fixture
def cubin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An input, in a working directory of its own, whose output is made in its file."""
    path = tmp_path / "a.cubin"
    path.write_bytes(one_kernel().build())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(buffer, "WRITTEN_SIZE", 0)
    return path


def test_a_file_takes_the_bytes(tmp_path: Path) -> None:
    with OutputBuffer(SIZE + (8 << 20), str(tmp_path / "o")) as made:
        assert made.commit()
        assert isinstance(made.image, LazyFile)
        assert (tmp_path / "o").read_bytes() == made.image.read() == bytes(made.canvas.size)
    with OutputBuffer(SIZE, str(tmp_path / "small")) as made:  # in memory
        assert not made.commit()
    assert not (tmp_path / "small").exists()


def test_what_nobody_commits_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("old")
    before = len(os.listdir("/proc/self/fd"))
    with OutputBuffer(SIZE + (8 << 20), str(tmp_path / "o")):
        pass
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("options", "in_file"),
    [
        ({"profile": True}, True),
        ({"profile_aprof": "p"}, True),
        ({"Map": "p"}, True),
        ({"profile": "p.ncu-rep"}, False),
    ],
)
def test_only_a_report_needs_the_image_in_memory(
    cubin: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], in_file: bool
) -> None:
    """New memory for the output of a large link takes a tenth of its time."""
    opened = OutputBuffer._open
    files: list[str] = []

    def opens(made: OutputBuffer, path: str, size: int) -> Canvas | None:
        files.append(path)
        return opened(made, path, size)

    monkeypatch.setattr(OutputBuffer, "_open", opens)
    image = pylink.link([cubin], arch="sm_80").image
    assert pylink.link([cubin], arch="sm_80", output="o", **options).image == image
    assert files == (["o"] if in_file else [])


def test_a_file_that_is_in_memory(
    cubin: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pylink.link([cubin], arch="sm_80").image
    monkeypatch.setattr(WholeFile, "new_descriptor", property(lambda file: descriptor))
    descriptor = os.memfd_create("output")
    try:
        result = pylink.link([cubin], arch="sm_80", output="o")
        assert os.pread(descriptor, len(image) + 1, 0) == result.image == image
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("size", [0, 2**63])
def test_sizes_that_no_file_has(tmp_path: Path, size: int) -> None:
    with open(tmp_path / "o", "w+b") as stream:
        assert Canvas.on_file(stream.fileno(), size) is None
    with pytest.raises(OverflowError):
        Canvas.on_file(0, 2**64)


def test_a_file_for_reading_alone_or_a_closed_one(tmp_path: Path) -> None:
    (tmp_path / "o").write_bytes(b"")
    descriptor = os.open(tmp_path / "o", os.O_RDONLY)
    try:
        assert Canvas.on_file(descriptor, SIZE) is None
    finally:
        os.close(descriptor)
    assert Canvas.on_file(descriptor, SIZE) is None
    assert Canvas.on_file(-1, SIZE) is None


def test_a_file_that_is_closed_too_early(tmp_path: Path) -> None:
    """Whatever takes the descriptor away, nothing is lost unnoticed."""
    placed = place([Piece(0, bytes(SIZE))], SIZE)
    with open(tmp_path / "o", "w+b") as stream:
        canvas = Canvas.on_file(stream.fileno(), SIZE)
    assert canvas is not None
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        native_image.write_contents(canvas, placed, Patches())
    assert caught.value.errno == errno.EBADF


def test_a_canvas_of_another_size_and_one_that_is_closed() -> None:
    canvas = Canvas(4)
    assert (canvas.size, len(canvas.image)) == (4, 4)
    placed = place([Piece(0, b"three")], 5)
    with pytest.raises(ValueError, match="4 bytes for an output of 5"):
        native_image.write_contents(canvas, placed, Patches())
    canvas.close()
    assert canvas.size == 0
    with pytest.raises(ValueError, match="not in memory"):
        assert canvas.image
    with pytest.raises(ValueError, match="0 bytes for an output of 5"):
        native_image.write_contents(canvas, placed, Patches())


@pytest.mark.parametrize("existing", [True, False])
def test_the_same_file_with_all_its_rights(cubin: Path, existing: bool) -> None:
    image = pylink.link([cubin], arch="sm_80").image
    if existing:
        Path("o").write_text("old")
        Path("o").chmod(0o640)
        Path("link").symlink_to("o")
    assert main([ARCH, cubin.name, "-o", "link" if existing else "o"]) == 0
    assert Path("o").read_bytes() == image
    assert Path("o").stat().st_mode & 0o777 == (0o640 if existing else 0o666 & ~umask())
    assert Path("link").is_symlink() == existing


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.fixture
def result(cubin: Path) -> pylink.LinkResult:
    """Of a link whose image may be in its file, `o`, alone."""
    return pylink.link([cubin], arch="sm_80", output="o")


def test_the_image_of_a_file_is_read_later(result: pylink.LinkResult) -> None:
    image = Path("o").read_bytes()
    assert f"{len(image)} bytes" in repr(result)
    twin, copied = pickle.loads(pickle.dumps(result)), copy.copy(result)
    os.replace("a.cubin", "o")
    assert [linked.image for linked in (result, twin, copied)] == [image] * 3
    os.remove("o")
    assert result.image is result.image
    assert len(result.sections) > 1


@pytest.mark.parametrize("change", ["shorter", "longer", "other"])
def test_a_file_that_was_changed_is_no_image(result: pylink.LinkResult, change: str) -> None:
    size = Path("o").stat().st_size
    with open("o", "r+b") as stream:
        if change == "other":
            stream.write(b"?")
        else:
            stream.truncate(size + (1 if change == "longer" else -1))
    os.utime("o", ns=(0, 0))  # whatever a clock of low resolution makes of it
    with pytest.raises(OSError, match="changed in its place") as caught:
        assert result.image
    assert caught.value.filename == "o"


def test_descriptors_go_with_the_results(cubin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pylink.link([cubin], arch="sm_80").image
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    results = [pylink.link([cubin], arch="sm_80", output=f"o{number}") for number in range(3)]
    assert len(os.listdir("/proc/self/fd")) == before + len(results)
    del results
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before

    def full(descriptor: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("pylink.files.lazyfile.os.dup", full)
    assert pylink.link([cubin], arch="sm_80", output="o").image == image


@pytest.mark.parametrize("option", ["--profile=o.html", "--Map=map", "--write-if-changed"])
def test_who_reads_the_image_finds_it(cubin: Path, option: str) -> None:
    image = pylink.link([cubin], arch="sm_80").image
    assert main([ARCH, cubin.name, "-o", "o", option]) == 0
    assert Path("o").read_bytes() == image


def test_places_that_cannot_be_replaced_or_have_no_name(cubin: Path) -> None:
    image = pylink.link([cubin], arch="sm_80").image
    with open("kept", "w+b") as stream:
        assert main([ARCH, cubin.name, "-o", f"/proc/self/fd/{stream.fileno()}"]) == 0
    assert Path("kept").read_bytes() == image
    assert main([ARCH, cubin.name, "-o", "missing/o"]) == 1
    assert main([ARCH, cubin.name, "-o", cubin.name]) == 1
    assert sorted(os.listdir()) == ["a.cubin", "kept"]


@pytest.mark.parametrize("existing", [True, False])
def test_no_room_for_it(cubin: Path, existing: bool) -> None:
    """A limit on the size of files is met where a full disk is: when room is taken."""
    if existing:
        Path("o").write_text("old")
    program = (
        "import sys; from pylink.files import buffer; buffer.WRITTEN_SIZE = 0\n"
        "from pylink.startup import program; program.run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, ARCH, cubin.name, "-o", "o"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Writing 'o' failed: File too large" in done.stderr
    assert sorted(os.listdir()) == ["a.cubin"] + (["o"] if existing else [])
    assert not existing or Path("o").read_text() == "old"


@pytest.mark.parametrize("phase", ["relocate", "finalize"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_disk_that_is_full_when_it_is_written(
    cubin: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    phase: str,
    existing: bool,
) -> None:
    """As where nobody reserves room: what the file was before is the device that is always full."""
    real: Callable[..., object] = getattr(pipeline, phase)

    def fill(*arguments: object) -> object:
        (made,) = (argument for argument in arguments if isinstance(argument, OutputBuffer | Image))
        file = (made.buffer if isinstance(made, Image) else made)._file
        assert file is not None
        assert file.new_descriptor is not None
        with open("/dev/full", "wb") as full:
            os.dup2(full.fileno(), file.new_descriptor)
        return real(*arguments)

    if existing:
        Path("o").write_text("old")
    monkeypatch.setattr(pipeline, phase, fill)
    assert main([ARCH, cubin.name, "-o", "o"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "Writing 'o' failed: No space left on device" in said[0]
    assert sorted(os.listdir()) == ["a.cubin"] + (["o"] if existing else [])
    assert not existing or Path("o").read_text() == "old"


def test_a_file_that_cannot_get_its_name(
    cubin: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(file: WholeFile) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WholeFile, "commit", full)
    assert main([ARCH, cubin.name, "-o", "o"]) == 1
    assert "Writing 'o' failed: No space left on device" in capsys.readouterr().err
    assert os.listdir() == ["a.cubin"]


def test_a_file_is_written_from_its_first_byte_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the bytes are: when there is no more room, all before are there and none after."""
    golden = Path(__file__).parents[1] / "golden" / "100" / "calls"
    inputs = [str(path) for path in sorted(golden.glob("m?.cubin"))]
    image = pylink.link(inputs, arch="sm_100").image
    assert len(image) > 20_000
    monkeypatch.setattr(buffer, "WRITTEN_SIZE", 0)
    real = native_image.write_output
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    parts: list[bytes] = []

    def write(canvas: Canvas, *arguments: Any, **named: Any) -> int:
        (file,) = files  # the only link that is under way
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        try:
            return real(canvas, *arguments, **named)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert file.new_descriptor is not None
            parts.append(os.pread(file.new_descriptor, len(image) + 1, 0))

    class Recorded(WholeFile):
        def __init__(self, path: str) -> None:
            super().__init__(path)
            files[:] = [self]

    files: list[WholeFile] = []
    monkeypatch.setattr(buffer, "WholeFile", Recorded)
    monkeypatch.setattr(native_image, "write_output", write)
    header = 64  # which comes last
    with threads(1):
        for limit in range(2000, len(image), 3000):
            with pytest.raises(pylink.LinkError, match="File too large"):
                pylink.link(inputs, arch="sm_100", output=tmp_path / "o")
            assert parts[-1][header:limit] == image[header:limit]
            assert parts[-1][limit:] == bytes(len(image) - limit)
    assert len(parts) > 5


# Ends itself while the output is being filled, and when that is done.
ENDING = """
import os, sys
number, step = int(sys.argv[1]), sys.argv[2]
del sys.argv[1:3]
from pylink.files import buffer
from pylink import observer as observers
buffer.WRITTEN_SIZE = 0
end_step = observers.Steps.end_step
def end(self, name, detail=None):
    if name == step:
        os.kill(os.getpid(), number)
    end_step(self, name, detail)
observers.Steps.end_step = end
from pylink.startup import program
program.run()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("step", ["write_contents", "write_tables"])
def test_a_signal_leaves_nothing(cubin: Path, number: int, step: str) -> None:
    Path("o").write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(number), step, ARCH, cubin.name, "-o", "o"],
        # Programs in the background of a shell inherit that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-number, "")
    assert sorted(os.listdir()) == ["a.cubin", "o"]
    assert Path("o").read_text() == "old"

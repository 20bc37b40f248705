"""Inputs that are mapped while a link needs them: the same output, and nobody changes them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.archive_builder import gnu
from helpers.cubin_builder import Cubin
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

import pylink
from pylink._native import image as native_image
from pylink._native import inputfiles
from pylink._native.image import Canvas
from pylink._native.results import PlacedTables
from pylink.command.cli import main

SIZE = 1 << 20
CODE = bytes(range(256)) * (SIZE // 256)
COUNT = 5
OTHER_MADVISE = Path(__file__).parents[1] / "helpers" / "other_madvise.c"
# As `stat -f` names those that inputs are mapped on.
SYSTEMS = ("ext2/ext3", "xfs", "btrfs", "f2fs", "tmpfs")

Hook = Callable[[PlacedTables], None]


@pytest.fixture(autouse=True)
def _keeps_no_memory() -> Iterator[None]:
    """A process with a limit of its address space maps files in all links, not in the first alone.

    Others read them to memory that they have kept (test_recycled_pages.py).
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 46, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def cubin(number: int, code: bytes = CODE, *, recurses: bool = False) -> bytes:
    built = Cubin()
    kernel = built.function(f"kernel{number}", code=code[16 * number :], kernel=True)
    if recurses:  # which is worth a warning
        built.call(kernel, kernel)
    return built.build()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current one, on a file system with leases."""
    for place in (tmp_path, Path("/dev/shm") / tmp_path.name):
        place.mkdir(exist_ok=True)
        asked = subprocess.run(
            ["stat", "-f", "-c", "%T", place], capture_output=True, text=True, check=True
        )
        if asked.stdout.strip() in SYSTEMS:
            monkeypatch.chdir(place)
            yield place
            for left in place.iterdir() if place != tmp_path else ():
                left.unlink()
            return
    pytest.fail("no file system with leases")


@pytest.fixture
def inputs(folder: Path) -> list[str]:
    names = [f"{number}.cubin" for number in range(COUNT)]
    for number, name in enumerate(names):
        Path(name).write_bytes(cubin(number))
    return names


@pytest.fixture
def before_writing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Hook], None]:
    """Has something done in each link when its inputs are about to be used for the last time."""

    def install(hook: Hook) -> None:
        # Links with observers write contents alone, all others the whole output.
        for name in ("write_contents", "write_output"):
            real = getattr(native_image, name)

            def write(
                canvas: Canvas, placed: PlacedTables, *more: object, real: Any = real, **named: bool
            ) -> object:
                hook(placed)
                return real(canvas, placed, *more, **named)

            monkeypatch.setattr(f"pylink.phases.relocate.native_image.{name}", write)

    return install


def mapped(folder: Path) -> list[str]:
    """Names of files in the folder that this process has mapped."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sorted({Path(line.split()[-1]).name for line in lines if f"{folder}/" in line})


@pytest.fixture
def seen(folder: Path, before_writing: Callable[[Hook], None]) -> list[list[str]]:
    """The files that each link has mapped when it is about to use them for the last time."""
    found: list[list[str]] = []
    before_writing(lambda _: found.append(mapped(folder)))
    return found


def is_leased(name: str) -> bool:
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return True
    return False


def test_mapped_and_read_inputs_link_alike(
    inputs: list[str], folder: Path, seen: list[list[str]]
) -> None:
    image = pylink.link(inputs, arch="sm_80").image
    watched = pylink.link(inputs, arch="sm_80", profile=True).image
    given = pylink.link([Path(name).read_bytes() for name in inputs], arch="sm_80").image
    assert seen == [inputs, [], []]
    assert image == watched == given
    assert image.count(CODE[16 * COUNT :]) == COUNT
    assert mapped(folder) == []
    assert not any(is_leased(name) for name in inputs)


def test_the_command_maps_too(inputs: list[str], seen: list[list[str]]) -> None:
    assert main(["-arch=sm_80", *inputs, "-o", "o"]) == 0
    assert seen == [inputs]
    assert Path("o").read_bytes() == pylink.link(inputs, arch="sm_80").image


@pytest.fixture
def objects(folder: Path) -> list[str]:
    """Host objects with the code of `inputs`."""
    names = [f"{number}.o" for number in range(COUNT)]
    for number, name in enumerate(names):
        code = ("__nv_relfatbin", container(entry(cubin(number), 80)))
        ids = ("__nv_module_id", f"_0000000{number}_1_a\0".encode())
        Path(name).write_bytes(host_object([code, SEGMENT, ids]))
    return names


def test_a_device_link_step_maps_host_objects(
    objects: list[str], folder: Path, seen: list[list[str]]
) -> None:
    step = pylink.dlink(objects, archs=["sm_80"])
    given = pylink.dlink([Path(name).read_bytes() for name in objects], archs=["sm_80"])
    assert seen == [objects, []]
    assert step.cubins["sm_80"] == given.cubins["sm_80"]
    assert step.cubins["sm_80"].count(CODE[16 * COUNT :]) == COUNT
    assert mapped(folder) == []
    assert not any(is_leased(name) for name in objects)
    pylink.link(objects, arch="sm_80")
    assert seen[2] == []


@pytest.mark.parametrize("mode", ["default", "size", "speed"])
def test_a_step_that_compresses_slowly_reads_its_inputs(
    objects: list[str], seen: list[list[str]], mode: Any
) -> None:
    """Compression of one link may last longer than anybody should wait for the inputs of others."""
    pylink.dlink(objects, archs=["sm_80", "sm_86"], compress_mode=mode)
    assert seen == [[] if mode == "size" else objects] * 2


def test_a_step_with_ptx_copies_its_inputs_before_it_compiles(
    objects: list[str], folder: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pylink.inputs.unpacking  # noqa: PLC0415 -- loaded by the step otherwise

    compiling: list[list[str]] = []

    def compile_ptx(job: object, picked: Any, *_: object) -> None:
        compiling.append(mapped(folder))
        picked.compile_inputs.clear()

    monkeypatch.setattr("pylink.inputs.unpacking.compile_ptx", compile_ptx)
    Path("text.ptx").write_bytes(b".version 9.0\n")
    pylink.dlink([*objects, "text.ptx"], archs=["sm_80"])
    assert (compiling, seen) == ([[]], [[]])


def test_a_step_refuses_objects_that_changed(
    objects: list[str], folder: Path, before_writing: Callable[[Hook], None]
) -> None:
    def change(_: PlacedTables) -> None:
        time.sleep(1.1)  # a lease holds for a second
        os.utime(objects[3], (1, 1))

    before_writing(change)
    with pytest.raises(pylink.LinkError) as caught:
        pylink.dlink(objects, archs=["sm_80"], output="o.o")
    (said,) = caught.value.diagnostics
    assert said.file == objects[3]
    assert "it changed while it was linked" in said.message
    assert not Path("o.o").exists()
    assert mapped(folder) == []


def test_a_step_that_fails_lets_go(objects: list[str], folder: Path) -> None:
    Path(objects[-1]).write_bytes(Path(objects[0]).read_bytes())
    with pytest.raises(pylink.LinkError) as caught:
        pylink.dlink(objects, archs=["sm_80", "sm_86"])
    assert caught.value.diagnostics
    assert mapped(folder) == []
    assert not any(is_leased(name) for name in objects)


def test_small_inputs_are_read(seen: list[list[str]]) -> None:
    """Not even large files where all are done in a moment; nor small ones beside large ones."""
    Path("small").write_bytes(cubin(0, CODE[:256]))
    names = ["small"]
    for number in range(1, COUNT):
        names.append(str(number))
        Path(names[-1]).write_bytes(cubin(number))
    pylink.link(names[:3], arch="sm_80")
    pylink.link(names, arch="sm_80")
    assert seen == [[], names[1:]]


def test_who_writes_waits_for_the_link(
    inputs: list[str], before_writing: Callable[[Hook], None]
) -> None:
    """The link goes on with what it was given, and no signal ends it."""
    writers: list[subprocess.Popen[bytes]] = []

    def write_meanwhile(_: PlacedTables) -> None:
        assert is_leased(inputs[1])
        writers.append(
            subprocess.Popen([sys.executable, "-c", f"open({inputs[1]!r}, 'wb').write(b'new')"])
        )
        with pytest.raises(subprocess.TimeoutExpired):
            writers[0].wait(0.5)

    expected = pylink.link(inputs, arch="sm_80").image
    before_writing(write_meanwhile)
    assert pylink.link(inputs, arch="sm_80").image == expected
    assert writers[0].wait(30) == 0
    assert Path(inputs[1]).read_bytes() == b"new"


def test_a_child_process_keeps_no_lease(
    inputs: list[str], before_writing: Callable[[Hook], None]
) -> None:
    ends: list[tuple[int, int]] = []

    def fork(_: PlacedTables) -> None:
        wait, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(wait, 1)
            os._exit(0)
        os.close(wait)
        ends.append((child, end))

    before_writing(fork)
    pylink.link(inputs, arch="sm_80")
    try:
        assert not any(is_leased(name) for name in inputs)
    finally:
        os.close(ends[0][1])
        os.waitpid(ends[0][0], 0)


def test_another_thread_forks_before_files_are_mapped_or_after(folder: Path) -> None:
    names = [f"{number}.cubin" for number in range(400)]
    for name in names:
        Path(name).write_bytes(cubin(0, CODE[: 33 << 10]))
    paths: list[bytes | None] = [os.fsencode(name) for name in names]
    sizes = [Path(name).stat().st_size for name in names]
    wait, end = os.pipe()
    children: list[int] = []

    def fork() -> None:
        for _ in range(50):
            child = os.fork()
            if child == 0:
                os.close(end)
                os.read(wait, 1)
                os._exit(0)
            children.append(child)

    forking = threading.Thread(target=fork)
    with warnings.catch_warnings():  # that there are threads
        warnings.simplefilter("ignore", DeprecationWarning)
        forking.start()
        while forking.is_alive():
            with inputfiles.MappedFiles() as files:
                inputfiles.read_files(paths, sizes, [None] * len(paths), None, files)
                assert is_leased(names[0])
        forking.join()
    try:
        assert not any(is_leased(name) for name in names)
    finally:
        os.close(end)
        for child in children:
            os.waitpid(child, 0)
        os.close(wait)


def test_a_child_process_may_leave_the_link(
    inputs: list[str], before_writing: Callable[[Hook], None]
) -> None:
    """As one of a signal's handler: it ends what it has not, and touches nothing of it."""
    children: list[int] = []

    def fork(_: PlacedTables) -> None:
        children.append(os.fork())
        if children[0] == 0:
            sys.exit(0)

    before_writing(fork)
    try:
        image = pylink.link(inputs, arch="sm_80").image
    except SystemExit:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 3
    assert image.count(CODE[16 * COUNT :]) == COUNT


def test_a_file_is_mapped_once(inputs: list[str], folder: Path) -> None:
    """By whatever name: the system looks through all leases of a file for each further one."""
    Path("hard").hardlink_to(inputs[0])
    Path("soft").symlink_to(inputs[1])
    names = [*inputs, "hard", "soft", *inputs]
    paths: list[bytes | None] = [os.fsencode(name) for name in names]
    contents = [Path(name).read_bytes() for name in names]
    sizes = [len(content) for content in contents]
    with inputfiles.MappedFiles() as files:
        arena, extents, *_ = inputfiles.read_files(paths, sizes, [None] * len(names), None, files)
        assert count_mappings(folder) == COUNT
        for number, content in enumerate(contents):
            offset = int.from_bytes(extents[16 * number :][:8], "little")
            assert arena[offset : offset + len(content)] == content
    assert not any(is_leased(name) for name in names)


def read(names: list[str], files: inputfiles.MappedFiles) -> tuple[bytes, bytes]:
    paths: list[bytes | None] = [os.fsencode(name) for name in names]
    sizes = [Path(name).stat().st_size for name in names]
    return inputfiles.read_files(paths, sizes, [None] * len(names), None, files)[:2]


def count_mappings(folder: Path | None = None) -> int:
    """Return how many mappings this process has, or of files in `folder` if that is given.

    The first number also changes with what the process itself allocates and frees.
    """
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return len(lines) if folder is None else sum(f"{folder}/" in line for line in lines)


def test_copies_are_few_mappings(folder: Path) -> None:
    """A process that keeps what many links said has no more of them than the system allows."""
    names = [f"{number}.cubin" for number in range(300)]
    for name in names:
        Path(name).write_bytes(cubin(0, CODE[: 33 << 10]))
    before = count_mappings()
    with inputfiles.MappedFiles() as files:
        arena, extents = read(names, files)
        assert count_mappings() - before > 250
    assert count_mappings() - before < 30
    expected = Path(names[0]).read_bytes()
    for number in range(len(names)):
        offset = int.from_bytes(extents[16 * number :][:8], "little")
        assert arena[offset : offset + len(expected)] == expected


def test_links_together_map_so_many_files(folder: Path) -> None:
    """Two of 9,000 files each: the second maps what the first left, and reads the others."""
    data = cubin(0, CODE[: 33 << 10])
    names = [str(number) for number in range(9000)]
    for name in names:
        Path(name).write_bytes(data)
    with inputfiles.MappedFiles() as first:
        read(names, first)
        with inputfiles.MappedFiles() as second:
            read(names, second)
            assert count_mappings(folder) == 16384
            second.end(keeps=False)
        read_again = inputfiles.MappedFiles()
        read(names[:200], read_again)
        assert count_mappings(folder) == 9200
        read_again.end(keeps=False)
        first.end(keeps=False)
    assert count_mappings(folder) == 0


def test_a_file_that_somebody_writes_is_read(inputs: list[str], seen: list[list[str]]) -> None:
    expected = pylink.link(inputs, arch="sm_80").image
    with Path(inputs[2]).open("r+b"):
        assert pylink.link(inputs, arch="sm_80").image == expected
    assert seen == [inputs, inputs[:2] + inputs[3:]]


def test_what_was_said_may_be_looked_at_later(inputs: list[str], folder: Path) -> None:
    """A link with something to say leaves copies behind, and nothing mapped."""
    Path(inputs[0]).write_bytes(data := cubin(0, recurses=True))
    sizes = [Path(name).stat().st_size for name in inputs]
    paths: list[bytes | None] = [os.fsencode(name) for name in inputs]
    with inputfiles.MappedFiles() as files:
        arena, extents, failed, _ = inputfiles.read_files(paths, sizes, [None] * COUNT, None, files)
        assert (failed, mapped(folder)) == (-1, inputs)
    assert mapped(folder) == []
    offset = int.from_bytes(extents[:8], "little")
    assert arena[offset : offset + len(data)] == data
    assert files.end(keeps=False) == -1  # for the second time
    assert arena[offset : offset + len(data)] == data
    result = pylink.link(inputs, arch="sm_80")
    assert [diagnostic.number for diagnostic in result.diagnostics] == [501]
    assert mapped(folder) == []


def test_a_link_that_fails_lets_go(inputs: list[str], folder: Path) -> None:
    Path(inputs[-1]).write_bytes(Path(inputs[0]).read_bytes())
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link(inputs, arch="sm_80")
    assert caught.value.diagnostics
    assert mapped(folder) == []
    assert not any(is_leased(name) for name in inputs)


def test_other_inputs_end_the_mapping_before_they_are_taken_apart(
    inputs: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may run a compiler, for longer than anybody should wait."""
    import pylink.inputs.unpacking  # noqa: PLC0415 -- loaded by the link otherwise

    seen: list[list[str]] = []
    real = pylink.inputs.unpacking.unpack

    def unpack(*given: object) -> object:
        seen.append(mapped(folder))
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("pylink.inputs.unpacking.unpack", unpack)
    Path("one.a").write_bytes(gnu([("a.cubin", cubin(COUNT))]))
    image = pylink.link([*inputs, "one.a"], arch="sm_80").image
    assert seen == [[]]
    assert image.count(CODE[16 * COUNT :]) == COUNT


@pytest.mark.parametrize("by", ["time", "another file"])
def test_a_change_that_no_lease_kept_away_is_an_error(
    inputs: list[str], before_writing: Callable[[Hook], None], by: str
) -> None:
    """As when the link was stopped for so long that the system did not wait any more."""

    def change(_: PlacedTables) -> None:
        time.sleep(1.1)  # a lease holds for a second
        if by == "time":
            os.utime(inputs[3], (1, 1))
        else:  # the link has the file that was there
            Path("new").write_bytes(b"new")
            Path("new").rename(inputs[3])

    expected = pylink.link(inputs, arch="sm_80").image
    before_writing(change)
    if by == "another file":
        assert pylink.link(inputs, arch="sm_80").image == expected
        return
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link(inputs, arch="sm_80", output="o")
    (said,) = caught.value.diagnostics
    assert said.file == inputs[3]
    assert "it changed while it was linked" in said.message
    assert not Path("o").exists()


LINKING = """
import sys
import pylink
from pylink._native import image

real = image.write_output

def write(*given, **named):
    maps = open("/proc/self/maps").read()
    print(*(name for name in sys.argv[1:] if f"/{name}\\n" in maps), file=sys.stderr)
    return real(*given, **named)

image.write_output = write
try:
    sys.stdout.buffer.write(pylink.link(sys.argv[1:], arch="sm_80").image)
except pylink.LinkError as error:
    sys.exit(str(error))
"""


def link_with_faults(folder: Path, inputs: list[str], how: str) -> tuple[int, bytes, str]:
    """Status, image, and names that were mapped, or the error, where the system refuses pages."""
    library = folder / "other_madvise.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, OTHER_MADVISE], check=True)
    done = subprocess.run(
        [sys.executable, "-c", LINKING, *inputs],
        capture_output=True,
        check=False,
        env=os.environ | {"LD_PRELOAD": str(library), "MADVISE": how},
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_files_are_read_where_the_kernel_cannot_promise_their_pages(
    inputs: list[str], folder: Path
) -> None:
    image = pylink.link(inputs, arch="sm_80").image
    assert link_with_faults(folder, inputs, "none")[:2] == (0, image)
    assert link_with_faults(folder, inputs, "none")[2].split() == inputs
    assert link_with_faults(folder, inputs, "refused") == (0, image, "\n")


def test_a_bad_block_is_an_error_and_no_signal(inputs: list[str], folder: Path) -> None:
    """Its page would be missing when the link uses it, which ends a process."""
    code, image, said = link_with_faults(folder, inputs, inputs[2])
    assert (code, image) == (1, b"")
    assert "bad block" in said
    assert "2.cubin" in said.splitlines()[-1]
    assert "Input/output error" in said.splitlines()[-1] or "Could not open" in said


def test_a_file_of_another_size_is_not_mapped(inputs: list[str], folder: Path) -> None:
    """It is read, which finds out that it is shorter, or takes what was asked for."""
    paths: list[bytes | None] = [os.fsencode(name) for name in inputs]
    sizes = [Path(name).stat().st_size for name in inputs]
    for change, failed in ((1, 4), (-1, -1)):
        given = [*sizes[:4], sizes[4] + change]
        with inputfiles.MappedFiles() as files:
            found = inputfiles.read_files(paths, given, [None] * COUNT, None, files)
            assert found[2:] == (failed, 0)
            assert mapped(folder) == inputs[:4]


def test_a_large_output_goes_to_a_pipe_that_is_opened_once(folder: Path) -> None:
    names = [f"{number}.cubin" for number in range(10)]
    for number, name in enumerate(names):
        Path(name).write_bytes(cubin(number))
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        linking = threading.Thread(
            target=pylink.link, args=(names,), kwargs={"arch": "sm_80", "output": "pipe"}
        )
        linking.start()
        assert reader.stdout is not None
        assert reader.stdout.read() == pylink.link(names, arch="sm_80").image
        linking.join()

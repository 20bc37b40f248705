"""Files appear atomically, even if names, folders, disks or other links cause trouble."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin, one_kernel
from helpers.privileges import ordinary_user

from pylink.command.cli import main
from pylink.files import closing, temporary
from pylink.files.atomic import WholeFile, write_whole
from pylink.options.table import OPTIONS, Option

WRITING = [row for row in OPTIONS if row.writes]


@pytest.fixture(params=["nameless", "named"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to write: with files without a name, and where there are none."""
    real = os.open

    def refusing(path: str, flags: int, *rest: int, **options: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not here")
        return real(path, flags, *rest, **options)

    if request.param == "named":
        monkeypatch.setattr("pylink.files.atomic.os.open", refusing)
    return str(request.param)


@pytest.mark.parametrize("length", [1, 199, 240, 255])
@pytest.mark.parametrize("existing", [True, False])
def test_names_of_any_length(tmp_path: Path, files: str, length: int, existing: bool) -> None:
    path = tmp_path / ("é" * (length // 2) + "x" * (length % 2))
    if existing:
        path.write_text("old")
    write_whole(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["o/", "o/.", "there/", "there/.."])
def test_a_name_of_a_folder_is_none_of_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").write_text("kept")
    with pytest.raises(OSError, match=r"Is a directory|Not a directory|No such file"):
        WholeFile(f"{tmp_path}/{name}")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_writable_file_in_a_folder_that_is_not(files: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # which others may look into
        overwrite(Path(folder))


def overwrite(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_bytes(b"a longer text than the new one")
    path.chmod(0o666)
    tmp_path.chmod(0o555)
    inode = path.stat().st_ino
    try:
        with ordinary_user():
            write_whole(str(path), b"new")
            with pytest.raises(PermissionError):
                write_whole(str(tmp_path / "other"), b"new")
    finally:
        tmp_path.chmod(0o755)
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino == inode


def test_a_file_that_cannot_be_replaced(
    tmp_path: Path, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is mounted."""

    def busy(*arguments: object, **options: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    (tmp_path / "o").write_text("old")
    monkeypatch.setattr("pylink.files.atomic.os.rename", busy)
    write_whole(str(tmp_path / "o"), b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


@pytest.mark.parametrize("existing", [True, False])
def test_an_error_of_close_comes_before_the_name(
    tmp_path: Path, files: str, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    """As of a quota on NFS, which the first close of the file reports."""
    path = tmp_path / "o"
    if existing:
        path.write_text("old")
    failed = fail_closing(monkeypatch, tmp_path)
    with pytest.raises(OSError, match="Disk quota exceeded"):
        write_whole(str(path), b"new")
    assert len(failed) == 1
    assert list(tmp_path.iterdir()) == [path] * existing
    assert not existing or path.read_text() == "old"


@pytest.mark.parametrize("size", [1, 1 << 24])
def test_a_link_whose_output_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    """Also of one that is made in its file."""
    cubin = Cubin()
    cubin.function("kernel", code=bytes(range(16)) * size, kernel=True)
    (tmp_path / "a.cubin").write_bytes(cubin.build())
    (tmp_path / "out").mkdir()
    output = tmp_path / "out/o"
    output.write_text("old")
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(output)]
    with monkeypatch.context() as patch:
        fail_closing(patch, tmp_path / "out")
        assert main(words) == 1
    assert "failed: Disk quota exceeded" in capsys.readouterr().err
    assert [file.read_text() for file in (tmp_path / "out").iterdir()] == ["old"]
    assert main(words) == 0
    assert output.stat().st_size > 16 * size


def fail_closing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Let the first close of a file with contents in a folder fail; its name is in the list."""
    real = os.close
    failed: list[str] = []

    def close(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        written = name.startswith(f"{folder}/") and os.fstat(descriptor).st_size
        real(descriptor)
        if written and not name.endswith("/o") and not failed:
            failed.append(name)
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("os.close", close)
    return failed


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("files", ["named"], indirect=True)
def test_a_server_is_asked_to_keep_the_file(
    tmp_path: Path, files: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """NFS has no files without a name. A local disk is not asked: that takes long."""
    asked: list[int] = []

    def fsync(descriptor: int) -> None:
        asked.append(descriptor)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", fsync)
    path = tmp_path / "o"
    write_whole(str(path), b"old")
    assert not asked
    monkeypatch.setattr(closing, "is_network", lambda _: True)
    with pytest.raises(OSError, match=os.strerror(number)):
        write_whole(str(path), b"new")
    assert len(asked) == 1
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize(
    ("kind", "network"),
    [("nfs4", True), ("fuse.sshfs", True), ("cifs", True), ("tmpfs", False), ("overlay", False)],
)
def test_file_systems_that_have_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, network: bool
) -> None:
    folder = os.open("/proc", os.O_RDONLY)  # a file system without a disk
    device = os.fstat(folder).st_dev
    place = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    disk = "20 1 8:1 / / rw - ext4 /dev/sda1 rw"
    mounts.write_text(f"{disk}\n21 20 {place} / /n rw a:1 - {kind} x rw\n")
    monkeypatch.setattr(closing, "_MOUNTS", str(mounts))
    try:
        assert closing.is_network(folder) is network
        monkeypatch.setattr(closing, "_MOUNTS", str(tmp_path / "gone"))
        assert closing.is_network(folder)
    finally:
        os.close(folder)


def test_who_took_the_draft_for_a_leftover_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped between the close and the next lock, without nameless files."""
    real, names = closing.raise_close_errors, 0

    def steal(descriptor: int, folder: int | None = None) -> None:
        nonlocal names
        real(descriptor, folder)
        for left in tmp_path.glob(".*pylink"):
            names += 1
            if names == 1:
                left.unlink()

    def refusing(path: str, flags: int, *rest: int, **options: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not here")
        return opening(path, flags, *rest, **options)

    opening = os.open
    monkeypatch.setattr("pylink.files.atomic.os.open", refusing)
    monkeypatch.setattr("pylink.files.atomic.raise_close_errors", steal)
    write_whole(str(tmp_path / "o"), b"new")
    assert names == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


def test_what_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc."""

    def missing(*arguments: object, **options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr("pylink.files.atomic.os.link", missing)
    for text in (b"new", b"newer"):
        write_whole(str(tmp_path / "o"), text)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [text]


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("option", WRITING, ids=lambda option: option.long)
def test_a_limit_on_the_size_of_files(tmp_path: Path, option: Option, existing: bool) -> None:
    """A full disk, in the middle of a file: an error, and what was there is there."""
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    (tmp_path / "host.o").write_bytes(b"")
    if existing:
        (tmp_path / "x").write_text("old")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2, 2))

    output = [] if option.attribute == "output_file" else ["-o", "/dev/null"]
    words = ["-arch=sm_80", "a.cubin", *output, f"--{option.long}=x", "-maxrregcount=1"]
    words += ["--diag-min-severity=remark", "-use-host-info", "-kernels-used=kernel"]
    command = [sys.executable, "-m", "pylink", *words]
    done = subprocess.run(
        command, cwd=tmp_path, preexec_fn=limited, capture_output=True, text=True, check=False
    )
    if option.long == "time":  # appended to, and of no use to a link of cubins
        assert done.returncode == 0
        return
    assert done.returncode != 0
    assert "'x' failed" in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"a.cubin", "host.o"}
    assert left == ({"x"} if existing else set())
    if existing:
        assert (tmp_path / "x").read_text() == "old"


def test_links_of_one_output_at_once(tmp_path: Path, files: str) -> None:
    """None takes the temporary file of another for a leftover."""
    path = tmp_path / "o"
    path.write_text("old")
    outputs = [WholeFile(str(path)) for _ in range(5)]
    for number, file in enumerate(outputs):
        file.write(b"%d" % number)
    for file in outputs:
        file.commit()
    assert path.read_text() == "4"
    assert list(tmp_path.iterdir()) == [path]


HOLD = """
import os, sys
from pylink.files.atomic import WholeFile
file = WholeFile(sys.argv[1])
file.write(b"whole")
file._claim_temporary_name()
print(flush=True)
sys.stdin.readline()
file.commit()
"""


def test_a_draft_of_another_process_is_left_alone_and_a_leftover_removed(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_text("old")
    for kill in (False, True):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()
        assert sorted(each.name for each in tmp_path.iterdir()) == [".o.0.pylink", "o"]
        write_whole(str(path), b"new")
        assert path.read_text() == "new"
        assert (tmp_path / ".o.0.pylink").exists()
        if kill:
            holder.kill()
        holder.communicate(b"\n")
        assert path.read_text() == ("new" if kill else "whole")
    assert (tmp_path / ".o.0.pylink").exists()
    write_whole(str(path), b"last")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["last"]


def test_what_others_put_there_is_not_touched(tmp_path: Path) -> None:
    """A link to somewhere else, a folder, a file with a second name."""
    (tmp_path / "kept").write_text("kept")
    name = temporary.temporary_name(b"o", 0).decode()
    here = tmp_path / name
    for what in ("symbolic", "folder", "hard"):
        if what == "symbolic":
            here.symlink_to("kept")
        elif what == "folder":
            here.mkdir()
        else:
            os.link(tmp_path / "kept", here)
        (tmp_path / "o").write_text("old")
        write_whole(str(tmp_path / "o"), b"new")
        assert (tmp_path / "o").read_text() == "new"
        assert (tmp_path / "kept").read_text() == "kept"
        if what == "folder":
            here.rmdir()
        else:
            here.unlink()


def test_descriptors_are_written_where_they_stand(tmp_path: Path) -> None:
    """Who opened them says where, and whether what is there stays."""
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    command = f"{sys.executable} -m pylink -arch=sm_80 a.cubin -o out --Map=/dev/stdout"
    script = f"{{ echo before; {command}; echo after; }} >> log"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    lines = (tmp_path / "log").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert any("Kept symbols" in line for line in lines)
    removed = os.memfd_create("removed")
    try:
        path = f"/proc/{os.getpid()}/fd/{removed}"
        assert main(["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", path]) == 0
        assert os.fstat(removed).st_size == (tmp_path / "out").stat().st_size
    finally:
        os.close(removed)

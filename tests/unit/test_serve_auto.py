"""PYLINK_SERVER=auto: a server that nobody has to start, and that nobody notices."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.installed import Installed, build_scripts

BY_SCRIPT = "from the script\n"
LINK = ("-arch=sm_80", "a.cubin", "-o", "out.cubin")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scripts(tmp_path_factory.mktemp("scripts"))


@pytest.fixture
def installed(tmp_path: Path, scripts: Path) -> Iterator[Installed]:
    installed = Installed(tmp_path / "prefix", scripts)
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as runtime:
        (installed.folder / "run").symlink_to(runtime)
        yield installed
        for process in servers(installed):
            os.kill(process, signal.SIGTERM)


def variables(installed: Installed) -> dict[str, str]:
    return {
        "PYLINK_SERVER": "auto",
        "XDG_RUNTIME_DIR": str((installed.folder / "run").resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def servers(installed: Installed) -> list[int]:
    """The processes that serve for this installation, but for those that these forked."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                words = (place / "cmdline").read_bytes()
                parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if f"{(installed.folder / 'run').resolve()}/".encode() in words and b"--auto" in words:
                found[int(place.name)] = int(parent)
    return [process for process, parent in found.items() if parent not in found]


def wait_for(installed: Installed) -> int:
    """The server, once it serves."""
    until = time.monotonic() + 30
    while installed.link(**variables(installed)) != "":
        assert time.monotonic() < until
        time.sleep(0.05)
    (server,) = servers(installed)
    return server


def test_the_first_link_starts_a_server_for_the_others(installed: Installed) -> None:
    assert installed.link(**variables(installed)) == BY_SCRIPT
    server = wait_for(installed)
    assert os.getsid(server) != os.getsid(0)
    place = Path(f"/proc/{server}")
    assert (place / "cwd").readlink() == Path("/")
    for number in range(3):
        assert (place / "fd" / str(number)).readlink() == Path("/dev/null")
    (folder,) = (installed.folder / "run").iterdir()
    assert folder.stat().st_mode & 0o7777 == 0o700
    os.kill(server, signal.SIGTERM)
    until = time.monotonic() + 30
    while servers(installed):
        assert time.monotonic() < until
        time.sleep(0.05)
    # A server that ended is not started again at once.
    assert [installed.link(**variables(installed)) for _ in range(2)] == [BY_SCRIPT] * 2
    assert servers(installed) == []


def test_a_server_keeps_its_lock(installed: Installed) -> None:
    """A second server would take the place of the first one's socket."""
    wait_for(installed)
    (folder,) = (installed.folder / "run").iterdir()
    (name,) = folder.glob("*.lock")
    with name.open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_link_without_standard_streams_starts_a_server(installed: Installed) -> None:
    """The lock's descriptor could be one of theirs, which are /dev/null in the server."""
    words = ["-c", 'exec "$@" <&- >&- 2>&-', "sh", str(installed.program), *LINK]
    assert installed.run(*words, name="/bin/sh", **variables(installed)).returncode == 0
    test_a_server_keeps_its_lock(installed)


def test_two_first_links_start_one_server(installed: Installed) -> None:
    environment = installed.environment(**variables(installed))
    links = [
        subprocess.Popen(
            [str(installed.program), *LINK[:-1], f"{number}.cubin"],
            cwd=installed.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for number in range(6)
    ]
    assert [link.wait(60) for link in links] == [0] * 6
    wait_for(installed)


@pytest.mark.parametrize("other", ["nice -n 5", "prlimit --nofile=512", "taskset -c {core}"])
def test_a_client_with_other_limits_links_by_itself(installed: Installed, other: str) -> None:
    wait_for(installed)
    core = min(os.sched_getaffinity(0))
    if "taskset" in other and len(os.sched_getaffinity(0)) == 1:
        other = "nice -n 5"
    words = [*other.format(core=core).split(), str(installed.program), *LINK]
    done = installed.run(*words[1:], name=f"/usr/bin/{words[0]}", **variables(installed))
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")
    assert installed.link(**variables(installed)) == ""


@pytest.mark.parametrize("case", ["mode", "link", "file"])
def test_a_folder_that_is_not_safe_has_no_server(installed: Installed, case: str) -> None:
    folder = installed.folder / "run" / "pylink-auto"
    if case == "mode":
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    elif case == "link":
        (installed.folder / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(installed.folder / "elsewhere")
    else:
        folder.write_bytes(b"")
    for _ in range(2):
        assert installed.link(**variables(installed)) == BY_SCRIPT
    assert servers(installed) == []


def test_an_overlay_may_have_a_server(installed: Installed) -> None:
    directory = installed.folder / "overlay"
    command = "from pylink.command.overlay import main; import sys; sys.exit(main(sys.argv[1:]))"
    words = ["-c", command, str(directory), "--serve"]
    assert installed.run(*words, name=sys.executable).returncode == 0
    linker = directory / "bin" / "nvlink"
    linker.unlink()  # a script of the interpreter of these tests
    linker.symlink_to(installed.program)
    given = {**variables(installed), "PYLINK_SERVER": ""}
    until = time.monotonic() + 30
    while installed.run(*LINK, name=str(linker), **given).stdout != "":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert len(servers(installed)) == 1

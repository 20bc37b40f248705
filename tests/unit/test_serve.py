"""`pylink serve`: links as those of a process of their own, whatever went before."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest
from helpers.archive_builder import gnu
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry, host_object
from helpers.installed import Installed, build_scripts

from pylink.facts.elf import EM_AARCH64
from pylink.facts.records import EHDR
from pylink.serve.directory import make_directory

CODE = one_kernel().build()
BY_SCRIPT = "from the script\n"  # what a link prints here that no server did


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("serve")
    return Installed(folder / "prefix", build_scripts(folder))


class Server:
    """A running `pylink serve`."""

    def __init__(self, installed: Installed, *words: str) -> None:
        environment = installed.environment(PYTHONDONTWRITEBYTECODE="1")
        environment.pop("PYLINK_SERVER", None)
        self.installed = installed
        self.process = subprocess.Popen(
            [installed.program, "serve", "--ready", "2", *words],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == BY_SCRIPT
        self.path = self.process.stdout.readline().strip().partition("export PYLINK_SERVER=")[2]
        assert self.path

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        variables = {"PYLINK_SERVER": self.path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        return self.installed.run(*words, **variables)

    def link(self, output: str = "out.cubin", **variables: str) -> str:
        done = self.run("-arch=sm_80", "a.cubin", "-o", output, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def is_read(pipe: int) -> bool:
    """Whether a process still has the other end of a pipe."""
    poll = select.poll()
    poll.register(pipe, 0)
    return not poll.poll(0)


def is_served(path: str) -> bool:
    """Whether anybody still listens at a socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


@pytest.fixture
def server(installed: Installed) -> object:
    started = Server(installed)
    yield started
    if started.process.poll() is None:
        started.stop()
    started.process.communicate(timeout=20)


def test_a_served_link_is_that_of_a_process_of_its_own(server: Server) -> None:
    folder = server.installed.folder
    (folder / "damaged.cubin").write_bytes(one_kernel().build()[:100])
    links = [
        ["-arch=sm_80", "a.cubin", "-o", "same.cubin"],
        ["-arch=sm_80", "a.cubin", "-o", "same.cubin", "-v"],
        ["-arch=sm_80", "damaged.cubin", "-o", "same.cubin"],
        ["-arch=sm_90", "a.cubin", "-o", "same.cubin", "--diagnostics-format=text"],
        ["-arch=sm_80", "missing \xe9.cubin", "-o", "same.cubin"],
        ["-bogus"],
        ["--version"],
        ["--help"],
    ]
    for words in links:
        outcomes = []
        for path in (server.path, ""):
            answer = server.run(*words, PYLINK_SERVER=path)
            made = folder / "same.cubin"
            image = made.read_bytes() if made.exists() else None
            made.unlink(missing_ok=True)
            outcomes.append((answer.returncode, answer.stdout, answer.stderr, image))
        served, plain = outcomes
        assert plain[1].startswith(BY_SCRIPT)
        assert served == (plain[0], plain[1].removeprefix(BY_SCRIPT), *plain[2:])


def test_faults_leave_nothing_for_later_links(server: Server) -> None:
    """Sixty links of six kinds by few processes; each time what a fresh process makes."""
    folder = server.installed.folder
    (folder / "damaged.cubin").write_bytes(one_kernel().build()[:200])
    assert server.link("fresh.cubin", PYLINK_SERVER="") == BY_SCRIPT
    fresh = (folder / "fresh.cubin").read_bytes()
    for _ in range(10):
        assert server.run("-arch=sm_80", "damaged.cubin", "-o", "bad.cubin").returncode != 0
        assert server.run("-arch=sm_80", "a.cubin", "-o", "no/such/folder.cubin").returncode != 0
        assert server.run("-arch=sm_80", "a.cubin", "-o", "/dev/full").returncode != 0
        assert server.run("-arch=sm_80", "a.cubin", "-o", "x", "-time", "/no/x").returncode != 0
        assert server.run("-arch=sm_75", "a.cubin", "-v", "-o", "bad.cubin").returncode != 0
        assert server.link("fresh.cubin") == ""
        assert (folder / "fresh.cubin").read_bytes() == fresh


def test_a_link_has_the_surroundings_of_its_client(server: Server) -> None:
    folder = server.installed.folder
    (folder / "below").mkdir(exist_ok=True)
    (folder / "below" / "here.cubin").write_bytes(one_kernel().build())
    program = str(server.installed.program)
    script = f"umask 077; cd below; {program} -arch=sm_80 here.cubin -o there.cubin"
    done = server.installed.run("-c", script, name="/bin/sh", PYLINK_SERVER=server.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stat.S_IMODE((folder / "below" / "there.cubin").stat().st_mode) == 0o600
    assert server.run("-arch=sm_80", "below/here.cubin", NVLINK_APPEND_FLAGS="-bogus").stdout == ""


def test_a_socket_is_private(server: Server) -> None:
    status = Path(server.path).parent.stat()
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert status.st_uid == os.getuid()


def test_a_killed_client_ends_its_link(server: Server) -> None:
    folder = server.installed.folder
    pipe = folder / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    command = [str(server.installed.program), "-arch=sm_80", "pipe", "-o", "never.cubin"]
    client = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYLINK_SERVER": server.path})
    with pipe.open("wb") as writer:  # somebody reads: the link has begun
        client.kill()
        client.wait()
        deadline = time.monotonic() + 30
        while is_read(writer.fileno()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not (folder / "never.cubin").exists()
    assert server.link() == ""


def test_what_is_no_request_is_survived(server: Server) -> None:
    for garbage in (b"", b"\0", b"\xff" * 4, (1 << 20).to_bytes(4, "little"), b"x" * 70000):
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(server.path)
                client.sendall(garbage)
    assert server.link() == ""


def test_a_link_without_a_server_is_done_all_the_same(server: Server) -> None:
    assert server.link() == ""
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + 30
    while is_served(server.path):  # a process that waited may see the end of its server later
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert server.link() == BY_SCRIPT
    assert server.link(PYLINK_SERVER="/nowhere") == BY_SCRIPT
    assert server.link(PYLINK_SERVER="x" * 500) == BY_SCRIPT


def test_another_locale_needs_another_interpreter(server: Server) -> None:
    assert server.link(LC_ALL="tr_TR.ISO-8859-9") == BY_SCRIPT


def test_changed_sources_end_the_service(installed: Installed) -> None:
    server = Server(installed)
    assert server.link() == ""
    os.utime(installed.package / "linker.py")
    assert server.link() == BY_SCRIPT
    server.stop()
    server.process.communicate(timeout=20)


def test_it_ends_when_nobody_links(installed: Installed) -> None:
    server = Server(installed, "--idle-timeout", "1")
    assert server.link() == ""
    assert server.process.wait(30) == 0
    assert not Path(server.path).parent.exists()
    server.process.communicate(timeout=20)


def test_it_ends_with_its_command(installed: Installed) -> None:
    script = f"{installed.program} -arch=sm_80 a.cubin -o c.cubin && exit 7"
    done = installed.run("serve", "sh", "-c", script, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout, done.stderr) == (7, BY_SCRIPT, "")
    for command, status, reason in (
        ("no-such-command", 127, "No such file or directory"),
        (str(installed.folder), 126, "Permission denied"),
    ):
        done = installed.run("serve", command, PYTHONDONTWRITEBYTECODE="1")
        assert (done.returncode, done.stderr) == (status, f"pylink serve: {command}: {reason}\n")


def test_folders_of_long_names_have_no_socket(installed: Installed, tmp_path: Path) -> None:
    """In build sandboxes, say: the path of a socket has at most 107 bytes."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    script = f"{installed.program} -arch=sm_80 a.cubin -o c.cubin"
    places = {"XDG_RUNTIME_DIR": str(long), "TMPDIR": str(long), "PYTHONDONTWRITEBYTECODE": "1"}
    done = installed.run("serve", "sh", "-c", script, **places)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(long.iterdir()) == []


def test_memory_is_limited(installed: Installed) -> None:
    server = Server(installed, "--max-memory", "200")
    with (installed.folder / "large.ptx").open("wb") as stream:
        stream.truncate(1 << 30)
    (installed.folder / "large.cubin").write_bytes(one_kernel().build())
    os.truncate(installed.folder / "large.cubin", 1 << 30)
    done = server.run("-arch=sm_80", "large.cubin", "-o", "x.cubin")
    assert done.returncode != 0
    assert "there is not enough memory" in done.stderr
    assert server.link() == ""
    server.stop()
    server.process.communicate(timeout=20)


def test_a_command_has_the_signals_of_the_caller(installed: Installed) -> None:
    ignores = 'trap "" HUP; exec "$@"'
    command = [str(installed.program), "serve", "/bin/sh", "-c", "grep SigIgn /proc/self/status"]
    environment = installed.environment(PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        ["/bin/sh", "-c", ignores, "sh", *command],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    ignored = int(done.stdout.split()[-1], 16)
    numbers = [signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGXFSZ]
    assert [ignored >> number - 1 & 1 for number in numbers] == [1, 0, 0, 0]


def test_a_command_is_told_to_end(installed: Installed) -> None:
    command = [str(installed.program), "serve", "/bin/sh", "-c", "echo begun; exec sleep 60"]
    environment = installed.environment(PYTHONDONTWRITEBYTECODE="1")
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "begun\n":
        pass
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    process.communicate(timeout=20)


def test_links_that_outlive_the_command_are_finished(installed: Installed) -> None:
    pipe = installed.folder / "late"
    os.mkfifo(pipe)
    link = f"{installed.program} -arch=sm_80 late -o late.cubin & (sleep 2; cat a.cubin >late) & "
    done = installed.run("serve", "sh", "-c", link + "sleep 1; exit 3", PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stderr) == (3, "")
    assert (installed.folder / "late.cubin").exists()


def test_clients_that_say_nothing_hold_nothing(server: Server) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(8)]
    for client in silent:
        client.connect(server.path)
    until = time.monotonic() + 20
    while server.link() == BY_SCRIPT:  # as long as the silent ones are waited for
        assert time.monotonic() < until
    for client in silent:
        client.close()


def test_only_links_are_served(server: Server) -> None:
    assert server.run("inspect", "a.cubin").stdout.startswith(BY_SCRIPT)
    done = server.run("serve", "/bin/sh", "-c", "exit 5")
    assert (done.returncode, done.stdout) == (5, BY_SCRIPT)
    assert server.run("link", "-arch=sm_80", "a.cubin", "-o", "out.cubin").stdout == ""
    assert server.link() == ""


def test_device_link_steps_are_served(server: Server) -> None:
    folder = server.installed.folder
    (folder / "a.o").write_bytes(host_object([("__nv_relfatbin", container(entry(CODE, 80)))]))
    words = ("dlink", "--cuda", "absent", "-arch=sm_80")
    images = []
    for path in (server.path, ""):
        for case in (["a.o", "-o", "made.o"], ["a.o", "-o", "absent/made.o"], ["a.cu"]):
            done = server.run(*words, *case, PYLINK_SERVER=path)
            said = done.stdout.removeprefix(BY_SCRIPT if path == "" else "")
            images.append((done.returncode, said, done.stderr, (folder / "made.o").read_bytes()))
        (folder / "made.o").unlink()
    assert images[:3] == images[3:]
    assert [status for status, *_ in images[:3]] == [0, 1, 1]


def test_a_served_step_asks_the_compiler_of_its_client(server: Server) -> None:
    folder = server.installed.folder
    compiler = folder / "compiler"
    compiler.write_text("#!/bin/sh\necho aarch64-linux-gnu\n", encoding="utf-8")
    compiler.chmod(0o755)
    (folder / "cubin.o").write_bytes(CODE)  # says nothing of the host
    words = ("dlink", "--cuda", "absent", "-arch=sm_80", "cubin.o", "-o", "made.o")
    for path in (server.path, ""):
        done = server.run(*words, PYLINK_SERVER=path, NVCC_CCBIN=str(compiler))
        said = done.stdout.removeprefix(BY_SCRIPT if path == "" else "")
        assert (done.returncode, said, done.stderr) == (0, "", "")
        _, _, machine, *_ = EHDR.unpack_from((folder / "made.o").read_bytes())
        assert machine == EM_AARCH64


USUAL_LINKS = """
import os, sys
from pylink.serve import server

for name in server.PRELOADED_MODULES:
    __import__(name)
from pylink.command.cli import main

before = set(sys.modules)
for words in (
    ["-arch=sm_80", "a.o", "-L.", "-lx", "-o", "linked.cubin"],
    ["dlink", "--cuda", "absent", "-arch=sm_80", "a.o", "-L.", "-lx", "-o", "linked.o"],
):
    assert main(words) == 0
print(sorted(set(sys.modules) - before))
"""


def test_usual_links_load_no_module(tmp_path: Path) -> None:
    """So a child of the server links again: it exits after a link that loaded one."""
    objects = [
        host_object([("__nv_relfatbin", container(entry(one_kernel(name).build(), 80)))])
        for name in ("a", "x")
    ]
    (tmp_path / "a.o").write_bytes(objects[0])
    (tmp_path / "libx.a").write_bytes(gnu([("x.o", objects[1])]))
    done = subprocess.run(
        [sys.executable, "-c", USUAL_LINKS],
        check=False, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_files_of_the_clients_process_are_opened_by_it(server: Server) -> None:
    words = ["-arch=sm_80", "/proc/self/cwd/a.cubin", "-o", "own.cubin"]
    done = server.run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")


@pytest.mark.parametrize("where", ["@options", "--options-file=options", "@around", "variable"])
def test_options_may_name_files_of_the_clients_process(server: Server, where: str) -> None:
    folder = server.installed.folder
    (folder / "options").write_text("/proc/self/cwd/a.cubin")
    (folder / "around").write_text("-w -optf options")
    (folder / "plain").write_text("a.cubin")
    words = ["-arch=sm_80", "-o", "own.cubin"]
    for file, said in (("options", BY_SCRIPT), ("plain", "")):
        (folder / "around").write_text(f"-w -optf {file}")
        if where == "variable":
            done = server.run(*words, PYLINK_OPTIONS=f"-optf {file}")
        else:
            named = f"--options-file={file}" if "-" in where else where.replace("options", file)
            done = server.run(*words, named)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    done = server.run(*words, PYLINK_OPTIONS="/proc/self/cwd/a.cubin")
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")


def test_options_from_a_pipe_are_left_in_it(server: Server) -> None:
    pipe = server.installed.folder / "options-pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"echo a.cubin > {pipe}"])
    done = server.run("-arch=sm_80", "-o", "own.cubin", f"@{pipe}")
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")
    assert writer.wait(30) == 0


COUNTS = """trap 'n=$((n + 1)); echo interrupted' INT
echo begun
i=0
while [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); done
exit $n
"""


def test_an_interrupt_comes_to_the_command_once(installed: Installed) -> None:
    """One that is sent to the server alone is passed on; one of the terminal comes to both."""
    command = [str(installed.program), "serve", "/bin/sh", "-c", COUNTS]
    environment = installed.environment(PYTHONDONTWRITEBYTECODE="1")
    for by_terminal in (False, True):
        terminal, inside = pty.openpty()

        def settle(terminal: int = inside) -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            command,
            env=environment,
            stdin=inside,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=settle,  # noqa: PLW1509 -- no threads here
        )
        assert process.stdout is not None
        while process.stdout.readline() != "begun\n":
            pass
        if by_terminal:
            os.write(terminal, b"\x03")
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 1
        process.communicate(timeout=20)
        os.close(terminal)
        os.close(inside)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_lent(server: Server, closed: str) -> None:
    program = str(server.installed.program)
    script = f"{program} -arch=sm_80 a.cubin -o closed.cubin {closed}"
    variables = {"PYLINK_SERVER": server.path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = server.installed.run("-c", script, name="/bin/sh", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert (server.installed.folder / "closed.cubin").exists()
    assert server.link() == ""


def test_where_a_socket_is(installed: Installed, tmp_path: Path) -> None:
    odd = tmp_path / "a b;c"
    odd.mkdir()
    variables = {"TMPDIR": str(odd), "PYTHONDONTWRITEBYTECODE": "1"}
    for folder in ("", "/no/such/folder"):
        serve = '"$0" serve --idle-timeout 0.1'  # seconds that count from the setting on
        script = f'eval "$({serve} | grep export)"; echo "$PYLINK_SERVER"'
        words = ["-c", script, str(installed.program)]
        done = installed.run(*words, name="/bin/sh", XDG_RUNTIME_DIR=folder, **variables)
        assert done.stdout.startswith(f"{odd}/pylink-serve-")


@pytest.mark.parametrize("variable", ["TMPDIR", "XDG_RUNTIME_DIR"])
def test_a_socket_has_an_absolute_path(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Clients run in other directories."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.chdir(folder)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setenv(variable, ".")
        monkeypatch.setattr(tempfile, "tempdir", None)
        assert Path(make_directory()).parent == Path(folder)


def is_held(folder: Path) -> bool:
    """Whether a process has the folder locked."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_what_a_killed_server_leaves_is_removed_by_the_next(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    left, running = Server(installed), Server(installed)
    left.stop(signal.SIGKILL)
    folder = Path(left.path).parent
    deadline = time.monotonic() + 20
    while is_held(folder):  # by processes of that server, which end by themselves
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert folder.exists()
    (tmp_path / "pylink-serve-file").touch()
    (tmp_path / "pylink-serve-link").symlink_to(folder)
    kept = tmp_path / "pylink-serve-folder"
    (kept / "more").mkdir(parents=True)
    third = Server(installed)
    try:
        assert not folder.exists()
        assert kept.is_dir()
        assert (tmp_path / "pylink-serve-file").exists()
        assert running.link() == third.link() == ""
    finally:
        assert (running.stop(), third.stop()) == (143, 143)
        for server in (left, running, third):
            server.process.communicate(timeout=20)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"pylink-serve-{name}" for name in ("file", "link", "folder")
    }

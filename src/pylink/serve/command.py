"""`pylink serve`: a server for other processes of its user, alone or beside a command."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import sys

from pylink.diagnostics.stream import printable, write
from pylink.serve.directory import SOCKET, make_directory
from pylink.serve.request import STREAMS
from pylink.serve.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The script that starts this package in an interpreter, beside the program `pylink`.
SCRIPT = "pylink-python"

# Default of --idle-timeout.
IDLE_SECONDS = 3600.0
MEBIBYTE = 1 << 20


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink serve",
        description="Keep the linker loaded for builds that link often. Runs the command with "
        "PYLINK_SERVER set, so that each `pylink` in it sends its link to this process. Without a "
        "command, prints the setting, and exits at a signal or when idle.",
        allow_abbrev=False,
    )
    options.add_argument(
        "--idle-timeout",
        type=float,
        default=IDLE_SECONDS,
        metavar="SECONDS",
        help="end a server without a command after this long idle (default: one hour)",
    )
    options.add_argument(
        "--max-memory",
        type=int,
        metavar="MIB",
        help="address space of each link (default: no limit)",
    )
    options.add_argument(
        "--ready",
        type=int,
        metavar="N",
        default=len(os.sched_getaffinity(0)) + 1,
        help="processes that wait for links (default: one more than cores)",
    )
    options.add_argument("--auto", metavar="SOCKET", help=argparse.SUPPRESS)
    options.add_argument("command", nargs=argparse.REMAINDER, help="build command to run")
    return options


def main(argv: Sequence[str]) -> int:
    """Serve and return the exit status of the build command.

    Without a command, that is 0 after `--idle-timeout`, and 128 + N after signal N. It is 1 if the
    server cannot start.
    """
    try:
        arguments = parser().parse_args(list(argv))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    command = arguments.command[arguments.command[:1] == ["--"] :]
    script = find_script()
    if script is None:
        write(
            None,
            f"pylink serve: no {SCRIPT} beside this program: reinstall pylink-cuda\n",
        )
        return 1
    keep_streams()
    if arguments.auto is not None:
        return serve_auto(arguments.auto, script, arguments.ready, arguments.idle_timeout)
    try:
        directory = make_directory()
    except OSError as error:
        write(None, f"pylink serve: {printable(str(error))}\n")
        return 1
    try:
        path = os.path.join(directory, SOCKET)
        memory = arguments.max_memory
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(128)
            server = Server(listener, script, max(1, arguments.ready), memory and memory * MEBIBYTE)
            return server.run(path, command, arguments.idle_timeout)
    except OSError as error:
        write(None, f"pylink serve: {printable(str(error))}\n")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def serve_auto(path: str, script: str, ready: int, idle: float) -> int:
    """Serve at a socket for links with PYLINK_SERVER=auto, for which the launcher started this.

    This process holds the lock of the socket, so an existing socket belonged to a killed server.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    unfinished = f"{path}.{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(unfinished)
            listener.listen(128)
            os.rename(unfinished, path)  # only now: a client that finds the socket can connect
            server = Server(listener, script, max(1, ready), None, same_limits=True)
            return server.run(path, [], idle)
    except OSError:  # links run without a server
        return 1
    finally:
        for name in (unfinished, path):
            with contextlib.suppress(OSError):
                os.unlink(name)


def find_script() -> str | None:
    """Return the script beside the program `pylink`, which clients of this installation name.

    None without one.
    """
    from pylink.subtools.programs import find_own_program

    path = shutil.which(sys.argv[0]) or find_own_program()
    script_path = os.path.join(os.path.dirname(os.path.realpath(path)), SCRIPT) if path else ""
    return script_path if os.path.isfile(script_path) else None


def keep_streams() -> None:
    """Open /dev/null as each closed standard stream, so that no socket gets its number."""
    while (number := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) < STREAMS:
        pass
    os.close(number)

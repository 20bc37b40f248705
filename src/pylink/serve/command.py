"""`pylink serve`: a server for other processes of its user, alone or beside a command."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import sys

from pylink._native.cores import count_cores
from pylink.serve.directory import SOCKET, make_directory
from pylink.serve.request import STREAMS
from pylink.serve.server import PROGRAM, Server
from pylink.terminal.arguments import positive_number, seconds
from pylink.terminal.running import print_error, run

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
        prog=PROGRAM,
        description="Keep the linker loaded for builds that link often. Runs the command with "
        "PYLINK_SERVER set, so that each `pylink` in it sends its link to this process. Without a "
        "command, prints the setting, and exits at a signal or when idle.",
        allow_abbrev=False,
    )
    options.add_argument(
        "--idle-timeout",
        type=seconds,
        default=IDLE_SECONDS,
        metavar="SECONDS",
        help="end a server without a command after this long idle (default: one hour)",
    )
    options.add_argument(
        "--max-memory",
        type=positive_number,
        metavar="MIB",
        help="address space of each link (default: no limit)",
    )
    options.add_argument(
        "--ready",
        type=positive_number,
        metavar="N",
        default=count_cores() + 1,
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
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    command = options.command[options.command[:1] == ["--"] :]
    script = _find_script()
    if script is None:
        print_error(PROGRAM, f"no {SCRIPT} beside this program: reinstall pylink-cuda")
        return 1
    _keep_streams()
    if options.auto is not None:
        return _serve_auto(options.auto, script, options.ready, options.idle_timeout)
    directory = make_directory()
    try:
        path = os.path.join(directory, SOCKET)
        memory = options.max_memory
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(128)
            server = Server(listener, script, options.ready, memory and memory * MEBIBYTE)
            return server.run(path, command, options.idle_timeout)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _serve_auto(path: str, script: str, ready: int, idle: float) -> int:
    """Serve links with PYLINK_SERVER=auto at the socket `path`; return the exit status.

    `script` is the file `pylink-python`, which clients must name, too. `ready` children wait for
    links, and the server ends after `idle` seconds without any.
    The launcher has started this process, which keeps the socket's lock that it inherited. So a
    socket that exists already belonged to a server that was killed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    unfinished = f"{path}.{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(unfinished)
            listener.listen(128)
            os.rename(unfinished, path)  # only now: a client that finds the socket can connect
            server = Server(listener, script, ready, None, same_limits=True)
            return server.run(path, [], idle)
    except OSError:  # links run without a server
        return 1
    finally:
        for name in (unfinished, path):
            with contextlib.suppress(OSError):
                os.unlink(name)


def _find_script() -> str | None:
    """Return the path of `pylink-python`, the script beside the program `pylink`; None without one.

    Clients of this installation name the same script.
    """
    from pylink.subtools.programs import find_own_program

    path = shutil.which(sys.argv[0]) or find_own_program()
    script_path = os.path.join(os.path.dirname(os.path.realpath(path)), SCRIPT) if path else ""
    return script_path if os.path.isfile(script_path) else None


def _keep_streams() -> None:
    """Open /dev/null as each closed standard stream, so that no socket gets its number."""
    while (number := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) < STREAMS:
        pass
    os.close(number)

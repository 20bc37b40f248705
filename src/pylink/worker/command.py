"""`pylink worker`: requests on standard input, responses on standard output.

A build system that starts the command without `--persistent_worker` expects one link, not a worker.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading

from pylink._native.cores import count_cores
from pylink.terminal.arguments import positive_number
from pylink.terminal.running import print_error
from pylink.worker.protocol import PROTOCOLS, Protocol, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from pylink.worker.protocol import Response

PROGRAM = "pylink worker"
# Exit statuses.
DONE, ERROR = 0, 1


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Link what a build system asks for, request by request, as Bazel's persistent "
        "workers do. All other arguments are put before those of each request.",
        epilog="Without --persistent_worker, the arguments are those of one link.",
        allow_abbrev=False,
    )
    options.add_argument(
        "--persistent_worker", action="store_true", help="serve requests until standard input ends"
    )
    options.add_argument(
        "--worker_protocol",
        choices=tuple(PROTOCOLS),
        default="proto",
        help="form of requests and responses (default: proto)",
    )
    options.add_argument(
        "--worker_threads",
        type=positive_number,
        metavar="N",
        default=count_cores(),
        help="links at once (default: one for each core)",
    )
    return options


def main(argv: Sequence[str]) -> int:
    """Serve until standard input ends and return 0, or 1 after an invalid request.

    Without --persistent_worker, link once and return the exit status of the link.
    `terminal.running.run` is not for this command, which leaves unknown arguments to the links.
    """
    try:
        arguments, link_arguments = parser().parse_known_args(list(argv))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ERROR
    if not arguments.persistent_worker:
        from pylink.command.cli import TOOL, link_command

        return link_command(
            link_arguments[link_arguments[:1] == ["link"] :], TOOL, owns_process=True
        )
    try:
        protocol = PROTOCOLS[arguments.worker_protocol]()
    except ImportError as error:
        print_error(PROGRAM, f"{error}, or use --worker_protocol=json")
        return ERROR
    # Other code must neither print between responses nor read requests.
    requests, responses = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    with os.fdopen(requests, "rb") as source, os.fdopen(responses, "wb", buffering=0) as sink:
        return serve(protocol, source, sink, link_arguments, arguments.worker_threads)


def serve(
    protocol: Protocol, source: BinaryIO, sink: BinaryIO, argv: Sequence[str], threads: int
) -> int:
    """Link all requests of `source`, and write responses to `sink` in any order.

    `argv` comes before the arguments of each request. Returns the exit status.
    """
    from pylink.worker.requests import Linkers

    writing = threading.Lock()
    errors = sys.stderr

    def reply(response: Response) -> None:
        """Write a whole response, which no other thread's may interrupt."""
        data = protocol.encode(response)
        with writing:
            while data:
                data = data[sink.write(data) :]

    linkers = Linkers(argv, threads, reply)
    try:
        while (request := protocol.read(source)) is not None:
            linkers.submit(request)
    except ProtocolError as error:
        # Links print to `sys.stderr` now, so the message goes to the original standard error.
        print_error(PROGRAM, str(error), errors)
        return ERROR
    finally:
        linkers.finish()
    return DONE

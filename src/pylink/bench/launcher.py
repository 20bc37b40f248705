"""The program of a small process that starts and measures other processes.

The peak memory that Linux reports for a process includes that of the process that forked it, so a
large process cannot measure its own children. Run as a script, this file reads one JSON object per
line, `{"argv": [...], "cwd": path}`, runs the command and answers `{"seconds", "cpu", "rss",
"code", "output", "errors"}`: wall time, processor time of user and system, peak resident bytes,
exit status, standard output, and the end of standard error.
"""

from __future__ import annotations

# `signal` would load more than this program needs.
import _signal  # type: ignore[import-not-found] # not in typeshed
import json
import os
import sys
import time

# Bytes of standard error that are kept; the reason of a failure is at the end.
ERROR_TAIL_SIZE = 1 << 12
# Exit status for a command that cannot be started, as shells have it.
NOT_STARTED = 127


def measure(argv: list[str]) -> dict[str, object]:
    """Run a command and return its times (s), peak memory (bytes), exit status and outputs.

    The exit status is negative if a signal ended the command: it is minus the signal's number. The
    dictionary has only `code` and `errors` if the command cannot be started.
    """
    reader, writer = os.pipe()
    log = os.memfd_create("errors")  # gets standard error
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    signals = [_signal.SIGTERM]
    start = time.perf_counter()
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsigdef=signals)
    except OSError as error:
        os.close(reader)
        os.close(log)
        return {"code": NOT_STARTED, "errors": f"{argv[0]}: {error.strerror}"}
    finally:
        os.close(writer)
    with open(reader, "rb") as stream:
        output = stream.read()
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    with open(log, "rb") as stream:
        stream.seek(max(stream.seek(0, os.SEEK_END) - ERROR_TAIL_SIZE, 0))
        text = stream.read().decode(errors="replace").strip()
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss * 1024,  # from KiB
        "code": os.waitstatus_to_exitcode(status),
        "output": output.decode(errors="replace"),
        "errors": text,
    }


def serve() -> None:
    """Answer requests until standard input ends.

    A signal that ends the measurement is sent to the whole process group. This process ignores it,
    so it ends only after the measured process, and waiting for this process is enough.
    """
    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["cwd"])
        sys.stdout.write(json.dumps(measure(request["argv"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()

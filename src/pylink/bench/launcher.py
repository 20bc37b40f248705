"""The program of a small process that starts the measured ones.

The peak memory that Linux reports for a process counts that of the process it was forked from, so
a large process cannot measure what it starts itself. Run as a script, this file reads one JSON
object per line, `{"argv": [...], "cwd": path}`, runs that and answers `{"seconds", "cpu", "rss",
"code", "output", "said"}`: wall time from start to end, processor time of user and system, peak
resident bytes, exit status, standard output, and the end of what it wrote to standard error.
"""

from __future__ import annotations

# Not `signal`, which loads more than this program needs.
import _signal  # type: ignore[import-not-found] # not in typeshed
import json
import os
import sys
import time

# Bytes of standard error that are kept: the reason stands at the end.
SAID = 1 << 12


def measure(argv: list[str]) -> dict[str, object]:
    """Run one command with its standard output in a pipe and its errors in a file of memory."""
    reader, writer = os.pipe()
    log = os.memfd_create("said")
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    signals = [_signal.SIGTERM]
    start = time.perf_counter()
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsigdef=signals)
    except OSError as error:
        os.close(reader)
        os.close(log)
        return {"code": 127, "said": f"{argv[0]}: {error.strerror}"}
    finally:
        os.close(writer)
    with open(reader, "rb") as stream:
        output = stream.read()
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    with open(log, "rb") as errors:
        errors.seek(max(errors.seek(0, os.SEEK_END) - SAID, 0))
        text = errors.read().decode(errors="replace").strip()
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss * 1024,
        "code": os.waitstatus_to_exitcode(status),
        "output": output.decode(errors="replace"),
        "said": text,
    }


def serve() -> None:
    """Answer requests until standard input ends.

    A signal that ends the measurement goes to the whole process group. This process outlives it
    until the measured one has ended, so that a process that waits for this one waits for that as
    well.
    """
    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["cwd"])
        sys.stdout.write(json.dumps(measure(request["argv"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()

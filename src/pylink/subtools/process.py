"""Starting programs: every process of another program that pylink starts begins here.

`Run` is a program that works for pylink on data in memory, bounded in time and output (`runner.py`
has several at once). It reads one input and writes one output, both anonymous files that it reaches
through `/proc/self/fd`. No path exists, so nothing is left over, not even when pylink itself is
killed. What it prints comes through a pipe and is counted as it arrives. It has a process group of
its own, so that what it started ends with it.

`run_in_front` is for a program that takes the place of pylink before the user, `start_helper` for
one that is asked again and again.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import time

from pylink.subtools.environment import search_path
from pylink.timing import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.timing import Moment

# More than any message of a compiler is a program out of control.
LOG_LIMIT = 1 << 24

# So is a cubin beyond this; in memory it takes twice as much for a moment.
RESULT_LIMIT = 1 << 30

_TOO_LARGE = "made a result that is too large and was stopped"

# Descriptors below this one are the standard streams'.
FIRST_FREE = 3


class Command:
    """A program by its absolute path, its arguments, and the bytes of its input, None for none.

    It is called as `ARGV... INPUT -o OUTPUT`; one that `prints` as `ARGV... INPUT`, and has no
    other result than what it prints, `limit` bytes at most. It runs in `folder` (default: that of
    this process). What it writes to standard error counts as printed unless `drops_errors`.
    """

    __slots__ = ("argv", "data", "drops_errors", "folder", "limit", "prints")

    def __init__(
        self,
        argv: Sequence[str],
        data: bytes | None,
        *,
        prints: bool = False,
        limit: int | None = None,
        folder: str | None = None,
        drops_errors: bool = False,
    ) -> None:
        self.argv = argv
        self.data = data
        self.folder = folder
        self.drops_errors = drops_errors
        self.prints = prints
        self.limit = LOG_LIMIT if limit is None else limit


class Outcome:
    """How a run ended: `failure` says what went wrong, None after success.

    `is_late` says that it was stopped at the end of its time. `printed` is what the program wrote
    to its streams, `input` and `output` the paths by which
    it knew its files. `elapsed` is its milliseconds of wall time; where programs ran side by side,
    each of them has its part of the time that they shared, so that all together took their sum.
    """

    __slots__ = ("data", "elapsed", "failure", "input", "is_late", "output", "printed", "status")

    def __init__(self, failure: str | None = None) -> None:
        self.data = b""
        self.elapsed = 0.0
        self.failure = failure
        self.input = ""
        self.is_late = False
        self.output = ""
        self.printed = b""
        self.status: int | None = None

    @property
    def log(self) -> str:
        """What was printed, as text."""
        return self.printed.decode("utf-8", "replace")


class Run:
    """One started program with its files."""

    __slots__ = (
        "command",
        "deadline",
        "files",
        "outcome",
        "pipe",
        "printed",
        "process",
        "result",
        "start",
    )

    def __init__(self, command: Command, timeout: float) -> None:
        """Start it; OSError when that cannot be done."""
        self.command = command
        self.files: list[int] = []
        self.outcome = Outcome()
        self.printed = bytearray()
        self.result: int | None = None
        try:
            argv, passed = [*command.argv], []
            if command.data is not None:
                passed.append(self._file("input"))
                _write(passed[-1], command.data)
                self.outcome.input = f"/proc/self/fd/{passed[-1]}"
                argv.append(self.outcome.input)
            if not command.prints:
                self.result = self._file("output")
                passed.append(self.result)
                self.outcome.output = f"/proc/self/fd/{self.result}"
                argv += ["-o", self.outcome.output]
            self.pipe, log = os.pipe2(os.O_CLOEXEC)
            self.files += [self.pipe, log]
            os.set_blocking(self.pipe, False)
            self.start: Moment = now()
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.DEVNULL if command.drops_errors else log,
                cwd=command.folder,
                pass_fds=passed,
                env={**os.environ, "PATH": search_path()},
                start_new_session=True,
            )
            self.files.remove(log)
            os.close(log)
        except BaseException:
            self.close()
            raise
        limit_files(self.process.pid)
        self.deadline = time.monotonic() + timeout if timeout else float("inf")

    def _file(self, name: str) -> int:
        self.files.append(anonymous_file(f"pylink-{name}"))
        return self.files[-1]

    def ended(self) -> bool:
        """Whether the program is no longer running; one that exceeds a limit is stopped."""
        outcome = self.outcome
        # It is not reaped yet: nothing else can have its number before its group is gone.
        running = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        is_whole = self.read()
        if not is_whole:
            outcome.failure = f"printed more than {self.command.limit} bytes and was stopped"
        elif self.result is not None and os.fstat(self.result).st_size >= RESULT_LIMIT:
            outcome.failure = _TOO_LARGE
        elif running is None:
            if time.monotonic() <= self.deadline:
                return False
            outcome.failure = "did not end in time and was stopped; see --tool-timeout"
            outcome.is_late = True
        self.kill()
        status = self.process.returncode
        if outcome.failure is None:
            outcome.status = status
            if status == -signal.SIGXFSZ:
                outcome.failure = _TOO_LARGE
            elif status < 0:
                outcome.failure = f"was killed by signal {-status}"
            elif status > 0:
                outcome.failure = f"ended with status {status}"
        outcome.printed = bytes(self.printed)
        if self.result is not None and outcome.failure is None:
            outcome.data = _read(self.result)
            if not outcome.data:
                outcome.failure = "ended without a result"
        return True

    def read(self) -> bool:
        """Take over what was printed; False when that is more than the limit."""
        while True:
            room = self.command.limit - len(self.printed)
            try:
                chunk = os.read(self.pipe, min(room + 1, 1 << 16))
            except BlockingIOError:
                return True
            if not chunk:
                return True
            self.printed += chunk[:room]
            if len(chunk) > room:
                return False

    def signal(self) -> None:
        """Have the program end, and all that it started and that stayed in its process group."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the program and wait for that."""
        self.signal()
        self.process.wait()

    def close(self) -> None:
        while self.files:
            os.close(self.files.pop())


def run_in_front(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """The exit status of a program that has the streams of this process; OSError without a start.

    `environment` is that of this process by default. The program ends with an exception here.
    """
    return subprocess.call(argv, env=environment)


def start_helper(
    argv: Sequence[str],
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    is_asked: bool = True,
) -> subprocess.Popen[str]:
    """Start a program that answers on standard output, and reads there what it `is_asked`.

    It leads a session: an interrupt of the terminal is for this process, which ends the program.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment,
        text=True,
        start_new_session=True,
    )


def ends_within(helper: subprocess.Popen[str], seconds: float | None) -> bool:
    """Close the streams of a helper and wait for its end; False where it takes longer."""
    try:
        helper.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def anonymous_file(name: str) -> int:
    """The descriptor of a new file in memory, never one of the standard streams' numbers.

    Where such a stream is closed, its number is the next to be given out, and the program that is
    started has a stream of its own there.
    """
    descriptor = os.memfd_create(name)
    if descriptor >= FIRST_FREE:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    finally:
        os.close(descriptor)


def limit_files(process: int) -> None:
    """Keep a process from writing files beyond the limit of results, in between two looks."""
    try:
        _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
        soft = RESULT_LIMIT if most == resource.RLIM_INFINITY else min(RESULT_LIMIT, most)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, most))
    except (OSError, ValueError):
        return  # it has ended, or has another user's rights: looking is all that is left


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    chunks = []
    offset = 0
    while offset < size:
        chunk = os.pread(descriptor, size - offset, offset)
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)

"""Starts programs: all processes of other programs begin here.

`ToolProcess` runs a program on data in memory, with limits of time and output (`runner.py` runs
several at once). The program reads one input and writes one output, both anonymous files that it
reaches through `/proc/self/fd`. They have no path, so none remains, even if pylink itself is
killed. Printed output comes through a pipe and is counted as it arrives. The program has a process
group of its own, so that its children end with it.

`run_attached` runs a program with the streams of pylink, `start_helper` one that answers many
requests.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import time

from pylink.files.atomic import write_all
from pylink.subtools.environment import search_path
from pylink.timing import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.timing import Moment

# Bytes of printed output: more than any compiler prints. A program that exceeds it is stopped.
LOG_LIMIT = 1 << 24

# Bytes of a result, of which memory holds two copies for a moment. A program that exceeds it is
# stopped.
RESULT_LIMIT = 1 << 30

_TOO_LARGE = "made a result that is too large and was stopped"

# Numbers of descriptors below this one are those of the standard streams.
FIRST_FREE = 3


class Command:
    """A program (absolute path), its arguments, and the bytes of its input or None.

    It is called as `ARGV... INPUT -o OUTPUT`. If it `prints`, it is called as `ARGV... INPUT`, and
    its result is the printed output, at most `limit` bytes. It runs in `directory` (default: the
    working directory). Standard error is part of the output unless `drops_errors`.
    """

    __slots__ = ("argv", "data", "directory", "drops_errors", "limit", "prints")

    def __init__(
        self,
        argv: Sequence[str],
        data: bytes | None,
        *,
        prints: bool = False,
        limit: int | None = None,
        directory: str | None = None,
        drops_errors: bool = False,
    ) -> None:
        self.argv = argv
        self.data = data
        self.directory = directory
        self.drops_errors = drops_errors
        self.prints = prints
        self.limit = LOG_LIMIT if limit is None else limit


class Outcome:
    """The outcome of a run: `failure` is the reason of a failure, None after success.

    `data` is the result file's contents, `printed` the printed output. `status` is the exit status,
    or -N after signal N; None if the program was stopped or not started. `is_late` is True if it
    was stopped at its time limit. `input` and `output` are the paths that it was given. `elapsed`
    is wall time in milliseconds; programs that ran side by side share it, so that their sum is the
    time of all.
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
        """The printed output as text."""
        return self.printed.decode("utf-8", "replace")


class ToolProcess:
    """One started program with its files.

    `files` are the descriptors that `close` closes: those of the input, of `result` and of `pipe`.
    The program writes its output to `result` (None if it prints it), and what it prints is read
    from `pipe`. `start` is a Moment, `deadline` a time of `time.monotonic`.
    """

    __slots__ = (
        "command", "deadline", "files", "outcome", "pipe", "printed", "process", "result", "start",
    )  # fmt: skip

    def __init__(self, command: Command, timeout: float) -> None:
        """Start the program; OSError if that fails."""
        self.command = command
        self.files: list[int] = []
        self.outcome = Outcome()
        self.printed = bytearray()
        self.result: int | None = None
        try:
            argv, passed_files = [*command.argv], []
            if command.data is not None:
                passed_files.append(self._create_file("input"))
                write_all(passed_files[-1], command.data)
                self.outcome.input = f"/proc/self/fd/{passed_files[-1]}"
                argv.append(self.outcome.input)
            if not command.prints:
                self.result = self._create_file("output")
                passed_files.append(self.result)
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
                cwd=command.directory,
                pass_fds=passed_files,
                env={**os.environ, "PATH": search_path()},
                start_new_session=True,
            )
            self.files.remove(log)
            os.close(log)
        except BaseException:
            self.close()
            raise
        _limit_file_size(self.process.pid)
        self.deadline = time.monotonic() + timeout if timeout else float("inf")

    def _create_file(self, name: str) -> int:
        """Create a file in memory that `close` closes, and return its descriptor."""
        self.files.append(_anonymous_file(f"pylink-{name}"))
        return self.files[-1]

    def has_ended(self) -> bool:
        """Return whether the program has ended; first stop it if it exceeds a limit.

        If it has ended, `outcome` is complete.
        """
        outcome = self.outcome
        # WNOWAIT keeps the process number until its group has been killed, so it cannot be reused.
        running = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        is_within_limit = self.read()
        if not is_within_limit:
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
            outcome.data = _read_all(self.result)
            if not outcome.data:
                outcome.failure = "ended without a result"
        return True

    def read(self) -> bool:
        """Read what was printed up to now; False if it exceeds the limit."""
        while True:
            remaining = self.command.limit - len(self.printed)
            try:
                chunk = os.read(self.pipe, min(remaining + 1, 1 << 16))
            except BlockingIOError:
                return True
            if not chunk:
                return True
            self.printed += chunk[:remaining]
            if len(chunk) > remaining:
                return False

    def send_kill(self) -> None:
        """Kill the program and its process group, without waiting."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the program and wait for its end."""
        self.send_kill()
        self.process.wait()

    def close(self) -> None:
        while self.files:
            os.close(self.files.pop())


def run_attached(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program with the streams of this process; return its exit status, or raise OSError.

    `environment` is by default that of this process. The program is killed if an exception, such as
    an interrupt, is raised meanwhile.
    """
    return subprocess.call(argv, env=environment)


def start_helper(
    argv: Sequence[str],
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    reads_input: bool = True,
) -> subprocess.Popen[str]:
    """Start a program that answers on standard output; with `reads_input` it reads standard input.

    The program leads a session of its own: an interrupt from the terminal reaches only this
    process, which must end the program.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if reads_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=directory,
        env=environment,
        text=True,
        start_new_session=True,
    )


def ends_within(helper: subprocess.Popen[str], seconds: float | None) -> bool:
    """Close the streams of a helper and wait for its end; False if that takes longer.

    With None in place of `seconds`, wait as long as it takes.
    """
    try:
        helper.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _anonymous_file(name: str) -> int:
    """Create a file in memory; its descriptor is never the number of a standard stream.

    The system would assign the number of a closed stream, which the started program uses itself.
    """
    descriptor = os.memfd_create(name)
    if descriptor >= FIRST_FREE:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    finally:
        os.close(descriptor)


def _limit_file_size(process: int) -> None:
    """Limit the size of files that a process writes: `has_ended` checks it only now and then.
    `process` is its number.
    """
    try:
        _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
        soft = RESULT_LIMIT if hard == resource.RLIM_INFINITY else min(RESULT_LIMIT, hard)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))
    except (OSError, ValueError):
        return  # it has ended, or has another user's rights


def _read_all(descriptor: int) -> bytes:
    """Return all bytes of a file from its start; the descriptor's offset stays."""
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

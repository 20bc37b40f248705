"""Running programs: results in order, every way to fail, and nothing left behind."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.fake_tool import fake_tool

from pylink.subtools import process, runner
from pylink.subtools.process import ends_within, run_attached, start_helper
from pylink.subtools.runner import Command, output_of, run_all

COPY = 'cat "$in" > "$out"'


def failure(tool: Path, timeout: float = 60) -> str | None:
    (outcome,) = run_all([Command([str(tool)], b"in")], timeout=timeout)
    return outcome.failure


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_results_come_in_the_order_of_the_commands(tmp_path: Path) -> None:
    slow = fake_tool(tmp_path / "slow", f"sleep 0.2; {COPY}; echo slow >&2")
    fast = fake_tool(tmp_path / "fast", f"{COPY}; echo fast; echo $1")
    commands = [Command([str(slow)], b"1"), Command([str(fast), "word"], bytes(100_000))]
    first, second = run_all(commands * 3, timeout=60)[2:4]
    assert (first.data, first.log, first.failure) == (b"1", "slow\n", None)
    assert (second.data, second.log, second.failure) == (bytes(100_000), "fast\nword\n", None)
    assert first.elapsed > 0


def test_programs_have_nothing_to_read_but_their_input(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", 'readlink /proc/$$/fd/0 > "$out"')
    mine = os.dup(0)
    reading, writing = os.pipe()
    try:
        os.dup2(reading, 0)
        (outcome,) = run_all([Command([str(tool)], b"in")], timeout=60)
    finally:
        os.dup2(mine, 0)
        for descriptor in (mine, reading, writing):
            os.close(descriptor)
    assert outcome.data == b"/dev/null\n"


def test_no_more_at_once_than_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_THREADS", "2")
    running = tmp_path / "running"
    running.mkdir()
    tool = fake_tool(
        tmp_path / "tool", f'd={running}; touch $d/$$; ls $d | wc -l > "$out"; sleep 0.05; rm $d/$$'
    )
    outcomes = run_all([Command([str(tool)], b"")] * 8, timeout=60)
    assert {int(outcome.data) for outcome in outcomes} <= {1, 2}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exit 3", "ended with status 3"),
        ("kill -SEGV $$", "was killed by signal 11"),
        ("exit 0", "ended without a result"),
    ],
)
def test_failures(body: str, reason: str, tmp_path: Path) -> None:
    assert failure(fake_tool(tmp_path / "tool", body)) == reason


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    assert failure(tmp_path / "missing") == "cannot be started: No such file or directory"
    assert failure(tmp_path) == "cannot be started: Permission denied"
    tool = tmp_path / "tool"
    tool.write_bytes(b"\x00\x01 no program")
    tool.chmod(0o755)
    assert failure(tool) == "cannot be started: Exec format error"
    assert str(failure(tmp_path / "a\0b")).startswith("cannot be started: ")


def test_a_hanging_program_is_stopped(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    start = time.monotonic()
    reason = failure(tool, timeout=0.3)
    assert reason == "did not end in time and was stopped; see --tool-timeout"
    assert time.monotonic() - start < 30
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_program_that_prints_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LOG_LIMIT", 10_000)
    reason = failure(fake_tool(tmp_path / "tool", "exec yes"))
    assert reason == "printed more than 10000 bytes and was stopped"


def test_what_is_printed_is_counted_as_it_arrives(tmp_path: Path) -> None:
    """As fast as it comes: nothing beyond the limit is kept, in memory or in a file."""
    tool = fake_tool(tmp_path / "tool", "exec yes")
    (outcome,) = run_all([Command([str(tool)], b"in", limit=1000)], timeout=60)
    assert (outcome.failure, len(outcome.printed)) == (
        "printed more than 1000 bytes and was stopped",
        1000,
    )
    exact = fake_tool(tmp_path / "exact", f"head -c 1000 /dev/zero; {COPY}")
    (outcome,) = run_all([Command([str(exact)], b"in", limit=1000)], timeout=60)
    assert (outcome.failure, len(outcome.printed)) == (None, 1000)


@pytest.mark.parametrize("body", ['exec cat /dev/zero > "$out"', 'exec truncate -s 4G "$out"'])
def test_a_result_without_end_is_stopped(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "RESULT_LIMIT", 1 << 20)
    reason = failure(fake_tool(tmp_path / "tool", body))
    assert reason == "made a result that is too large and was stopped"


def test_programs_that_only_print(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", 'echo "$@"; cat "$out"; echo fine >&2')
    (outcome,) = run_all([Command([str(tool), "word"], b"in ", prints=True)], timeout=60)
    words, _, rest = outcome.log.partition("\n")
    assert (outcome.failure, words, rest) == (None, f"word {outcome.input}", "in fine\n")
    (outcome,) = run_all([Command(["/bin/echo", "alone"], None, prints=True)], timeout=60)
    assert (outcome.failure, outcome.printed, outcome.input) == (None, b"alone\n", "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"sleep 60 & echo $! > {{folder}}/pid; {COPY}", None),
        ("sleep 60 & echo $! > {folder}/pid; exit 3", "ended with status 3"),
        (
            "sleep 60 & echo $! > {folder}/pid; exec sleep 60",
            "did not end in time and was stopped; see --tool-timeout",
        ),
        (
            "sleep 60 & echo $! > {folder}/pid; exec yes",
            f"printed more than {process.LOG_LIMIT} bytes and was stopped",
        ),
    ],
)
def test_what_a_program_started_ends_with_it(body: str, reason: str | None, tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", body.format(folder=tmp_path))
    start = time.monotonic()
    assert failure(tool, timeout=2) == reason
    assert time.monotonic() - start < 30
    child = int((tmp_path / "pid").read_text())
    while is_running(child):
        assert time.monotonic() - start < 30
        time.sleep(0.01)


def test_streams_that_are_closed_early_cost_no_time(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", f"exec >&- 2>&-; sleep 0.5; {COPY}")
    before = time.process_time()
    assert failure(tool) is None
    assert time.process_time() - before < 0.4


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    before = open_files()
    for body in (COPY, "exit 1"):
        tool = fake_tool(tmp_path / "tool", body)
        run_all([Command([str(tool)], b"in")] * 3, timeout=60)
    failure(tmp_path / "missing")
    assert open_files() == before
    assert list(folder.iterdir()) == []


def test_an_exception_ends_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = fake_tool(tmp_path / "tool", f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def interrupt(running: Sequence[process.ToolProcess]) -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise KeyboardInterrupt

    before = open_files()
    monkeypatch.setattr(runner, "wait_for_output", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_all([Command([str(tool)], b"")], timeout=60)
    assert not is_running(int((tmp_path / "pid").read_text()))
    assert open_files() == before


# The thread is also the first that loads `threading`, which takes it for the main thread.
IN_A_THREAD = """
import _thread, sys
sys.path[:0] = {path!r}
ended = _thread.allocate_lock()
ended.acquire()

def run():
    from pylink.subtools.runner import output_of
    print(output_of(["echo", "said"], timeout=60))
    ended.release()

_thread.start_new_thread(run, ())
ended.acquire()
"""


def test_programs_run_in_a_thread_that_the_standard_library_does_not_know() -> None:
    """As links side by side run compilers: signals have handlers in the main thread only."""
    code = IN_A_THREAD.format(path=sys.path)
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "said\n\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_pylink_ends_what_runs(number: int, tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    # A parent such as nohup may have this process ignore the signal.
    code = f"import signal, sys; signal.signal({number:d}, signal.SIG_DFL); "
    code += (
        "from pylink.subtools.runner import *; run_all([Command([sys.argv[1]], b'')], timeout=60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tool)])
    deadline = time.monotonic() + 30
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    parent.send_signal(number)
    assert parent.wait(30) == -number
    child = int((tmp_path / "pid").read_text())
    while is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_handlers_of_the_caller_stay(tmp_path: Path) -> None:
    def mine(number: int, frame: object) -> None:
        """Never called."""

    tool = fake_tool(tmp_path / "tool", COPY)
    earlier = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    try:
        for handler in (mine, signal.SIG_IGN, signal.SIG_DFL):
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, handler)
            run_all([Command([str(tool)], b"in")], timeout=60)
            assert signal.getsignal(signal.SIGTERM) is handler
            assert signal.getsignal(signal.SIGHUP) is handler
    finally:
        signal.signal(signal.SIGTERM, earlier[0])
        signal.signal(signal.SIGHUP, earlier[1])


def test_an_answer_is_what_a_program_prints_to_standard_output(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path / "tool", "echo 13.2; echo a warning >&2")
    assert output_of([str(tool)], timeout=60) == "13.2\n"
    failing = fake_tool(tmp_path / "failing", "echo 13.2; exit 1")
    late = fake_tool(tmp_path / "late", "echo 13.2; sleep 60")
    for words, seconds in (([str(failing)], 60.0), ([str(late)], 0.2), (["/no/such"], 60.0)):
        assert output_of(words, timeout=seconds) == ""


def test_only_a_program_that_was_stopped_at_the_end_of_its_time_is_late(tmp_path: Path) -> None:
    late = fake_tool(tmp_path / "late", "sleep 60")
    failing = fake_tool(tmp_path / "failing", "exit 1")
    for tool, is_late in ((late, True), (failing, False)):
        (outcome,) = run_all([Command([str(tool)], b"in")], timeout=0.2 if is_late else 60)
        assert (outcome.is_late, outcome.failure is not None) == (is_late, True)


def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    command = Command(["/bin/pwd"], None, prints=True, directory=str(tmp_path))
    (outcome,) = run_all([command], timeout=60)
    assert outcome.log == f"{tmp_path}\n"


def test_a_program_in_front_has_the_streams_and_the_environment(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = fake_tool(tmp_path / "tool", 'echo "$WORD"; echo error >&2; exit 3')
    assert run_attached([str(tool)], {**os.environ, "WORD": "word"}) == 3
    assert capfd.readouterr() == ("word\n", "error\n")
    with pytest.raises(FileNotFoundError):
        run_attached([str(tmp_path / "none")])


def test_a_helper_answers_until_its_input_ends(tmp_path: Path) -> None:
    helper = start_helper(["/bin/cat"], str(tmp_path))
    assert helper.stdin is not None
    assert helper.stdout is not None
    helper.stdin.write("question\n")
    helper.stdin.flush()
    assert helper.stdout.readline() == "question\n"
    assert os.getsid(helper.pid) == helper.pid
    assert ends_within(helper, 60)
    stuck = start_helper(["/bin/sleep", "60"], reads_input=False)
    assert not ends_within(stuck, 0.1)
    stuck.kill()
    assert ends_within(stuck, None)


# Who starts a process otherwise, and why.
OWN_STARTS = {
    "subtools/process.py": "what all others ask",
    "subtools/worker.py": "goes on as itself, at fixed addresses",
    "startup/bundle.py": "at the end of a link, which has loaded no module for this",
    "serve/signals.py": "restores a mask of signals, which the module subprocess cannot",
    "bench/launcher.py": "a program whose memory would count if it loaded more",
}
STARTS = {"Popen", "call", "check_call", "check_output", "getoutput", "popen", "system"}


def starts(text: str) -> set[str]:
    """What a source uses of the system's ways to start a program."""
    return {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if (node.value.id == "subprocess" and node.attr in STARTS | {"run"})
        or (node.value.id == "os" and node.attr in STARTS)
        or (node.value.id == "os" and node.attr.startswith(("exec", "spawn", "posix_spawn")))
    }


def test_programs_are_started_in_one_place() -> None:
    assert starts("import os, subprocess\nsubprocess.run([])\nos.execv('', [])") == {"run", "execv"}
    package = Path(process.__file__).parents[1]
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if starts(path.read_text(encoding="utf-8"))
    }
    assert found == set(OWN_STARTS)

"""The process that links, from outside: started again when it ended, stopped when it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from fuzz import verdict
from fuzz.jobs import Job

CRASH, HANG = "crash", "hang"
SECONDS = 120  # that one link may take, with sanitizers on a busy machine
MOST_TEXT = 20_000

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:max_allocation_size_mb=4096:allocator_may_return_null=1:"
    "hard_rss_limit_mb=6000",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # Objects of Python are then watched as well.
    "PYTHONMALLOC": "malloc",
}


class Process:
    """A worker in a folder of its own; `sanitized` is the build with sanitizers, None for ours."""

    def __init__(self, folder: Path, sanitized: Path | None = None) -> None:
        self.folder = folder
        self.sanitized = sanitized
        self.process: subprocess.Popen[str] | None = None

    def ask(self, job: Job) -> dict[str, Any]:
        """The worker's answer, or a crash or hang with what was on standard error."""
        process = self.process or self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(job.to_json()) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self.crashed()
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if not ready:
            self.stop()
            return {"state": HANG, "text": f"no answer within {SECONDS} seconds"}
        return self.crashed()

    def crashed(self) -> dict[str, Any]:
        """What became of a worker that ended by itself."""
        assert self.process is not None
        code = self.process.wait()
        self.stop()
        said = (self.folder / "stderr").read_text(errors="replace")
        return {"state": CRASH, "text": said[-MOST_TEXT:] or f"ended with status {code}"}

    def start(self) -> subprocess.Popen[str]:
        environment = dict(os.environ)
        places = sys.path
        if self.sanitized is not None:
            environment |= {**SANITIZERS, "LD_PRELOAD": _library()}
            places = [str(self.sanitized), *sys.path]
        environment["PYTHONPATH"] = os.pathsep.join(places)
        with (self.folder / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):  # what was not written any more
                    stream.close()
            self.process = None


def _library() -> str:
    """Where the compiler has the sanitizer, which has to be loaded before Python."""
    asked = ["gcc", "-print-file-name=libasan.so"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def crash_kind(text: str) -> str:
    """The sanitizer's words and the innermost function of ours, or the last line."""
    lines = text.splitlines()
    error = next((line for line in lines if "ERROR: " in line or "runtime error: " in line), "")
    frame = next((line for line in lines if "/_native/" in line or "__pyx" in line), "")
    word = verdict.kind_of(error.partition(": ")[2] or (lines[-1] if lines else ""))
    return f"{word} {frame.strip().partition(' in ')[2].split(' ')[0]}"

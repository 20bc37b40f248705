"""Run one step of make: print its title and its duration, and its output only if it fails.

    python scripts/step.py "building the native code" COMMAND [ARGUMENT]...

The exit status is the command's. With VERBOSE=1 in the environment its output is shown as it comes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time


def run(title: str, command: list[str]) -> int:
    """Run a command under a title, and return its exit status; its output is shown if it fails."""
    if os.environ.get("VERBOSE") == "1":
        print(f"{title}: {' '.join(command)}", flush=True)
        return subprocess.run(command, check=False).returncode
    print(f"{title} ...", end="", flush=True)
    start = time.monotonic()
    # In a file, not a pipe: it holds any amount of output, also that of an interrupted command.
    with tempfile.TemporaryFile() as output:
        try:
            status = subprocess.run(
                command, check=False, stdout=output, stderr=subprocess.STDOUT
            ).returncode
        except OSError as error:
            print(f" failed\n{command[0]}: {error.strerror}", flush=True)
            return 127
        if status == 0:
            print(f" {time.monotonic() - start:.0f} s", flush=True)
            return 0
        print(f" failed with exit status {status}:", flush=True)
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    print("+ " + " ".join(command), flush=True)
    return status if status > 0 else 128 - status


if __name__ == "__main__":
    try:
        raise SystemExit(run(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None

"""Write constraints.txt: the versions of all packages that make installs, with their hashes.

    make constraints

Chosen by uv for every version of Python that pyproject.toml allows, as the newest of today. Run it,
then `make test`; what a new version broke is then part of one change.
"""

from __future__ import annotations

import datetime
import subprocess
import sys

from install import ROOT

EXTRAS = ("build", "test", "oracle", "cuda", "constraints")


def main() -> None:
    """Have uv choose, and put the day in front."""
    target = ROOT / "constraints.txt"
    today = datetime.datetime.now(datetime.timezone.utc).date()
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet"]
    command += ["--universal", "--python-version", "3.10", "--generate-hashes", "--no-header"]
    command += ["--upgrade", *(word for extra in EXTRAS for word in ("--extra", extra))]
    chosen = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    target.write_text(
        f"# Recorded on {today} by `make constraints`; what make installs. Do not edit.\n{chosen}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

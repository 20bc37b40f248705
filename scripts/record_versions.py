"""Write constraints.txt: the versions of all packages that make installs, with their hashes.

    make constraints

uv chooses the newest versions of today, for every version of Python that pyproject.toml allows.
Run `make test` afterwards, so that repairs for new versions are part of the same change.
"""

from __future__ import annotations

import datetime
import subprocess
import sys

from install import ROOT

EXTRAS = ("build", "test", "oracle", "cuda", "constraints")


def main() -> None:
    """Let uv choose the versions, and write them with the date in front."""
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

"""Link the demo's cubins with the pylink that is installed, and compare with nvlink's result.

    python scripts/check_installed.py

The tool note, which says what linked, is left out of the comparison. Exit status 1 when anything
differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).resolve().parents[1] / "demo"


def main() -> int:
    os.chdir("/")  # or the checkout's pylink would be what is imported
    import pylink  # noqa: PLC0415 -- from there
    from pylink.inspect.compare import Ignore, differences  # noqa: PLC0415 -- from there
    from pylink.inspect.image import Image  # noqa: PLC0415 -- from there

    print(f"pylink {pylink.__version__} of {Path(pylink.__file__).parent}")
    wrong = 0
    for expected in sorted((DEMO / "linked").glob("*.cubin")):
        arch = expected.stem
        names = [str(path) for path in sorted((DEMO / "cubins" / arch).glob("*.cubin"))]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "linked.cubin"
            command = [sys.executable, "-m", "pylink", f"-arch={arch}", "--merc-dedup=off"]
            subprocess.run([*command, *names, "-o", str(output)], check=True)
            ignore = Ignore(tool_note=True, scoreboards=arch != "sm_90a")
            found = differences(Image(output.read_bytes()), Image(expected.read_bytes()), ignore)
        print(f"{arch}: {len(names)} cubins, {'differs' if found else 'equal'}")
        wrong += bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Link the demo's cubins with the pylink that is installed, and compare with nvlink's result.

    python scripts/check_installed.py

The comparison ignores the tool note, which names the linker, and from sm_100 on scoreboard bits of
instructions. The exit status is 1 if anything else differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).resolve().parents[1] / "demo"


def main() -> int:
    os.chdir("/")  # in the checkout, its own pylink would be imported
    import pylink  # noqa: PLC0415 -- from there
    from pylink.inspect.compare import Ignore, differences  # noqa: PLC0415 -- from there
    from pylink.inspect.image import Image  # noqa: PLC0415 -- from there

    print(f"pylink {pylink.__version__} of {Path(pylink.__file__).parent}")
    different_count = 0
    for expected in sorted((DEMO / "linked").glob("*.cubin")):
        arch = expected.stem
        names = [str(path) for path in sorted((DEMO / "cubins" / arch).glob("*.cubin"))]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "linked.cubin"
            command = [sys.executable, "-m", "pylink", f"-arch={arch}", "--merc-dedup=off"]
            subprocess.run([*command, *names, "-o", str(output)], check=True)
            ignore = Ignore(tool_note=True, scoreboards=arch != "sm_90a")
            differing = differences(
                Image(output.read_bytes()), Image(expected.read_bytes()), ignore
            )
        print(f"{arch}: {len(names)} cubins, {'differs' if differing else 'equal'}")
        different_count += bool(differing)
    return 1 if different_count else 0


if __name__ == "__main__":
    sys.exit(main())

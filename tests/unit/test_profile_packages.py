"""A profile whose packages are missing is refused before anything is linked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from helpers.cubin_builder import one_kernel

PROGRAM = """
import sys
sys.modules["google.protobuf"] = None
from pylink.command.cli import main
sys.exit(main(["-arch=sm_80", "a.cubin", "-o", "out.cubin", "--profile", "out.ncu-rep"]))
"""


def test_what_to_install_is_said_before_the_link(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "pylink fatal   : Making the profile 'out.ncu-rep' failed: "
        "this needs the package protobuf: pip install 'pylink-cuda[report]'\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["a.cubin"]

"""What an installed pylink consists of."""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import pylink

PACKAGE = Path(pylink.__file__).parent


def test_public_names() -> None:
    assert set(pylink.__all__) <= set(dir(pylink))
    for name in pylink.__all__:
        assert getattr(pylink, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        getattr(pylink, "missing")  # noqa: B009 -- mypy knows that there is none


def test_version_is_that_of_the_distribution() -> None:
    assert pylink.__version__ == importlib.metadata.version("pylink")


def test_package_needs_decompressors_alone_at_run_time() -> None:
    """Host objects are compressed unless nvcc is told otherwise; all else is an extra."""
    requirements = importlib.metadata.requires("pylink") or []
    needed = [one.partition(">")[0] for one in requirements if "extra ==" not in one]
    assert sorted(needed) == ["lz4", "zstandard"]


def test_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_installed_script_is_plain() -> None:
    script = shutil.which("pylink", path=sysconfig.get_path("scripts"))
    assert script is not None
    lines = (PACKAGE.parents[1] / "scripts" / "pylink").read_text().splitlines()
    assert [line for line in lines if line.startswith(("import", "from"))] == [
        "from pylink.command.program import run",
    ]
    done = subprocess.run([script, "-bogus"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "pylink fatal   : Unknown option 'bogus'\n")

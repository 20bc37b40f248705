"""Other programs that some tests run; a test that is skipped says what to install.

`.ci/clients` installs all of them, and `helpers.skips` then lets none be skipped.
"""

from __future__ import annotations

import shutil

import pytest

needs_cmake = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")),
    reason="needs cmake and ninja: apt install cmake ninja-build",
)

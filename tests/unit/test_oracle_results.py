"""What the tests believe that nvlink wrote, when a signal ends it while it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle


@pytest.mark.parametrize(
    ("end", "image"),
    [("exit 0", b"x"), ("exit 1", b"x"), ("kill -SEGV $$", None)],
    ids=["success", "failure", "signal"],
)
def test_file_of_a_linker_that_a_signal_ended_is_no_image(
    end: str, image: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a crash leaves a file depends on what was in memory; no test may depend on that."""
    nvlink = tmp_path / "nvlink"
    nvlink.write_text(f"#!/bin/sh\nprintf x >out\n{end}\n", encoding="ascii")
    nvlink.chmod(0o755)
    monkeypatch.setattr(oracle, "toolchain", lambda: oracle.Toolchain(tmp_path))
    assert oracle.run_nvlink([], tmp_path, "out").image == image

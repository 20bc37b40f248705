"""Links started with standard streams closed, whose numbers are then given to other files."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import lto_sources, oracle
from helpers.compare import compare

pytestmark = oracle.needs_oracle

ARCH = "80"
STREAMS = {0: "<&-", 1: ">&-", 2: "2>&-"}
CLOSED = [some for count in range(4) for some in itertools.combinations(STREAMS, count)]

LINKS = {
    "cubin": ["alone.cubin"],
    "ptx": ["alone.ptx"],
    "lto": ["-lto", "-nvvmpath=nvvm", "alone.ltoir"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program as a cubin, PTX and LTO-IR, and what nvlink makes of each."""
    made = tmp_path_factory.mktemp("closed")
    lto_sources.write_ltoir(made, "alone")
    lto_sources.write_nvvm(made)
    source = lto_sources.SOURCES["alone"]
    (made / "alone.ptx").write_text(oracle.compile_ptx(source, ARCH))
    (made / "alone.cubin").write_bytes(oracle.compile(source, ARCH))
    for kind, words in LINKS.items():
        done = oracle.run_nvlink([f"-arch=sm_{ARCH}", *words, "-o", kind], made)
        assert done.code == 0, done.stderr
    return made


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("closed", CLOSED, ids=lambda some: "".join(map(str, some)) or "none")
def test_a_link_is_the_same_whatever_is_closed(
    kind: str, closed: tuple[int, ...], folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    words = [sys.executable, "-m", "pylink", f"-arch=sm_{ARCH}", *LINKS[kind], "-o", str(output)]
    shell = f'exec "$@" {" ".join(STREAMS[stream] for stream in closed)}'
    done = subprocess.run(["sh", "-c", shell, "sh", *words], cwd=folder, check=False)
    assert done.returncode == 0
    assert compare(output.read_bytes(), (folder / kind).read_bytes()) == []

"""Jump tables of functions in several files: links equal nvlink's, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle, programs_switch
from helpers.compare import compare

from pylink.cli import main

pytestmark = oracle.needs_oracle

ARCHS = ("75", "90a", "100")
OPTIONS = ("", "-r", "-g", "-preserve-relocs", "--kernels-used=k0_0")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(24))
def test_links_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arch = ARCHS[seed % len(ARCHS)]
    names = []
    for number, text in enumerate(programs_switch.generate(seed)):
        names.append(f"m{number}.cubin")
        Path(names[-1]).write_bytes(oracle.compile(text, arch, name=f"m{number}.cu"))
    for order in (names, names[::-1]):
        argv = [f"-arch=sm_{arch}", *options.split(), *order, "-o", "out.cubin"]
        expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
        assert expected is not None
        assert main(argv) == 0
        assert compare(Path("out.cubin").read_bytes(), expected) == []

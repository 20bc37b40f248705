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


def cubins(seed: int) -> list[str]:
    """The cubins of a program, in the working directory."""
    names = []
    for number, text in enumerate(programs_switch.generate(seed)):
        names.append(f"m{number}.cubin")
        image = oracle.compile(text, ARCHS[seed % len(ARCHS)], name=f"m{number}.cu")
        Path(names[-1]).write_bytes(image)
    return names


def differences(seed: int, options: str, names: list[str]) -> list[str]:
    """How the links differ; what nvlink refuses for an error of its own has to link here."""
    argv = [f"-arch=sm_{ARCHS[seed % len(ARCHS)]}", *options.split(), *names, "-o", "out.cubin"]
    Path("out.cubin").unlink(missing_ok=True)
    expected = oracle.run_nvlink(argv, Path(), "out.cubin")
    assert main(argv) == 0
    if expected.image is None:
        assert "Internal error" in expected.stderr
        return []
    return compare(Path("out.cubin").read_bytes(), expected.image)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(24))
def test_links_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    names = cubins(seed)
    assert differences(seed, options, names) == []
    assert differences(seed, options, names[::-1]) == []


@pytest.mark.parametrize("options", ["", "-r", "-g"])
@pytest.mark.parametrize("seed", range(24))
def test_second_stages_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    *names, last = cubins(seed)
    argv = [f"-arch=sm_{ARCHS[seed % len(ARCHS)]}", "-r", *names, "-o", "first.cubin"]
    first = oracle.run_nvlink(argv, tmp_path, "first.cubin").image
    assert first is not None
    Path("first.cubin").write_bytes(first)
    assert differences(seed, options, ["first.cubin", last]) == []

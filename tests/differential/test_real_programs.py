"""The command that compares links of real programs, on a repository of three small files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle

pytestmark = oracle.needs_oracle

ROOT = Path(__file__).parents[2]
FILES = {
    "src/a.cu": '#include "f.h"\n__global__ void k(int *p) { *p = f(*p); }\n',
    "src/b.cu": '#include "f.h"\n__device__ int f(int n) { return n * n; }\n',
    "src/broken.cu": "this is no CUDA\n",
    "include/f.h": "extern __device__ int f(int n);\n",
}
ROW = {
    "name": "small",
    "repository": "someone/small",
    "sources": ["src/*.cu"],
    "options": ["-I{repo}/include"],
    "archs": ["80"],
}
GIT = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts/real_programs.py"), "table.json"]
    argv += ["--checkouts", "repositories", "--cache", "cache", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("bare", [False, True])
def test_report(tmp_path: Path, bare: bool) -> None:
    checkout = tmp_path / ("work" if bare else "repositories/small")
    for name, text in FILES.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*GIT, *words], cwd=checkout, check=True)
    if bare:
        target = tmp_path / "repositories/someone+small/repo"
        subprocess.run(["git", "clone", "-q", "--bare", checkout, target], check=True)
    (tmp_path / "table.json").write_text(json.dumps([ROW]))
    done = run(tmp_path, "--flavours", "plain,lineinfo", "--json", "outcomes.json")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    counts = "14 equal, 0 differs, 0 refused, 0 messages"
    assert last == f"1 programs, 14 links: {counts}; 2 sources not compiled"
    assert "small sm_80 plain: src/broken.cu: " in done.stdout
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {outcome["verdict"] for outcome in outcomes} == {"equal"}
    assert "relink-part, lineinfo" in {outcome["link"] for outcome in outcomes}


def test_a_broken_row_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('[{"name": "x"}]')
    done = run(tmp_path)
    assert done.returncode == 2
    assert "table.json, program 1: " in done.stderr

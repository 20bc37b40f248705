"""The command that compares links of real programs, on a repository of three small files."""

from __future__ import annotations

import json
import shutil
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
    "include/f.h": "#include <config.h>\nextern __device__ int f(int n);\n",
}
ROW = {
    "name": "small",
    "repository": "someone/small",
    "sources": ["src/*.cu"],
    "options": ["-I{repo}/include", "-I{made}", "-I{other}"],
    "needs": ["someone/other"],
    "made": {"config.h": "#include <other.h>\n"},
    "archs": ["80"],
}
GIT = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts/real_programs.py"), "table.json"]
    argv += ["--checkouts", "repositories", "--cache", "cache", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def commit(checkout: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*GIT, *words], cwd=checkout, check=True)


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """A checkout of the program, one of what it needs, and the table beside them."""
    commit(tmp_path / "repositories/small", FILES)
    commit(tmp_path / "repositories/other", {"other.h": "#pragma once\n"})
    (tmp_path / "table.json").write_text(json.dumps([ROW]))
    return tmp_path / "repositories"


@pytest.mark.parametrize("bare", [False, True])
def test_report(repositories: Path, bare: bool) -> None:
    if bare:
        target = repositories / "someone+small/repo"
        checkout = repositories / "small"
        subprocess.run(["git", "clone", "-q", "--bare", checkout, target], check=True)
        shutil.rmtree(checkout)
    tmp_path = repositories.parent
    done = run(tmp_path, "--flavors", "plain,lineinfo", "--json", "outcomes.json")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    counts = "16 equal, 0 differs, 0 refused, 0 messages"
    assert last == f"1 programs, 16 links: {counts}; 2 sources not compiled"
    assert "0 hazards in code that differs" in done.stdout
    assert "small sm_80 plain: src/broken.cu: " in done.stdout
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {outcome["verdict"] for outcome in outcomes} == {"equal"}
    assert "relink-part, lineinfo" in {outcome["link"] for outcome in outcomes}


def test_objects_with_host_code_and_what_they_register(repositories: Path) -> None:
    done = run(repositories.parent, "--flavors", "host", "--links", "exec,register,archive,relink")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 programs, 4 links: 4 equal" in done.stdout


def test_link_time_optimization_is_one_stage(repositories: Path) -> None:
    pytest.importorskip("cuda.bindings", reason="needs nvJitLink: pip install '.[cuda]'")
    done = run(repositories.parent, "--flavors", "lto", "--links", "exec,verbose,r,relink")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 programs, 2 links: 2 equal" in done.stdout


def test_what_is_needed_and_not_there_is_told(repositories: Path) -> None:
    shutil.rmtree(repositories / "other")
    done = run(repositories.parent)
    assert "not compiled: small: no someone/other in repositories" in done.stdout


def test_a_broken_row_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('[{"name": "x"}]')
    done = run(tmp_path)
    assert done.returncode == 2
    assert "table.json, program 1: " in done.stderr


def test_files_that_the_build_writes_and_archives(repositories: Path) -> None:
    """Sources below {made} come from `prepare`, and `members` and `libraries` are linked."""
    (repositories / "libraries").mkdir()
    nvcc = oracle.toolchain().tool("nvcc")
    (repositories / "g.cu").write_text("__device__ int g(int n) { return n + 1; }\n")
    library = repositories / "libraries/libg.a"
    argv = [nvcc, "-dc", "-arch=sm_80", "g.cu", "-o", "g.o"]
    subprocess.run(argv, cwd=repositories, check=True)
    subprocess.run(["ar", "crD", library, "g.o"], cwd=repositories, check=True)
    text = "extern __device__ int f(int), g(int); __global__ void m(int *p) { *p = g(f(*p)); }"
    row = {**ROW, "sources": ["{made}/*.cu"], "members": ["src/b.cu"], "libraries": ["g"]}
    row["prepare"] = f"test -f {{repo}}/src/a.cu; echo '{text}' > made.cu"
    (repositories.parent / "table.json").write_text(json.dumps([row]))
    words = ["--library-path", str(library.parent)]
    done = run(repositories.parent, "--flavors", "host", "--links", "exec,archive", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 programs, 2 links: 2 equal" in done.stdout
    argv = [sys.executable, str(ROOT / "benchmarks/time_programs.py"), "--table", "table.json"]
    argv += ["--checkouts", "repositories", "--cache", "cache", "--rounds", "1", "--step", *words]
    timed = subprocess.run(
        argv, cwd=repositories.parent, capture_output=True, text=True, check=False
    )
    assert timed.returncode == 0, timed.stdout + timed.stderr
    rows = [line for line in timed.stdout.splitlines() if line.startswith("| small | sm_80 |")]
    assert [row.split(" | ")[2] for row in rows] == ["1 + 3 (1)"] * 2


def test_times_of_the_code_in_a_binary(tmp_path: Path) -> None:
    """Relocatable code is taken out of a file; without any, the program says so."""
    (tmp_path / "g.cu").write_text("__global__ void g(int *p) { *p += 1; }\n")
    argv = [oracle.toolchain().tool("nvcc"), "-dc", "-arch=sm_80", "g.cu", "-o", "g.o"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    argv = [sys.executable, str(ROOT / "benchmarks/time_programs.py"), "--binary", "g.o"]
    argv += ["--archs", "80,90", "--cache", "cache", "--rounds", "1"]
    timed = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert timed.returncode == 0, timed.stdout + timed.stderr
    assert "| g.o | sm_80 | 1 + 1 |" in timed.stdout
    assert "g.o: no relocatable cubin for sm_90" in timed.stderr

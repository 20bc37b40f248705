"""What an installed pylink consists of."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

import pylink
from pylink._native import OBJECT_PATH
from pylink.renderers.sarif_document import HOME

PACKAGE = Path(pylink.__file__).parent
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "pylink-python"


def test_public_names() -> None:
    assert set(pylink.__all__) <= set(dir(pylink))
    for name in pylink.__all__:
        assert getattr(pylink, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        getattr(pylink, "missing")  # noqa: B009 -- mypy knows that there is none


def test_version_is_that_of_the_distribution() -> None:
    assert pylink.__version__ == importlib.metadata.version("pylink-cuda")


def test_package_needs_decompressors_and_digests_alone_at_run_time() -> None:
    """Host objects are compressed unless nvcc is told otherwise; all else is an extra."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (needed,) = re.findall(r"^dependencies = \[(.*)\]$", project, re.MULTILINE)
    assert re.findall(r'"(\w+)>', needed) == ["lz4", "xxhash", "zstandard"]
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())
    packages = {"python", "lz4", "python-xxhash", "zstandard"}  # as conda-forge calls them
    assert set(recipe["requirements"]["run"]) == packages


def test_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_installed_program_says_what_it_does_not_know() -> None:
    program = shutil.which("pylink", path=sysconfig.get_path("scripts"))
    assert program is not None
    done = subprocess.run([program, "-bogus"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "pylink fatal   : Unknown option 'bogus'\n")


def test_the_module_of_another_project_is_named(tmp_path: Path) -> None:
    """Two other projects on the index call their module the same."""
    (tmp_path / "pylink").mkdir()
    other = tmp_path / "pylink" / "__init__.py"
    other.write_text("class JLink: ...\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"pylink: {other} is the module of another project")
    assert "pylink-cuda" in done.stderr


def test_urls_are_those_of_the_documentation() -> None:
    """One address: of the project, of the site, and of the help that diagnostics name."""
    urls = importlib.metadata.metadata("pylink-cuda").get_all("Project-URL") or []
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("plugins:")[0])
    assert f"Documentation, {site['site_url']}" in urls
    assert site["site_url"] == HOME


@pytest.mark.parametrize(
    ("name", "accepted"),
    [("pylink.data/scripts/pylink", True), ("pylink/_native/kernels.so", False)],
)
def test_a_program_for_musl_may_be_static(name: str, accepted: bool) -> None:
    """Zig links programs so: they have no `.dynamic`, as the ELF file here; a module has to."""
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import build_wheels\n"
        "module = Path(sys.argv[3]).read_bytes()\n"
        "build_wheels.check_needed_libraries(Path('w.whl'), sys.argv[2], module)"
    )
    elf = ROOT / "demo" / "cubins" / "sm_90a" / "force_0.cubin"
    words = [sys.executable, "-c", program, str(ROOT / "scripts"), name, str(elf)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is accepted, done.stderr


def test_a_wheel_may_have_cubins_for_gpus_and_native_code_for_its_machine_alone() -> None:
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import build_wheels\n"
        "files = {name: Path(name).read_bytes() for name in sys.argv[2:]}\n"
        "print(*build_wheels.native_code(files), sep='\\n')"
    )
    cubin = ROOT / "demo" / "cubins" / "sm_90a" / "force_0.cubin"
    files = [str(cubin), OBJECT_PATH, __file__]
    command = [sys.executable, "-c", program, str(ROOT / "scripts"), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [OBJECT_PATH]


def test_the_sets_of_compilers_have_the_same_tools() -> None:
    """Of one CUDA each; libnvvm has a wheel of its own since 13, before it came with ptxas."""
    text = (ROOT / "pyproject.toml").read_text()
    extras = {
        name: re.findall('"(.*?)"', listed)
        for name, listed in re.findall(
            r"^(cuda|cuda12) = \[(.*?)\]", text, re.MULTILINE | re.DOTALL
        )
    }
    sets = {name: {word.partition(">")[0] for word in extras[name]} for name in ("cuda", "cuda12")}
    assert {name.removesuffix("-cu12") for name in sets["cuda12"]} == sets["cuda"] - {"nvidia-nvvm"}
    assert all(word.endswith(">=12.9,<13") for word in extras["cuda12"])
    assert all(word.endswith(">=13,<14") for word in extras["cuda"])


def test_a_release_is_what_make_wheels_builds_and_is_linked_with() -> None:
    """One way of building, for each Python that is supported; what was not run is not published."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    (command,) = [
        step["run"] for step in jobs["wheels"]["steps"] if "make wheels" in step.get("run", "")
    ]
    built = set(re.findall(r"python(3\.\d+t?)", command))
    (setup,) = [step["with"] for step in jobs["wheels"]["steps"] if "setup-python" in str(step)]
    assert set(setup["python-version"].split()) == built
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = set(re.findall(r"Python :: (3\.\d+)", project))
    assert built == supported | {"3.14t"}
    assert set(jobs["check"]["strategy"]["matrix"]["python"]) == supported
    checks = {name for name, job in jobs.items() if "check_installed.py" in str(job["steps"])}
    assert checks == {"check", "check-threads"}
    assert checks < set(jobs["publish"]["needs"])
    assert "cibuildwheel" not in text + project

"""An installation of pylink in a folder of its own, with the native program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from helpers.cubin_builder import one_kernel

import pylink
from pylink.startup.bundle import PATH, SHIPPED

ROOT = Path(__file__).parents[2]
BUNDLE = Path("__pycache__") / Path(PATH).name

# The text of sitecustomize.py, which Python does not load if the program starts it the fast way.
MARK = "import sys\nif 'pylink-python' in ' '.join(sys.orig_argv): print('from the script')\n"


class Installed:
    """An installation of pylink below a prefix, as pip leaves it."""

    def __init__(self, prefix: Path, scripts: Path) -> None:
        library = Path(sysconfig.get_path("stdlib")).name
        site = prefix / "lib" / library / "site-packages"
        self.package = site / "pylink"
        self.bundle = self.package / BUNDLE
        self.shipped = self.package / "startup" / Path(SHIPPED).name
        self.program = prefix / "bin" / "pylink"
        shutil.copytree(
            Path(pylink.__file__).parent,
            self.package,
            ignore=shutil.ignore_patterns("__pycache__", "report", "jitlink"),
        )
        shutil.copytree(scripts, prefix / "bin")
        script = prefix / "bin" / "pylink-python"
        script.write_text(script.read_text().replace("#!python\n", f"#!{sys.executable}\n"))
        (prefix / "mark").mkdir()
        (prefix / "mark" / "sitecustomize.py").write_text(MARK)
        (prefix / "a.cubin").write_bytes(one_kernel().build())
        # Otherwise scripts would import the package of this checkout.
        self.path = os.pathsep.join([str(prefix / "mark"), str(site)])
        self.folder = prefix

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the tests' environment without the developer's cache, and with `variables`."""
        environment = {**os.environ, "PYTHONPATH": self.path, "HOME": "", "XDG_CACHE_HOME": ""}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**environment, **variables}

    def ship(self) -> None:
        """Add the start-up bundle that a wheel contains."""
        kernels = f"kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
        bundler = self.package / "startup" / "bundle.py"
        command = [sys.executable, "-S", str(bundler), "--ship", str(self.shipped), kernels]
        subprocess.run(command, check=True, env=self.environment(PYTHONDONTWRITEBYTECODE="1"))

    def run(
        self, *words: str, name: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the program (or `name`) with the installation's environment and `variables`."""
        return subprocess.run(
            [name or str(self.program), *words],
            cwd=self.folder,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            check=False,
        )

    def link(self, *words: str, **variables: str) -> str:
        """Do a link, which must succeed; return its output."""
        done = self.run("-arch=sm_80", "a.cubin", "-o", "out.cubin", *words, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def build_scripts(folder: Path) -> Path:
    """Build the scripts by setup.py, in a new folder in `folder`, and return it."""
    build_folder = folder / "made"
    command = [sys.executable, "setup.py", "--quiet", "build_scripts", "--executable", "python"]
    subprocess.run([*command, "--build-dir", str(build_folder)], cwd=ROOT, check=True)
    return build_folder

"""The program `pylink`: what it starts Python with, and that this is never out of date."""

from __future__ import annotations

import inspect
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry
from helpers.installed import Installed, build_scripts

import pylink
from pylink.command.lean import compile_lean

PT_INTERP = 3
BY_SCRIPT = "from the script\n"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scripts(tmp_path_factory.mktemp("scripts"))


@pytest.fixture
def installed(tmp_path: Path, scripts: Path) -> Installed:
    return Installed(tmp_path / "prefix", scripts)


def test_the_second_link_starts_from_a_bundle(installed: Installed) -> None:
    assert installed.link() == "from the script\n"
    first = (installed.folder / "out.cubin").read_bytes()
    made = installed.bundle.stat().st_mtime_ns
    assert installed.link() == ""
    assert (installed.folder / "out.cubin").read_bytes() == first
    assert installed.bundle.stat().st_mtime_ns == made


def test_the_launcher_loads_no_library_where_it_need_not(scripts: Path) -> None:
    compiler = sysconfig.get_config_var("CC").split()
    asked = subprocess.run(
        [*compiler, "-print-file-name=libc.a"], capture_output=True, text=True, check=True
    )
    is_there = asked.stdout.startswith("/")
    program = (scripts / "pylink").read_bytes()
    start, count = (int.from_bytes(program[at : at + 2], "little") for at in (32, 56))
    types = [program[start + 56 * number] for number in range(count)]
    assert (PT_INTERP in types) != is_there


def test_a_bundle_of_older_sources_is_not_used(installed: Installed) -> None:
    installed.link()
    source = installed.package / "command" / "program.py"
    status = source.stat()
    text = source.read_text()
    source.write_text(
        text.replace("    status = main(", '    print("changed")\n    status = main(')
    )
    assert installed.link() == "from the script\nchanged\n"
    assert installed.link() == "changed\n"
    # The same size and another time, and an older time.
    source.write_text(source.read_text().replace("changed", "altered"))
    later = status.st_mtime_ns + 10**9  # the interpreter's own compiled modules count in seconds
    os.utime(source, ns=(later, later))
    assert installed.link() == "from the script\naltered\n"
    source.write_text(text)
    os.utime(source, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert installed.link() == "from the script\n"
    assert installed.link() == ""


def test_a_source_that_is_gone_is_noticed(installed: Installed) -> None:
    installed.link()
    (installed.package / "timing.py").unlink()
    done = installed.run("-arch=sm_80", "a.cubin", "-o", "out.cubin")
    assert done.returncode == 1
    assert "pylink.timing" in done.stderr


@pytest.mark.parametrize("damage", ["empty", "short", "long", "other"])
def test_what_is_no_bundle_of_this_interpreter_is_not_started(
    installed: Installed, damage: str
) -> None:
    installed.link()
    whole = installed.bundle.read_bytes()
    damaged = {
        "empty": b"",
        "short": whole[:-1],
        "long": whole + b"\0",
        "other": bytes([whole[0] ^ 1]) + whole[1:],
    }
    installed.bundle.write_bytes(damaged[damage])
    assert installed.link() == "from the script\n"
    assert installed.bundle.stat().st_size == len(whole)
    assert installed.link() == ""


@pytest.mark.parametrize("replaced", [True, False])
def test_a_bundle_that_is_not_the_one_that_was_started(
    installed: Installed, tmp_path: Path, *, replaced: bool
) -> None:
    """Another process may make or remove it between the two times that it is opened."""
    installed.link()
    whole = installed.bundle.read_bytes()
    other = whole[-4096:-12] + bytes([whole[-12] ^ 1]) + whole[-11:]  # of other rows
    script = installed.program.with_name("pylink-python")
    code = f"""
import marshal, os, sys
path = {str(installed.bundle)!r}
with open(path, "rb") as stream:
    code = marshal.loads(stream.read()[16:])
if {replaced}:
    with open(path, "wb") as stream:
        stream.write({other!r})
else:
    os.unlink(path)
sys.argv[:1] = [path, {str(script)!r}]
exec(code, {{"__name__": "__main__"}})
"""
    words = ["-I", "-S", "-c", code, "-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = installed.run(*words, name=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")


def test_nothing_is_written_where_that_is_not_wanted(installed: Installed) -> None:
    assert installed.link(PYTHONDONTWRITEBYTECODE="1") == "from the script\n"
    assert not installed.bundle.exists()
    subprocess.run([sys.executable, installed.package / "command" / "bundle.py"], check=True)
    assert installed.link(PYTHONDONTWRITEBYTECODE="1") == ""


def test_a_mistake_makes_no_bundle(installed: Installed) -> None:
    assert installed.run("-bogus").returncode == 1
    assert not installed.bundle.exists()


def test_the_program_goes_by_the_name_it_was_started_under(installed: Installed) -> None:
    installed.link()
    other = installed.folder / "nvlink"
    other.symlink_to(installed.program)
    for name in (str(other), "../prefix/nvlink"):
        done = installed.run("-bogus", name=name)
        assert (done.returncode, done.stderr) == (1, "nvlink fatal   : Unknown option 'bogus'\n")


def test_words_arrive_as_they_are(installed: Installed) -> None:
    installed.link()
    done = installed.run("-arch=sm_80", "no such *.cubin", "", "-o", "out.cubin")
    assert "no such *.cubin" in done.stderr
    assert done.returncode != 0


def test_modules_of_other_packages_are_found_when_needed(installed: Installed) -> None:
    """Zstandard is decompressed by a package, which a quick start does not look for at first."""
    packed = container(entry(one_kernel().build(), 80, mode="zstd"))
    (installed.folder / "a.fatbin").write_bytes(packed)
    installed.link()
    done = installed.run("-arch=sm_80", "a.fatbin", "-o", "out.cubin")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = installed.run("remarks", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_quick_start_loads_what_it_was_made_for(installed: Installed) -> None:
    """Every module of a plain link comes from the bundle, none from a file of its own."""
    installed.link()
    command = [sys.executable, "-I", "-S", "-v", str(installed.bundle), "script"]
    words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = subprocess.run(
        [*command, *words], cwd=installed.folder, capture_output=True, text=True, check=True
    )
    loaded = [line for line in done.stderr.splitlines() if line.startswith("# code object from")]
    assert [line for line in loaded if "pylink" in line or "__future__" in line] == []


def test_a_bundle_that_was_copied_is_not_used(installed: Installed) -> None:
    """Its sources are those of the place where it was made, whoever has that now."""
    installed.link()
    copy = installed.folder / "copy"
    for part in ("bin", "lib"):
        shutil.copytree(installed.folder / part, copy / part, copy_function=os.link)
    variables = {"PYTHONPATH": installed.path.replace(f"{installed.folder}/lib", f"{copy}/lib")}
    for expected in (BY_SCRIPT, ""):
        words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
        done = installed.run(*words, name=str(copy / "bin" / "pylink"), **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_nobody_else_may_write_a_bundle(installed: Installed) -> None:
    command = f'umask 0; exec {installed.program} "$@"'
    words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = installed.run("-c", command, "sh", *words, name="/bin/sh")
    assert (done.returncode, done.stdout) == (0, BY_SCRIPT)
    assert installed.bundle.stat().st_mode & 0o022 == 0


def test_a_script_that_a_shell_starts_is_left_to_it(installed: Installed) -> None:
    """What installers write where the path of the interpreter has blanks or is long."""
    script = installed.program.with_name("pylink-python")
    text = script.read_text().partition("\n")[2]
    script.write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n{text}")
    assert installed.link() == BY_SCRIPT
    assert installed.link() == BY_SCRIPT
    script.write_text(f"#!{sys.executable} -B\n{text}")
    assert installed.link() == BY_SCRIPT


SOURCE = '''
"""A module."""
from __future__ import annotations
TYPE_CHECKING = False
if TYPE_CHECKING:
    import nothing_of_that_name
else:
    other = 1
Pair = tuple[int, int]
def documented(a: int, *rest: str, b: float = 2.5) -> int:
    """Documented."""
def asserting(a: Pair) -> Pair:
    f"no docstring {a}"
    assert a, "nothing"
    found: list[int] = [1]
    unset: int
    return a
class Slots:
    """A class."""
    __slots__ = ("a",)
    a: int
class Empty:
    """Nothing else."""
@mark
class Marked:
    a: int
    b: int = 2
'''


def test_lean_code_does_the_same() -> None:
    marked: list[type] = []

    def mark(made: type) -> type:
        marked.append(made)
        return made

    space: dict[str, Any] = {"mark": mark, "__name__": "lean"}
    code = compile_lean(SOURCE.encode(), "lean.py")
    exec(code, space)
    assert space["other"] == 1
    assert "nothing_of_that_name" not in code.co_names
    for name in ("documented", "asserting", "Slots", "Empty"):
        assert space[name].__doc__ is None
        assert not inspect.get_annotations(space[name])
    assert space["documented"].__kwdefaults__ == {"b": 2.5}
    assert marked[0].__annotations__ == {"a": "int", "b": "int"}
    assert space["Slots"]().__class__.a.__class__.__name__ == "member_descriptor"
    assert space["asserting"]((1, 2)) == (1, 2)
    with pytest.raises(AssertionError, match="nothing") as caught:
        space["asserting"](())
    assert (
        caught.traceback[-1].lineno + 1 == SOURCE.split("\n").index('    assert a, "nothing"') + 1
    )


def test_every_module_has_lean_code() -> None:
    for path in Path(pylink.__file__).parent.rglob("*.py"):
        source = path.read_bytes()
        lean, whole = (
            len(marshal.dumps(code))
            for code in (compile_lean(source, "x"), compile(source, "x", "exec", dont_inherit=True))
        )
        assert lean <= whole

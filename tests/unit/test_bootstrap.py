"""The program `pylink`: what it starts Python with, and that this is never out of date."""

from __future__ import annotations

import ctypes
import inspect
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry
from helpers.installed import Installed, build_scripts

import pylink
from pylink.startup.stripped import compile_stripped

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


def test_a_device_link_step_starts_from_the_bundle_too(installed: Installed) -> None:
    installed.link()
    (installed.folder / "a.o").write_bytes(one_kernel().build())
    words = ["dlink", "-arch=sm_80", "-fatbin", "a.o", "-o", "step.fatbin"]
    done = installed.run(*words, "-cudadevrt=none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (installed.folder / "step.fatbin").stat().st_size
    # Modules of a package that the bundle has without all of its files are found beside it.
    assert "Link device code for all" in installed.run("dlink", "--help").stdout


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


def test_it_starts_without_proc(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the path that was started, relative ones, links and those found in PATH included."""
    monkeypatch.setenv("CFLAGS", '-DSELF=\\"/no/proc/self/exe\\"')
    scripts = build_scripts(tmp_path_factory.mktemp("scripts"))
    installed = Installed(tmp_path / "prefix", scripts)
    installed.link()
    assert installed.link() == ""
    (tmp_path / "prefix/link").symlink_to("bin/pylink")
    words = ("-arch=sm_80", "a.cubin", "-o", "out.cubin")
    for name in ("bin/pylink", "./bin/../bin/pylink", "./link"):
        done = installed.run(*words, name=name)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    path = f"{installed.folder}/bin:{os.environ['PATH']}"
    shell = ["-c", 'cd bin && pylink "$@"', "sh", "-arch=sm_80", "../a.cubin", "-o", "out.cubin"]
    done = installed.run(*shell, name="/bin/sh", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_bundle_of_older_sources_is_not_used(installed: Installed) -> None:
    installed.link()
    source = installed.package / "startup" / "program.py"
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
sys.argv[:1] = [path, {str(script)!r}, {str(installed.package)!r}]
exec(code, {{"__name__": "__main__"}})
"""
    words = ["-I", "-S", "-c", code, "-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = installed.run(*words, name=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")


def test_nothing_is_written_where_that_is_not_wanted(installed: Installed) -> None:
    assert installed.link(PYTHONDONTWRITEBYTECODE="1") == "from the script\n"
    assert not installed.bundle.exists()
    subprocess.run([sys.executable, installed.package / "startup" / "bundle.py"], check=True)
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
    command.append(str(installed.package))
    words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = subprocess.run(
        [*command, *words], cwd=installed.folder, capture_output=True, text=True, check=True
    )
    loaded = [line for line in done.stderr.splitlines() if line.startswith("# code object from")]
    assert [line for line in loaded if "pylink" in line or "__future__" in line] == []


def test_a_copy_of_an_installation_has_its_own_sources(installed: Installed) -> None:
    """Also where another one has its old place by then."""
    installed.link()
    copy = installed.folder / "copy"
    for part in ("bin", "lib"):
        shutil.copytree(installed.folder / part, copy / part)
    variables = {"PYTHONPATH": installed.path.replace(f"{installed.folder}/lib", f"{copy}/lib")}
    words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    plant(installed.package, "original")
    for expected in ("", BY_SCRIPT + "of the copy\n", "of the copy\n"):
        done = installed.run(*words, name=str(copy / "bin" / "pylink"), **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
        if not expected:
            plant(copy / installed.package.relative_to(installed.folder), "of the copy")


def test_nobody_else_may_write_a_bundle(installed: Installed) -> None:
    command = f'umask 0; exec {installed.program} "$@"'
    words = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
    done = installed.run("-c", command, "sh", *words, name="/bin/sh")
    assert (done.returncode, done.stdout) == (0, BY_SCRIPT)
    assert installed.bundle.stat().st_mode & 0o022 == 0


def plant(package: Path, text: str) -> None:
    """Have each link print the text at its end."""
    source = package / "startup" / "program.py"
    before = "    status = main("
    source.write_text(source.read_text().replace(before, f"    print({text!r})\n{before}"))


# What images of containers set.
UNWRITTEN = {"PYTHONDONTWRITEBYTECODE": "1"}


def test_a_wheel_starts_fast_at_once(installed: Installed) -> None:
    """And where compiled modules may be written, the next link need not read the sources."""
    installed.ship()
    assert installed.link(**UNWRITTEN) == ""
    assert not installed.bundle.exists()
    assert installed.link() == ""
    assert installed.bundle.exists()
    installed.shipped.unlink()
    assert installed.link() == ""


def test_a_wheel_that_was_changed_starts_from_its_sources(installed: Installed) -> None:
    installed.ship()
    source = installed.package / "startup" / "program.py"
    text = source.read_text()
    source.write_text(text.replace("An eighth", "AN EIGHTH").replace("takes an", "TAKES AN"))
    assert source.stat().st_size == len(text.encode())
    assert source.read_text() != text
    assert installed.link(**UNWRITTEN) == BY_SCRIPT
    home = installed.folder / "home"
    home.mkdir()
    assert installed.link(HOME=str(home), **UNWRITTEN) == BY_SCRIPT
    assert installed.link(HOME=str(home), **UNWRITTEN) == ""
    source.write_text(text)
    shutil.rmtree(home)
    home.mkdir()
    assert installed.link(HOME=str(home), **UNWRITTEN) == ""
    assert list(home.iterdir()) == []


def test_a_shipped_bundle_is_the_same_each_time(installed: Installed) -> None:
    installed.ship()
    first = installed.shipped.read_bytes()
    for path in installed.package.rglob("*.py"):
        os.utime(path)
    installed.ship()
    assert installed.shipped.read_bytes() == first
    assert str(installed.folder).encode() not in first


@pytest.fixture
def home(installed: Installed) -> Path:
    """The home of a user whose second link starts from the bundle in the user's cache."""
    home = installed.folder / "home"
    home.mkdir(mode=0o755)
    variables = {"HOME": str(home), **UNWRITTEN}
    assert [installed.link(**variables) for _ in range(2)] == [BY_SCRIPT, ""]
    return home


def test_where_no_bundle_may_be_written_it_is_in_the_users_cache(
    installed: Installed, home: Path
) -> None:
    assert not installed.bundle.exists()
    folder = home / ".cache" / "pylink"
    (bundle,) = folder.iterdir()
    modes = [path.stat().st_mode & 0o7777 for path in (folder, bundle)]
    assert modes == [0o700, 0o600]
    elsewhere = {"HOME": str(home), "XDG_CACHE_HOME": str(installed.folder / "cache"), **UNWRITTEN}
    assert [installed.link(**elsewhere) for _ in range(2)] == [BY_SCRIPT, ""]
    # A bundle of older sources is replaced, one of another installation kept, one of old removed.
    plant(installed.package, "changed")
    (folder / "of another").write_bytes(b"")
    (folder / "old").write_bytes(b"")
    os.utime(folder / "old", (0, 0))
    variables = {"HOME": str(home), **UNWRITTEN}
    said = [installed.link(**variables) for _ in range(2)]
    assert said == [f"{BY_SCRIPT}changed\n", "changed\n"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([bundle.name, "of another"])


def damage(bundle: Path) -> None:
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    bundle.write_bytes(data)


def lead_elsewhere(path: Path) -> None:
    path.rename(path.parent.parent / "real")
    path.symlink_to(path.parent.parent / "real")


def make_pipe(bundle: Path) -> None:
    bundle.unlink()
    os.mkfifo(bundle)


UNSAFE: dict[str, Callable[[Path, Path], object]] = {
    "folder that others may write": lambda folder, _: folder.chmod(0o770),
    "folder that others may read": lambda folder, _: folder.chmod(0o755),
    "folder elsewhere": lambda folder, _: lead_elsewhere(folder),
    "bundle that others may write": lambda _, bundle: bundle.chmod(0o666),
    "bundle elsewhere": lambda _, bundle: lead_elsewhere(bundle),
    "damaged bundle": lambda _, bundle: damage(bundle),
    "shorter bundle": lambda _, bundle: os.truncate(bundle, bundle.stat().st_size - 1),
    "empty bundle": lambda _, bundle: os.truncate(bundle, 0),
    "pipe": lambda _, bundle: make_pipe(bundle),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_a_cache_that_is_not_safe_is_not_used(installed: Installed, home: Path, case: str) -> None:
    folder = home / ".cache" / "pylink"
    (bundle,) = folder.iterdir()
    UNSAFE[case](folder, bundle)
    variables = {"HOME": str(home), **UNWRITTEN}
    assert installed.link(**variables) == BY_SCRIPT
    # A bad bundle is replaced; a bad folder stays as it is, and unused.
    assert installed.link(**variables) == (BY_SCRIPT if "folder" in case else "")


def test_another_users_home_has_no_cache(installed: Installed, home: Path) -> None:
    """As `sudo` leaves HOME in some set-ups: the owner of it would decide what root runs."""
    if os.geteuid() == 0:
        os.chown(home, 65534, 65534)
        other = home
    else:
        other = Path("/")
    cache = installed.folder / "cache"
    for place in ({}, {"XDG_CACHE_HOME": str(cache)}):
        variables = {"HOME": str(other), **place, **UNWRITTEN}
        assert [installed.link(**variables) for _ in range(2)] == [BY_SCRIPT, BY_SCRIPT]
    assert not cache.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take another real user")
def test_a_process_with_the_rights_of_another_user_has_no_cache(
    installed: Installed, home: Path
) -> None:
    done = subprocess.run(
        [str(installed.program), "-arch=sm_80", "a.cubin", "-o", "out.cubin"],
        cwd=installed.folder,
        env=installed.environment(HOME=str(home), **UNWRITTEN),
        preexec_fn=lambda: os.setreuid(65534, 0),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, BY_SCRIPT, "")


DAC_OVERRIDE = 1  # the capability by which root writes what it may not
DROP = 24  # PR_CAPBSET_DROP


def be_nobody_special() -> None:
    """Have the program that is started next obey the modes of files, also where root starts it."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(DROP, DAC_OVERRIDE, 0, 0, 0) == 0


@pytest.mark.parametrize("shipped", [True, False])
def test_a_folder_that_may_not_be_written(
    installed: Installed, tmp_path: Path, *, shipped: bool
) -> None:
    if shipped:
        installed.ship()
    home = tmp_path / "home"
    home.mkdir()
    folders = [path for path in installed.package.rglob("*") if path.is_dir()]
    for folder in (installed.package, *folders):
        folder.chmod(0o555)

    def run(*command: str) -> tuple[int, str, str]:
        done = subprocess.run(
            command,
            cwd=installed.folder,
            env=installed.environment(HOME=str(home)),
            preexec_fn=be_nobody_special,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    try:
        link = [str(installed.program), "-arch=sm_80", "a.cubin", "-o", "out.cubin"]
        expected = ["", ""] if shipped else [BY_SCRIPT, ""]
        assert [run(*link) for _ in range(2)] == [(0, said, "") for said in expected]
        assert not installed.bundle.exists()
        assert (home / ".cache").exists() != shipped
        status, said, error = run(sys.executable, "-m", "pylink.startup.bundle")
        assert (status, said) == (1, "")
        place = f"{installed.package}/__pycache__"
        assert error == f"pylink: cannot write the start-up bundle in {place}: Permission denied\n"
    finally:
        for folder in (installed.package, *folders):
            folder.chmod(0o755)


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


def test_stripped_code_does_the_same() -> None:
    marked: list[type] = []

    def mark(made: type) -> type:
        marked.append(made)
        return made

    space: dict[str, Any] = {"mark": mark, "__name__": "stripped"}
    code = compile_stripped(SOURCE.encode(), "stripped.py")
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


def test_every_module_has_stripped_code() -> None:
    for path in Path(pylink.__file__).parent.rglob("*.py"):
        source = path.read_bytes()
        stripped, whole = (
            len(marshal.dumps(code))
            for code in (
                compile_stripped(source, "x"),
                compile(source, "x", "exec", dont_inherit=True),
            )
        )
        assert stripped <= whole

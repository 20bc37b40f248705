"""`pylink bench`: what is planted is found, and what cannot be measured is said."""

from __future__ import annotations

import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from helpers import demo, oracle
from helpers.cubin_builder import FUNC, Symbol, one_kernel

import pylink
from pylink.bench import compare, machine, resident
from pylink.bench.answers import may_be_equal
from pylink.bench.command import main
from pylink.bench.commandline import Link
from pylink.bench.contenders import COPY, Contender, jit_options
from pylink.bench.contest import Contest, Plan
from pylink.bench.estimates import Estimate, change_of, exponent_of, median_of
from pylink.bench.groups import groups_of
from pylink.bench.measuring import MOST_ARGUMENTS
from pylink.bench.page import page
from pylink.bench.processes import Launcher, Run, RunFailed
from pylink.bench.results import RESTED, WHOLE, MalformedResults, Results, from_csv, to_csv
from pylink.jitlink import real

COUNT = 16

# Stands for nvlink: says so, does what stands in PLACE, and writes the output that was planted.
SCRIPT = """#!/bin/sh
[ "$1" = --version ] && echo "nvlink: NVIDIA (R) Cuda linker, release 13.0, V13.0.88" && exit
inputs=0
for word; do
    case $word in *.cubin) inputs=$((inputs + 1)) ;; esac
    output=$word
done
PLACE
cat truth > "$output"
"""


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a link of COUNT cubins; `truth` is its output."""
    names = [f"m{number:02}.cubin" for number in range(COUNT)]
    for name in names:
        (tmp_path / name).write_bytes(one_kernel(name[:3]).build())
    monkeypatch.chdir(tmp_path)
    pylink.link(names, arch="sm_80", output="truth")
    return ["-arch=sm_80", *names, "-o", "out.cubin"]


def linker(folder: Path, does: str = "") -> str:
    """The path of a program that stands for nvlink."""
    path = folder / "nvlink"
    path.write_text(SCRIPT.replace("PLACE", does))
    path.chmod(0o755)
    return str(path)


def results(path: str = "out.csv") -> Results:
    return from_csv(Path(path).read_text(), path)


OTHERS = [f"--without={name}" for name in ("copy", "pylink API", "pylink CLI", "pylink serve")]
if oracle.find() is not None:
    OTHERS.append("--without=nvJitLink")


def test_a_program_that_sleeps_takes_as_long(link: list[str], tmp_path: Path) -> None:
    options = ["--rounds=4", "--no-growth", "--csv=out.csv", *OTHERS]
    assert main([*options, f"--nvlink={linker(tmp_path, 'sleep 0.2')}", "--", *link]) == 0
    found = results()
    times = found.seconds("nvlink")
    assert len(times) == 4
    assert min(times) >= 0.2
    assert median_of(times).value < 0.5  # a busy machine starts programs late
    assert max(run.cpu for run in found.runs) < 0.1


def test_a_program_whose_time_is_linear_is_found_to_be(link: list[str], tmp_path: Path) -> None:
    planted = linker(tmp_path, 'sleep "$(printf 0.%03d $((inputs * 40)))"')
    assert main(["--rounds=2", "--csv=out.csv", *OTHERS, f"--nvlink={planted}", "--", *link]) == 0
    found = results()
    assert found.parts("nvlink") == [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), WHOLE]
    assert [
        next(iter(found.of("nvlink", part=part).values())).inputs for part in found.parts("nvlink")
    ] == [2, 4, 8, 16]
    growth = found.growth("nvlink")
    assert growth is not None
    assert 0.7 < growth.value < 1.1  # starting the program is in it


class Planted(Contender):
    """Takes as long as it is told."""

    links = False

    def __init__(self, name: str, seconds: Callable[[int], float]) -> None:
        super().__init__(name, "planted")
        self._seconds = seconds
        self.sizes: list[int] = []

    def run(self, link: Link, size: int) -> Run:
        self.sizes.append(size)
        return Run(self._seconds(size), 0.001, 1000 * size, "")


def contest(words: Sequence[str], folder: Path, plan: Plan, *taking: Contender) -> Results:
    return Contest(Link(words, str(folder)), taking, plan, lambda words: None).run()


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 2.0])
def test_an_exponent_is_found(link: list[str], tmp_path: Path, exponent: float) -> None:
    noise = random.Random(5)
    planted = Planted("steep", lambda size: 1e-3 * size**exponent * noise.uniform(1.0, 1.05))
    growth = contest(link, tmp_path, Plan(rounds=11), planted).growth("steep")
    assert growth is not None
    assert growth.value == pytest.approx(exponent, abs=0.03)
    assert growth.low <= exponent + 0.01
    assert growth.high >= exponent - 0.01


def test_contenders_take_turns_there_and_back(link: list[str], tmp_path: Path) -> None:
    order: list[str] = []

    def told(name: str) -> Callable[[int], float]:
        def seconds(size: int) -> float:
            order.append(f"{name}{size}")
            return 1.0

        return seconds

    plan = Plan(rounds=2, with_parts=False)
    contest(link, tmp_path, plan, Planted("a", told("a")), Planted("b", told("b")))
    assert order == ["a16", "b16", "a16", "b16", "b16", "a16"]


@pytest.mark.parametrize("count", [2, COUNT])
def test_progress_counts_every_step(link: list[str], tmp_path: Path, count: int) -> None:
    """The parts, if there are enough inputs for them, and the rounds after a rest, too."""
    taking = [Planted(name, lambda size: 1.0) for name in "ab"]
    steps: list[str] = []
    plan = Plan(rounds=9, rest=1e-4)
    given = Link([*link[: 1 + count], "-o", "out"], str(tmp_path))
    Contest(given, taking, plan, steps.append).run()
    assert len(steps) == plan.count_steps(count, len(taking))


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_command_is_cut(link: list[str], tmp_path: Path, more: int) -> None:
    words = [*link, *["-L."] * (MOST_ARGUMENTS + more - len(link))]
    options = ["--rounds=1", "--no-growth", "--csv=out.csv", *OTHERS]
    assert main([*options, f"--nvlink={linker(tmp_path)}", "--", *words]) == 0
    expected = " ".join(words[:MOST_ARGUMENTS]) + " ..." * more
    assert results().facts["command"] == expected


def test_the_time_of_nvjitlink_begins_with_its_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the loading of the library nor the creation of the handle is in it."""

    class Handle:
        def add_file(self, kind: int, name: bytes) -> int:
            time.sleep(0.01)
            return real.SUCCESS

        def complete(self) -> int:
            return real.SUCCESS

        def read_result(self, name: str) -> bytes:
            return b"linked"

        def destroy(self) -> int:
            return real.SUCCESS

    class Library:
        def __init__(self, path: str, major: int) -> None:
            pass

        def create(self, options: Sequence[bytes]) -> tuple[int, Handle]:
            time.sleep(1)
            return real.SUCCESS, Handle()

    monkeypatch.setattr(real, "Real", Library)
    output = tmp_path / "out"
    answer = resident.time_link(
        resident.KINDS[resident.NVJITLINK](),
        {"library": "", "options": [], "inputs": [(1, "a.cubin")], "output": str(output)},
    )
    assert 0.01 <= answer["seconds"] < 1
    assert output.read_bytes() == b"linked"


@pytest.mark.parametrize(
    "name", ["a b\\c#", "größe", "\x0b\u2028", b"\xff".decode(errors="surrogateescape")]
)
def test_mount_points_of_any_name_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    point = tmp_path / name
    point.mkdir()
    escaped = re.sub(rb"[ \t\n\\#]", lambda match: b"\\%03o" % match[0][0], os.fsencode(point))
    mounts = tmp_path / "mounts"
    mounts.write_bytes(b"root / ext4 rw 0 0\ndisk " + escaped + b" xfs rw 0 0\n")
    monkeypatch.setattr(machine, "_MOUNTS", str(mounts))
    assert machine.facts(str(point))["file system"] == "xfs"
    assert machine.facts(str(tmp_path))["file system"] == "ext4"


def test_one_that_is_slow_sits_out(link: list[str], tmp_path: Path) -> None:
    slow, quick = Planted("slow", lambda size: 1.0), Planted("quick", lambda size: 1.0)
    plan = Plan(rounds=9, patience=0.0, with_parts=False)
    found = contest(link, tmp_path, plan, slow, quick)
    assert len(found.seconds("slow")) == 4


def test_one_that_fails_late_keeps_what_it_did(link: list[str], tmp_path: Path) -> None:
    def fail(size: int) -> float:
        if len(failing.sizes) > 3:
            raise RunFailed("the disk is full")
        return 1.0

    failing = Planted("failing", fail)
    found = contest(
        link, tmp_path, Plan(rounds=5, with_parts=False), failing, Planted("other", lambda size: 2)
    )
    assert len(found.seconds("failing")) == 2
    assert found.failures == {"failing": "in round 3: the disk is full"}
    assert len(found.seconds("other")) == 5


def test_parts_that_do_not_link_are_no_growth(
    link: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses = 'if [ $inputs -lt 16 ]; then echo "undefined: f" >&2; exit 1; fi'
    planted = linker(tmp_path, refuses)
    assert main(["--rounds=1", "--csv=out.csv", *OTHERS, f"--nvlink={planted}", "--", *link]) == 0
    assert results().facts["growth"] == (
        "not measured: 2 of 16 inputs do not link alone, nvlink says: undefined: f"
    )
    assert len(results().runs) == 1
    assert "undefined: f" in capsys.readouterr().out


def test_parts_are_made_of_inputs_that_need_one_another(tmp_path: Path) -> None:
    """Pairs whose second halves come last, so that no first inputs link alone."""
    names = []
    for number in range(20):
        cubin = one_kernel(f"k{number}")
        if number < 10:
            cubin.symbols.append(Symbol(f"f{number}", FUNC))
        else:
            cubin.symbols.append(Symbol(f"f{number - 10}", FUNC, section=4))
        names.append(str(tmp_path / f"{number:02}.cubin"))
        Path(names[-1]).write_bytes(cubin.build())
    given = Link(["-arch=sm_80", *names], str(tmp_path))

    def is_whole(size: int) -> bool:
        part = set(given.part(size))
        return all((number + 10) % 20 in part for number in part)

    def seconds(size: int) -> float:
        if not is_whole(size):
            raise RunFailed("undefined")
        return 0.001 * size

    taking = [Planted("linker", seconds)]
    found = Contest(given, taking, Plan(rounds=6), lambda words: None).run()
    growth = found.growth("linker")
    assert growth is not None
    assert growth.value == pytest.approx(1.0)
    assert found.facts["growth"].startswith("of parts whose inputs need one another")
    sizes = {
        next(iter(found.of("linker", part=part).values())).inputs for part in found.parts("linker")
    }
    assert sizes == {2, 4, 10, 20}


def test_a_program_in_one_piece_has_no_parts(tmp_path: Path) -> None:
    cubins = []
    for number in range(20):
        cubin = one_kernel(f"k{number}")
        cubin.symbols.append(Symbol(f"f{number}", FUNC, section=4))
        cubin.symbols.append(Symbol(f"f{(number + 1) % 20}", FUNC))
        cubins.append(cubin.build())
    assert groups_of(cubins) == [list(range(20))]
    assert groups_of([b"no cubin", cubins[3], b"", cubins[4]]) == [[0], [1, 3], [2]]


def test_few_inputs_are_no_growth(link: list[str], tmp_path: Path) -> None:
    words = [*link[:3], "-o", "out"]
    found = contest(words, tmp_path, Plan(rounds=1), Planted("a", lambda size: 1.0))
    assert found.facts["growth"] == "not measured: 2 inputs besides archives, 16 are needed"


def test_answers_are_compared(link: list[str], tmp_path: Path) -> None:
    planted = linker(tmp_path)
    options = ["--rounds=1", "--no-growth", "--csv=out.csv", f"--nvlink={planted}"]
    words = [*options, *OTHERS[:1], *OTHERS[2:], "--", *link]
    assert main(words) == 0
    assert results().answers["pylink API"] == "equal byte by byte with nvlink's"
    (tmp_path / "truth").write_bytes(
        pylink.link([f"m{number:02}.cubin" for number in range(3)], arch="sm_80").image
    )
    assert main(words) == 1
    assert re.match("DIFFERS from nvlink's in .", results().answers["pylink API"])
    (tmp_path / "truth").write_bytes(b"no cubin")
    assert main(words) == 1
    assert "DIFFERS" in results().answers["pylink API"]


def planted_linker(folder: Path, version: str, output: str, does: str = "") -> str:
    """The path of a program in a folder of its own that says it is that nvlink."""
    folder.mkdir()
    path = Path(linker(folder, does))
    text = path.read_text().replace("V13.0.88", f"V{version}")
    path.write_text(text.replace("cat truth", f"cat {output}"))
    return str(path)


def test_an_answer_is_compared_with_that_of_its_release(link: list[str], tmp_path: Path) -> None:
    """Each release has a format of its own, and a link follows one of them."""
    (tmp_path / "other").write_bytes(b"another format")
    newer = planted_linker(tmp_path / "newer", "13.5.37", "other")
    options = ["--rounds=1", "--no-growth", "--csv=out.csv", f"--nvlink={newer}"]
    words = [*OTHERS[:1], *OTHERS[2:], "--", *link]
    assert main([*options, *words]) == 0
    assert results().answers["pylink API"] == (
        "not compared: it follows release 13.0.88, and nvlink is of 13.5.37"
    )
    same = planted_linker(tmp_path / "same", "13.0.88", "truth")
    assert main([*options, f"--nvlink={same}", *words]) == 0
    assert results().answers == {
        "pylink API": "equal byte by byte with nvlink 13.0.88's",
        "nvlink 13.5.37": "the reference of others of release 13.5.37",
        "nvlink 13.0.88": "the reference of others of release 13.0.88",
    }
    (tmp_path / "truth").write_bytes(b"no cubin")
    assert main([*options, f"--nvlink={same}", *words]) == 1
    assert results().answers["pylink API"].startswith("DIFFERS from nvlink 13.0.88's")


def test_two_programs_of_one_release_are_two_contenders(link: list[str], tmp_path: Path) -> None:
    quick = planted_linker(tmp_path / "quick", "13.0.88", "truth")
    slow = planted_linker(tmp_path / "slow", "13.0.88", "truth", "sleep 0.2")
    options = ["--rounds=2", "--no-growth", "--csv=out.csv", *OTHERS]
    nvlinks = [f"--nvlink={path}" for path in (quick, slow, quick)]
    assert main([*options, *nvlinks, "--", *link]) == 0
    found = results()
    assert found.contenders() == [f"nvlink 13.0.88 {quick}", f"nvlink 13.0.88 {slow}"]
    assert min(found.seconds(f"nvlink 13.0.88 {slow}")) >= 0.2
    assert len(found.seconds(f"nvlink 13.0.88 {quick}")) == 2
    assert found.answers[f"nvlink 13.0.88 {slow}"] == (
        f"equal byte by byte with nvlink 13.0.88 {quick}'s"
    )


@pytest.mark.parametrize(
    ("release", "other", "may"),
    [
        ("13.0", "13.0.88", True),
        ("13.5", "13.0.88", False),
        ("13.2.51", "13.2.86", False),
        ("", "13.0.88", True),
        ("13.1", "13.10", False),
    ],
)
def test_releases_are_equal_as_far_as_both_say(release: str, other: str, may: bool) -> None:
    assert may_be_equal(release, other) == may_be_equal(other, release) == may


def test_files_of_the_user_stay(link: list[str], tmp_path: Path) -> None:
    (tmp_path / "out.cubin").write_text("old")
    (tmp_path / "map").write_text("old")
    before = sorted(os.listdir(tmp_path))
    words = ["--rounds=1", *OTHERS[3:], "--", "pylink", "link", *link, "--Map", "map"]
    assert main(words) == 0
    assert (tmp_path / "out.cubin").read_text() == (tmp_path / "map").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == before


# Where it is when the signal comes: in a program that is started, in one that is called, and in a
# client of a server.
MOMENTS = {
    "program": [*OTHERS],
    "call": [*OTHERS[:1], *OTHERS[2:]],
    "server": OTHERS[:3],
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("name", "status"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_signal_leaves_nothing(
    link: list[str], tmp_path: Path, moment: str, name: str, status: int
) -> None:
    """The terminal sends an interrupt to the whole group."""
    planted = linker(tmp_path, f"echo $$ >started; kill -{name} -$(cat pid); sleep 60")
    program = f"""
import os, signal, sys
os.setsid()
signal.signal(signal.SIGINT, signal.SIG_DFL)
open("pid", "w").write(str(os.getpid()))
from pylink.command.cli import main
sys.exit(main({["bench", *MOMENTS[moment], f"--nvlink={planted}", "--", *link]!r}))
"""
    for made in ("pid", "started"):
        (tmp_path / made).touch()
    before = sorted(os.listdir(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == status
    assert done.stderr == b""
    assert sorted(os.listdir(tmp_path)) == before
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "started").read_text()), 0)


def test_options_of_the_environment_are_left_out(
    link: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_OPTIONS", "--bogus")
    options = ["--rounds=1", "--no-growth", "--csv=out.csv", *OTHERS[:2], *OTHERS[4:]]
    assert main([*options, f"--nvlink={linker(tmp_path)}", "--", *link]) == 0
    assert len(results().seconds("pylink CLI")) == 1
    assert len(results().seconds("pylink serve")) == 1


def test_a_helper_that_ended_between_requests_is_an_error(tmp_path: Path) -> None:
    launcher = Launcher()
    launcher.run(["true"], tmp_path)
    assert launcher._process is not None
    os.kill(launcher._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, launcher._process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(RunFailed, match="ended with status -9"):
        launcher.run(["true"], tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no link given"),
        (["-arch=sm_80"], "the link has no inputs"),
        (["m00.cubin"], "the link has no -arch"),
        (["-arch=sm_80", "gone.cubin"], "gone.cubin: No such file or directory"),
        (["-arch=sm_80", "pipe"], "pipe: not a regular file"),
        (["-arch=sm_80", "-bogus", "m00.cubin"], "bogus"),
        (["-arch=sm_80", "-optf", "gone"], "gone"),
    ],
)
def test_what_cannot_be_measured_is_said(
    link: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    os.mkfifo("pipe")
    assert main(["--", *words]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("pylink bench: ")


def test_words_that_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rounds=0", "--", "a"]) == 2
    assert main(["-arch=sm_80", "a.cubin"]) == 2
    assert "usage: pylink bench [options] -- <link>" in capsys.readouterr().err
    assert main(["--without=nobody", "--folder=.", "--", "-arch=sm_80", __file__]) == 1
    assert "there is no 'nobody' to omit; the contenders are copy," in capsys.readouterr().err


def test_the_words_of_a_part(link: list[str], tmp_path: Path) -> None:
    Path("more").write_text('m02.cubin "m03.cubin" -o elsewhere')
    Path("lib.a").write_bytes(b"!<arch>\n")
    words = "nvlink -w -arch=sm_80 m00.cubin lib.a -m64 -optf more --Map=map m01.cubin"
    given = Link(words.split(" "), "/made")
    assert given.linker == "nvlink"
    assert given.output == "elsewhere"
    assert given.size == 4
    start = "-w -arch=sm_80 m00.cubin lib.a -m64 m02.cubin"
    end = "-o /made/linked"
    assert " ".join(given.arguments_for(4)) == f"{start} m03.cubin --Map /made/Map m01.cubin {end}"
    assert " ".join(given.arguments_for(2)) == f"{start} --Map /made/Map {end}"


def test_many_words_stand_in_a_file(link: list[str], tmp_path: Path) -> None:
    (tmp_path / "a b \\c.cubin").write_bytes(one_kernel().build())
    given = Link(["-arch=sm_80", "a b \\c.cubin", *["m00.cubin"] * 20000], str(tmp_path))
    option, path = given.arguments_for(20001)
    assert option == "--options-file"
    again = Link(["--options-file", path], str(tmp_path))
    assert again.inputs == given.inputs
    assert again.output == given.output_path


def test_nvjitlink_is_asked_for_no_more_than_it_has(link: list[str], tmp_path: Path) -> None:
    words = ["-arch=sm_80", "-m64", "-g", "-Xptxas", "-O3,-v", "m00.cubin"]
    assert jit_options(Link(words, "")) == ["-arch=sm_80", "-g", "-Xptxas=-O3", "-Xptxas=-v"]
    with pytest.raises(RunFailed, match="it has no --relocatable-link"):
        jit_options(Link([*words, "-r"], ""))


def test_a_program_that_is_not_there() -> None:
    launcher = Launcher()
    with pytest.raises(RunFailed, match="/gone: No such file or directory"):
        launcher.run(["/gone"], "/")
    with pytest.raises(RunFailed, match=r"^because$"):
        launcher.run(["sh", "-c", "echo because >&2; exit 3"], "/")
    assert launcher.run(["sh", "-c", "echo fine"], "/").output == "fine\n"
    launcher.close()


# Intervals.


def test_an_interval_of_a_median_holds_it() -> None:
    chance = random.Random(1)
    for count in (6, 11, 20):
        held = sum(
            found.low <= 1.0 <= found.high
            for found in (
                median_of([chance.lognormvariate(0, 0.5) for _ in range(count)])
                for _ in range(1000)
            )
        )
        assert held >= 935
    assert median_of([3.0, 1.0, 2.0]) == Estimate(2.0, 1.0, 3.0, False)
    assert median_of([4.0]) == Estimate(4.0, 4.0, 4.0, False)
    assert median_of(list(range(1, 12))) == Estimate(6, 2, 10, True)


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_an_interval_of_a_change_holds_it(factor: float) -> None:
    chance = random.Random(2)

    def times(scale: float, count: int) -> list[float]:
        return [scale * chance.lognormvariate(0, 0.2) for _ in range(count)]

    held = sum(
        found.low <= factor <= found.high
        for found in (change_of(times(0.1, 8), times(0.1 * factor, 11)) for _ in range(1000))
    )
    assert 935 <= held < 1000
    assert not change_of([1.0] * 3, [1.0] * 3).certain
    assert change_of([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3]).low > 1


def test_an_exponent_is_that_of_the_rounds() -> None:
    slow = [[2.0 * size for size in (1, 2, 4)], [20.0 * size for size in (1, 2, 4)]]
    assert exponent_of([1, 2, 4], slow).value == pytest.approx(1.0)


# Two results.


def made(scales: dict[str, float], *, seed: int = 0, rounds: int = 11) -> Results:
    """A result in which each contender takes about so long; rounds are slow and quick together."""
    chance = random.Random(seed)
    found = Results(facts={"cores": "2", "load": "0.10", compare.DIGEST: "1", "date": str(seed)})
    for number in range(rounds):
        together = chance.lognormvariate(0, 0.1)
        for name, scale in scales.items():
            run = Run(scale * together * chance.uniform(1, 1.04), scale, 1000, "")
            found.add_run(name, "warm", WHOLE, 16, number, run)
            found.about[name] = f"{name}, nvlink 13.0.88" if name == "nvlink" else name
    return found


TIMES = {COPY: 0.01, "pylink CLI": 0.1, "nvlink": 0.3}


def verdicts(before: Results, after: Results) -> dict[str, str]:
    return {row.contender: row.verdict for row in compare.compare(before, after)[1]}


def test_the_same_twice_is_no_difference() -> None:
    seen = [
        verdict
        for seed in range(40)
        for verdict in verdicts(made(TIMES, seed=seed), made(TIMES, seed=seed + 100)).values()
    ]
    assert seen.count("no difference seen") >= 0.85 * len(seen)
    assert compare.control_of(made(TIMES), made(TIMES)) == "nvlink"


def test_a_slower_build_is_found() -> None:
    found = verdicts(made(TIMES, seed=1), made(TIMES | {"pylink CLI": 0.14}, seed=2))
    assert found["pylink CLI"] == "slower"
    assert found[COPY] == "no difference seen"
    found = verdicts(made(TIMES, seed=1), made(TIMES | {"pylink CLI": 0.06}, seed=2))
    assert found["pylink CLI"] == "faster"


def test_a_slower_machine_is_no_slower_build() -> None:
    slow = {name: 2 * seconds for name, seconds in TIMES.items()}
    found = verdicts(made(TIMES, seed=1), made(slow, seed=2))
    assert found["nvlink"] == "slower"
    assert found["pylink CLI"] == "no difference seen except for the machine's"
    slow["pylink CLI"] = 0.1  # as long as before, on a machine half as fast
    assert verdicts(made(TIMES, seed=1), made(slow, seed=2))["pylink CLI"] == (
        "faster, only beside the control"
    )


def test_few_rounds_tell_nothing() -> None:
    before, after = made(TIMES, rounds=3), made(TIMES | {"pylink CLI": 0.5}, rounds=3)
    assert set(verdicts(before, after).values()) == {"too few rounds to tell"}


def test_another_release_is_no_control() -> None:
    before, after = made(TIMES), made(TIMES)
    after.about["nvlink"] = "nvlink, nvlink 13.5.37"
    assert compare.control_of(before, after) == COPY


def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    before, after = made(TIMES, seed=1), made(TIMES | {"pylink CLI": 0.14}, seed=2)
    after.facts |= {"load": "7.9", compare.DIGEST: "2", "kernel": "Linux 7"}
    names = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    for name, run in zip(names, (before, after), strict=True):
        Path(name).write_text(to_csv(run))
    out = tmp_path / "out.html"
    assert main(["--compare", *names, "--html", str(out)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"pylink CLI .* slower", said)
    assert "the links are not the same: their inputs differ" in said
    assert f"{names[1]}: other programs were at work (load 7.9 on 2 cores)" in said
    assert "Linux 7" in said
    assert "pylink CLI: slower" in out.read_text()
    assert main(["--compare", *names, "a.cubin"]) == 1
    assert main(["--compare", names[0], __file__]) == 1
    assert main(["--compare", names[0], "/gone.csv"]) == 1


# Files.


def test_results_are_read_as_they_were_written() -> None:
    before = made(TIMES, seed=3)
    before.facts["command"] = "nvlink -arch=sm_80 'a b.cubin'"
    before.answers["nvlink"] = "equal: by chance"
    before.failures["nvJitLink"] = "two\nlines"
    before.add_run(COPY, RESTED, Fraction(1, 8), 2, 0, Run(0.5, 0.25, 7, ""))
    after = from_csv(to_csv(before), "name")
    assert after.facts == before.facts
    assert after.answers == before.answers
    assert after.failures == {"nvJitLink": "two lines"}
    assert [run.part for run in after.runs] == [run.part for run in before.runs]
    for run, other in zip(after.runs, before.runs, strict=True):
        assert math.isclose(run.seconds, other.seconds, abs_tol=1e-9)


HEAD = "contender,mode,part,inputs,round,seconds,cpu_seconds,peak_bytes\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name: not a result of pylink bench --csv"),
        ("a,b\n1,2\n", "name: not a result of pylink bench --csv"),
        ("[" * 200_000, "name: not a result of pylink bench --csv"),
        (HEAD + "c" * 200_000 + ",warm,1,2,0,1,1,1\n", "name:2: no run: ccc"),
        (HEAD, "name: there are no runs in it"),
        (HEAD + "copy,warm,1,2\n", "name:2: no run: copy,warm,1,2"),
        (HEAD + "copy,warm,1/0,2,0,1,1,1\n", "name:2: no run"),
        (HEAD + "copy,warm,1,2,0,nan,1,1\n", "name:2: no run"),
        (HEAD + "copy,warm,1,2,0,0,1,1\n", "name:2: no run"),
        (HEAD + "copy,cool,1,2,0,1,1,1\n", "name:2: no run"),
        ("# fact\n" + HEAD, "name:1: no fact: # fact"),
    ],
)
def test_a_file_that_is_no_result(text: str, said: str) -> None:
    with pytest.raises(MalformedResults, match=re.escape(said)):
        from_csv(text, "name")


def test_a_page_is_whole_and_names_are_text(link: list[str], tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    plan = Plan(rounds=6, rest=0.001)
    found = contest(link, tmp_path, plan, Planted("<b>a</b>", lambda size: 0.1 * size))
    found.facts["label"] = "<script>alert(1)</script>"
    shown = page(found)
    assert "<script" not in shown
    assert "<b>a</b>" not in shown
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    for words in ("right after one another", "after a rest", "How time grows with the inputs"):
        assert words in shown
    assert not re.search(r"(src|href)\s*=\s*.?http|url\(.?http|@import", shown)


def test_without_matplotlib_a_page_says_what_to_install(
    link: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    found = contest(
        link, tmp_path, Plan(rounds=6, rest=0.001), Planted("a", lambda size: 0.1 * size)
    )
    note = "a plot needs the package matplotlib: pip install &#39;pylink-cuda[plot]&#39;"
    monkeypatch.delitem(sys.modules, "pylink.report.view.plots", raising=False)
    monkeypatch.delattr("pylink.report.view.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = page(found)
    assert note in shown
    assert "<svg" not in shown


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100"])
def test_all_link_the_demo_alike(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = oracle.toolchain().tool("nvlink")
    words = [tool, f"-arch={arch}", *map(str, demo.cubins(arch)), "-o", "out.cubin"]
    assert main(["--rounds=2", "--csv=out.csv", "--html=out.html", "--", *words]) == 0
    found = results()
    assert found.contenders() == [
        "copy",
        "pylink API",
        "pylink CLI",
        "pylink serve",
        "nvlink",
        "nvJitLink",
    ]
    assert not found.failures
    same = "equal with nvlink's except for the linker's own note"
    assert found.answers["nvJitLink"] == same
    if arch == "sm_100":  # two modules of the demo are copies in part
        same += ", and copies of Mercury sections, which --merc-dedup=off keeps"
    assert found.answers["pylink API"] == found.answers["pylink CLI"] == same
    assert found.about["nvlink"] == f"{tool}, nvlink 13.0.88, the whole process"
    assert found.facts["growth"].startswith("not measured: 13 inputs")
    assert found.peak("nvlink") > 1_000_000
    assert "pylink API" in Path("out.html").read_text()

"""`pylink.link_many`: each result is that of `pylink.link`, and what jobs share is read once."""

from __future__ import annotations

import io
import os
import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import archive_builder, demo
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

import pylink
from pylink import LinkError, LinkJob, LinkResult
from pylink._native import inputfiles, payloads
from pylink.inputs.picks import Pick
from pylink.rowformats import PICK

ARCHS = ("sm_90a", "sm_100")
THREADS = (1, 2, 3, 8)
FLAGS = {"sm_90a": 0x100011, "sm_100": 0x11}
MODES = ("none", "lz4", "zstd")


def number_of(arch: str) -> int:
    return int(arch.strip("sm_a"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects of the demo's modules with code for all architectures, in each mode, and archives."""
    place = tmp_path_factory.mktemp("many")
    files = {arch: demo.cubins(arch) for arch in ARCHS}
    for number, first in enumerate(files[ARCHS[0]]):
        cubins = {arch: files[arch][number].read_bytes() for arch in ARCHS}
        for mode in MODES:
            entries = [
                entry(cubins[arch], number_of(arch), mode=mode, flags=FLAGS[arch]) for arch in ARCHS
            ]
            ids = ("__nv_module_id", f"_{number:08x}_{mode}\0".encode())
            data = host_object([("__nv_relfatbin", container(*entries)), SEGMENT, ids])
            (place / f"{first.stem}.{mode}.o").write_bytes(data)
        for arch in ARCHS:
            (place / f"{first.stem}.{arch}.cubin").write_bytes(cubins[arch])
    names = stems(place)
    members = [(f"{name}.o", (place / f"{name}.zstd.o").read_bytes()) for name in names[1:]]
    (place / "librest.a").write_bytes(archive_builder.gnu(members))
    return place


def stems(folder: Path) -> list[str]:
    return sorted(file.name.split(".")[0] for file in folder.glob("*.none.o"))


def objects(folder: Path, mode: str) -> list[str]:
    return [f"{name}.{mode}.o" for name in stems(folder)]


def alone(job: LinkJob) -> LinkResult | LinkError:
    """What `link` makes of a job."""
    try:
        return pylink.link(
            job.inputs, job._options, arch=job.arch, output=job.output, **job._keywords
        )
    except LinkError as error:
        return error


def assert_same(made: Sequence[LinkResult | LinkError], jobs: Sequence[LinkJob]) -> None:
    assert len(made) == len(jobs)
    for result, job in zip(made, jobs, strict=True):
        expected = alone(job)
        if isinstance(expected, LinkError):
            assert isinstance(result, LinkError), job
            assert str(result) == str(expected)
        else:
            assert isinstance(result, LinkResult), result
            assert result.image == expected.image
            assert result.arch == expected.arch
            assert repr(result.inputs) == repr(expected.inputs)
        assert [record.where for record in result.diagnostics] == [
            record.where for record in expected.diagnostics
        ]
        assert [record.message for record in result.diagnostics] == [
            record.message for record in expected.diagnostics
        ]


def all_jobs(folder: Path) -> list[LinkJob]:
    """Jobs of each kind of input, for several architectures, some of which fail."""
    names = stems(folder)
    jobs = []
    for mode in MODES:
        for arch in ARCHS:
            jobs.append(LinkJob(objects(folder, mode), arch=arch))
            jobs.append(LinkJob(objects(folder, mode), arch=arch, verbose=True))
    jobs += [LinkJob([f"{name}.{arch}.cubin" for name in names], arch=arch) for arch in ARCHS]
    jobs += [
        LinkJob([f"{names[0]}.zstd.o", "librest.a"], arch="sm_90a"),
        LinkJob([f"{names[0]}.lz4.o"], arch="sm_90a", library=["rest"], library_path=["."]),
        LinkJob([f"{names[0]}.lz4.o"], arch="sm_90a", library=["absent"], library_path=["."]),
        LinkJob([f"{names[0]}.lz4.o", "absent.o"], arch="sm_90a"),
        LinkJob([], arch="sm_90a"),
        LinkJob(objects(folder, "zstd"), arch="sm_17"),
        LinkJob(objects(folder, "zstd"), arch="sm_75"),  # without code
        LinkJob(objects(folder, "zstd"), arch="sm_100", max_uncompressed_size=100),
        LinkJob([pylink.Input(f"{names[0]}.none.o", kind="cubin")], arch="sm_90a"),
        LinkJob([*objects(folder, "none"), f"{names[0]}.none.o"], arch="sm_100"),  # one twice
    ]
    return jobs


@pytest.mark.parametrize("threads", THREADS)
def test_results_are_those_of_single_links(
    folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    jobs = all_jobs(folder)
    made = pylink.link_many(jobs, threads)
    assert_same(made, jobs)
    failed = [result for result in made if isinstance(result, LinkError)]
    assert 5 < len(failed) < len(jobs) // 2


@pytest.mark.parametrize("seed", range(6))
def test_random_jobs(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any order, any inputs, by path and in memory; objects may be damaged."""
    monkeypatch.chdir(folder)
    choose = random.Random(seed)
    contents = {file.name: file.read_bytes() for file in folder.glob("*.o")}
    for name in choose.sample(sorted(contents), 3):
        data = bytearray(contents[name])
        for _ in range(4):
            data[choose.randrange(64, len(data))] ^= 1 << choose.randrange(8)
        contents[f"damaged.{name}"] = bytes(data)
    views = {name: bytearray(data) for name, data in contents.items()}
    jobs = []
    for _ in range(24):
        arch = choose.choice(ARCHS)
        inputs: list[object] = []
        for stem in stems(folder):
            name = f"{stem}.{choose.choice(MODES)}.o"
            if f"damaged.{name}" in contents and choose.random() < 0.5:
                name = f"damaged.{name}"
                inputs.append((name, contents[name]))
            else:
                inputs.append(choose.choice([name, Path(name), (name, contents[name])]))
            if choose.random() < 0.2:
                inputs[-1] = views[name]
        choose.shuffle(inputs)
        jobs.append(LinkJob(inputs, arch=arch))  # type: ignore[arg-type]  # of all forms
    assert_same(pylink.link_many(jobs, choose.choice(THREADS)), jobs)


def test_each_file_is_read_once_and_each_payload_decompressed_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    read: Counter[bytes | None] = Counter()
    unpacked: Counter[tuple[int, int]] = Counter()
    real_read, real_gather = inputfiles.read_files, payloads.gather

    def read_files(paths, *rest, **named):  # type: ignore[no-untyped-def]
        read.update(paths)
        return real_read(paths, *rest, **named)

    def gather(picks, arenas, produce, *pages):  # type: ignore[no-untyped-def]
        for number in range(len(picks) // PICK.size):
            pick = Pick(picks, number)
            if pick.codec:
                unpacked[id(arenas[pick.arena]), pick.offset] += 1
        return real_gather(picks, arenas, produce, *pages)

    monkeypatch.setattr(inputfiles, "read_files", read_files)
    monkeypatch.setattr(payloads, "gather", gather)
    jobs = [LinkJob(objects(folder, "zstd"), arch=arch) for arch in ARCHS for _ in range(3)]
    made = pylink.link_many(jobs, 3)
    assert all(isinstance(result, LinkResult) for result in made)
    assert set(read.values()) == {1}
    assert len(read) == len(stems(folder))
    assert set(unpacked.values()) == {1}
    assert len(unpacked) == len(stems(folder)) * len(ARCHS)


def test_a_pipe_may_be_an_input_of_several_jobs(folder: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first, *rest = demo.cubins("sm_90a")
    writer = threading.Thread(target=pipe.write_bytes, args=(first.read_bytes(),))
    writer.start()
    made = pylink.link_many([LinkJob([pipe, *rest], arch="sm_90a")] * 3, 2)
    writer.join()
    expected = pylink.link([first, *rest], arch="sm_90a").image
    assert [result.image for result in made if isinstance(result, LinkResult)] == [expected] * 3


def test_jobs_that_are_watched_are_like_single_links(folder: Path, tmp_path: Path) -> None:
    files = [folder / name for name in objects(folder, "lz4")]
    jobs = [
        LinkJob(files, arch="sm_90a", output=tmp_path / "a", Map=tmp_path / "map"),
        LinkJob(files, arch="sm_90a", profile=True),
        LinkJob(files, arch="sm_90a", depfile=tmp_path / "d", output=tmp_path / "b"),
        LinkJob(files, arch="sm_100", pass_remarks=".*", output=tmp_path / "c"),
    ]
    made = pylink.link_many(jobs)
    assert_same(made, jobs)
    assert isinstance(made[1], LinkResult)
    assert made[1].profile is not None
    assert (tmp_path / "map").is_file()
    assert str(files[0]) in (tmp_path / "d").read_text()
    for result, name in zip(made, ("a", None, "b", "c"), strict=True):
        if name is not None:
            assert isinstance(result, LinkResult)
            assert (tmp_path / name).read_bytes() == result.image


def test_outputs_of_jobs_may_not_meet(folder: Path, tmp_path: Path) -> None:
    files = demo.cubins("sm_90a")
    own = tmp_path / "own.cubin"
    own.write_bytes(files[0].read_bytes())
    with pytest.raises(ValueError, match="jobs 0 and 1 both write"):
        pylink.link_many(
            [LinkJob(files, arch="sm_90a", output=tmp_path / "same") for _ in range(2)]
        )
    with pytest.raises(ValueError, match=r"job 1 writes '.*own.cubin', which job 0 reads"):
        pylink.link_many(
            [
                LinkJob([own, *files[1:]], arch="sm_90a"),
                LinkJob(files, arch="sm_90a", output=own),
            ]
        )
    renamed = pylink.Input(own, name="other")
    for source in (own, renamed):
        (failed,) = pylink.link_many([LinkJob([source, *files[1:]], arch="sm_90a", output=own)])
        assert isinstance(failed, LinkError)
        assert [record.kind for record in failed.errors] == ["output-is-input"]
    archive = tmp_path / "libthin.a"
    archive.write_bytes(archive_builder.thin([own.name], [own.stat().st_size]))
    # An input with another name than its path, a member of a thin archive, and a missing input.
    absent = tmp_path / "absent"
    for source, output in ((renamed, own), (archive, own), (absent, absent)):
        with pytest.raises(ValueError, match=f"job 0 writes '{output}', which job 1 reads"):
            pylink.link_many(
                [
                    LinkJob(files, arch="sm_90a", output=output),
                    LinkJob([source, *files[1:]], arch="sm_90a"),
                ]
            )
    assert own.read_bytes() == files[0].read_bytes()
    assert not (tmp_path / "same").exists()


def test_inputs_with_other_names_are_read_before_the_first_link(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    first, *others = objects(folder, "zstd")
    gone = tmp_path / "gone.o"
    gone.write_bytes((folder / first).read_bytes())
    names = ("a", "b", others[0])
    jobs = [
        LinkJob([*others, pylink.Input(gone, name=name)], arch="sm_90a", verbose=True)
        for name in names
    ]
    jobs.append(LinkJob([*others, pylink.Input(tmp_path / "absent", name="c")], arch="sm_90a"))
    expected = [alone(job) for job in jobs]
    made = pylink.link_many(jobs, 1, progress=lambda *_: gone.unlink(missing_ok=True))
    assert not gone.exists()
    assert isinstance(made[3], LinkError)
    assert str(made[3]) == str(expected[3])
    for result, single in zip(made[:3], expected[:3], strict=True):
        assert isinstance(result, LinkResult), result
        assert isinstance(single, LinkResult)
        assert result.image == single.image
        assert repr(result.inputs) == repr(single.inputs)
        assert str(result.diagnostics) == str(single.diagnostics)


def test_logs_come_in_the_order_of_the_jobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    log = io.StringIO()
    jobs = [
        LinkJob([f"{name}.none.o", f"absent-{name}.o"], arch="sm_90a", log=log)
        for name in stems(folder)
    ]
    pylink.link_many(jobs, 3)
    assert [line for line in log.getvalue().splitlines() if "absent" in line] == [
        line
        for name in stems(folder)
        for line in log.getvalue().splitlines()
        if f"absent-{name}.o" in line
    ]
    assert log.getvalue().count("absent-") == len(jobs)


def test_a_kept_error_has_no_frames_and_can_be_raised(folder: Path) -> None:
    (error,) = pylink.link_many([LinkJob(["absent.cubin"], arch="sm_90a")])
    assert isinstance(error, LinkError)
    assert error.__traceback__ is None
    with pytest.raises(LinkError, match=r"absent\.cubin"):
        raise error


def test_wrong_arguments_are_refused_before_any_link(tmp_path: Path) -> None:
    files = demo.cubins("sm_90a")
    good = LinkJob(files, arch="sm_90a", output=tmp_path / "out")
    with pytest.raises(TypeError, match="job 1 is not a LinkJob"):
        pylink.link_many([good, {"arch": "sm_90a"}])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="job 1, input 0: "):
        pylink.link_many([good, LinkJob([3], arch="sm_90a")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="-1"):
        pylink.link_many([good], -1)
    assert not (tmp_path / "out").exists()
    with pytest.raises(TypeError, match="inputs is a list"):
        LinkJob("a.cubin", arch="sm_90a")
    with pytest.raises(TypeError, match="unknown option 'nonsense'"):
        LinkJob(files, arch="sm_90a", nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="arch"):
        LinkJob(files, arch=90)  # type: ignore[arg-type]
    assert pylink.link_many([]) == []

"""The work of an index on a Dask cluster: the same bytes as in one process, whoever is lost."""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import demo
from helpers.fleet_lost import lost_marks, made_unless_lost
from helpers.fleet_reference import bytes_of, plant, settle

from pylink.command.cli import main
from pylink.fleet import cluster as cluster_module
from pylink.fleet import parts, updates
from pylink.fleet.cluster import Dask
from pylink.fleet.engine import Engine, EngineError, Local
from pylink.fleet.index import Index
from pylink.terminal.progress import Progress

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
distributed = pytest.importorskip("distributed")

# A cluster whose scheduler and only worker are a process of their own.
SCHEDULER = """
import time
from distributed import LocalCluster
with LocalCluster(
    n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
) as made:
    print(made.scheduler_address, flush=True)
    time.sleep(60)
"""

pytestmark = pytest.mark.filterwarnings("default")  # of the cluster's own machinery


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
    )
    yield made
    # Releases of 2024 may wait for ever for a worker when a cluster closes.
    try:
        made.close(timeout=60)
    except (TimeoutError, asyncio.TimeoutError):
        for worker in multiprocessing.active_children():
            worker.kill()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = plant(tmp_path / "tree").root
    for number in range(3):
        for path in demo.cubins("sm_100"):
            copy = root / f"part{number}" / path.name
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (root / "damaged.cubin").write_bytes(path.read_bytes()[:1000])
    settle()
    return root


def made(folder: Path, tree: Path, runner: Engine, progress: Any = None) -> dict[str, bytes]:
    index = Index.open_or_make(folder)
    updates.update(index, [bytes(tree)], runner, progress)
    runner.close()
    return bytes_of(folder)


def test_the_index_is_the_same_byte_for_byte(
    cluster: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_FILES", 5)
    alone = made(tmp_path / "alone", tree, Local())
    assert len(alone) > 3 * 9
    spread = made(tmp_path / "spread", tree, Dask(cluster.scheduler_address))
    assert spread == alone
    # And when both go on from where they are.
    (tree / "part0" / "new.cubin").write_bytes((tree / "part1/step.cubin").read_bytes())
    (tree / "part2/step.cubin").unlink()
    settle()
    alone = made(tmp_path / "alone", tree, Local())
    spread = made(tmp_path / "spread", tree, Dask(cluster.scheduler_address))
    assert spread == alone


@pytest.mark.parametrize("lost", [(3,), (0, 1, 5)])
def test_a_lost_worker_loses_nothing(
    cluster: Any,
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: tuple[int, ...],
) -> None:
    monkeypatch.setattr(parts, "PART_FILES", 5)
    alone = made(tmp_path / "alone", tree, Local())
    monkeypatch.setattr(updates, "make_part_fragment", made_unless_lost)
    marks = lost_marks(bytes(tree))
    marks.mkdir()
    for number in lost:
        (marks / str(number)).touch()
    spread = made(tmp_path / "spread", tree, Dask(cluster.scheduler_address))
    assert not list(marks.iterdir())
    assert spread == alone


def test_questions_have_the_same_answers(
    cluster: Any, tree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "alone", tree, Local())
    made(tmp_path / "spread", tree, Local())
    address = ["--scheduler", cluster.scheduler_address]
    for question in ("saving", "blockers", "repeats"):
        capfd.readouterr()
        told = []
        for folder, words in (("alone", []), ("spread", address)):
            options = [question, "--json", "--confirm", *words]
            assert main(["dedup", "ask", str(tmp_path / folder), *options]) == 0
            told.append(capfd.readouterr())
        assert told[0].out == told[1].out
        assert json.loads(told[0].out)
        confirmed = [shown.err.splitlines()[-1] for shown in told]
        assert confirmed[0] == confirmed[1]
        assert confirmed[0].endswith("are equal byte by byte")
    known = [
        {path.name: path.read_bytes() for path in (tmp_path / folder / "folding").iterdir()}
        for folder in ("alone", "spread")
    ]
    assert known[0] == known[1]
    assert known[0]


def test_workers_with_other_versions_are_refused(
    cluster: Any, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "versions", lambda: ("0.0", "1.0", "2.0"))
    runner = Dask(cluster.scheduler_address)
    with pytest.raises(EngineError, match=r"this process 0\.0, 1\.0, 2\.0"):
        made(tmp_path / "index", tree, runner)
    runner.close()
    assert not Index(tmp_path / "index").fragments


def test_a_scheduler_that_is_lost_ends_a_run(
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In one line; what was done until then counts for the next run."""
    monkeypatch.setattr(cluster_module, "SECONDS_TO_CONNECT", 5)
    monkeypatch.setattr(parts, "PART_FILES", 1)
    folder = tmp_path / "index"
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True
    ) as scheduler:
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()

        def set_amount(_: Progress, done: int, total: int) -> None:
            scheduler.kill()

        monkeypatch.setattr(Progress, "set_amount", set_amount)
        capfd.readouterr()
        assert main(["dedup", "index", str(tree), "-o", str(folder), "--scheduler", address]) == 1
        shown = capfd.readouterr().err
    reasons = ("the connection to the scheduler was lost", "the cluster failed: ")
    assert shown.startswith(tuple(f"pylink dedup index: {reason}" for reason in reasons))
    assert shown.count("\n") == 1
    done = updates.update(Index(folder), [], Local())
    assert 0 < done.read < done.files


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_scheduler_without_workers(
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """They are waited for, but not for ever; one that comes does the work."""
    monkeypatch.setattr(cluster_module, "SECONDS_WITHOUT_WORKERS", 0.4)
    monkeypatch.setattr(cluster_module, "SECONDS_TO_LOOK", 0.1)
    index = tmp_path / "index"
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as made:
        words = ["dedup", "index", str(tree), "-o", str(index)]
        words += ["--scheduler", made.scheduler_address]
        assert main(words) == 1
        shown = capfd.readouterr().err
        assert shown.startswith(
            "pylink dedup index: the scheduler has had no workers for 0.4 s: start some"
        )
        assert shown.count("\n") == 1
        with dask_setting("30 s"):
            starting = threading.Timer(1, made.scale, [1])
            starting.start()
            assert main(words) == 0
            starting.join()
    assert Index(index).fragments


def dask_setting(limit: str) -> Any:
    return pytest.importorskip("dask").config.set({cluster_module.SETTING: limit})


def test_a_cluster_that_grows_gets_more_tasks(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that grows with its work has none to begin with."""
    runner = Dask(cluster.scheduler_address)
    threads = iter([0, 4])
    monkeypatch.setattr(runner, "_count_threads", lambda: next(threads, 4))
    started: list[int] = []
    results = runner.map(str, map(started.append, range(100)))
    next(results)
    assert len(started) == cluster_module.WAITING_PER_THREAD
    next(results)
    assert len(started) == 1 + 4 * cluster_module.WAITING_PER_THREAD
    runner.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_a_cluster_may_ask_for_certificates(tmp_path: Path) -> None:
    """They are those of Dask's settings, as for its own client."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    tls = {"ca-file": certificate}
    for role in ("scheduler", "worker", "client"):
        tls |= {f"{role}.cert": certificate, f"{role}.key": key}
    settings = {f"distributed.comm.tls.{name}": value for name, value in tls.items()}
    with (
        pytest.importorskip("dask").config.set(settings),
        distributed.LocalCluster(
            n_workers=1,
            processes=False,
            protocol="tls",
            security=distributed.Security(),
            dashboard_address=":0",
        ) as made,
    ):
        assert made.scheduler_address.startswith("tls://")
        runner = Dask(made.scheduler_address)
        assert sorted(runner.map(abs, [-1, 2])) == [1, 2]
        runner.close()


def test_a_worker_is_no_scheduler(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = cluster.workers[0].worker_address
    words = ["-o", str(tmp_path / "index"), "--scheduler", address]
    assert main(["dedup", "index", str(tmp_path), *words]) == 1
    shown = capfd.readouterr().err
    assert shown == f"pylink dedup index: {address}: no scheduler answers: it is a Worker\n"


def test_no_scheduler_answers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    silent: str,
) -> None:
    """Whatever the address is, in one line, and without what a client says that goes."""
    monkeypatch.setattr(cluster_module, "SECONDS_TO_CONNECT", 1)
    index = str(tmp_path / "index")
    for address in ("tcp://127.0.0.1:1", "nonsense://x", "nonsense", "", "tls://x:1", silent):
        assert main(["dedup", "index", str(tmp_path), "-o", index, "--scheduler", address]) == 1
        gc.collect()
        shown = capfd.readouterr().err
        assert shown.startswith(f"pylink dedup index: {address}: no scheduler answers")
        assert shown.count("\n") == 1

"""Says in the head of a run whether the CUDA tools are there, and what may be skipped.

No test fails for the time that it takes: a machine may be busy.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hazards import collected
from helpers import oracle, skips
from helpers.threads import THREADS, threads
from helpers.through_nvcc import overlay_nvcc
from hypothesis import settings

# Nothing to compare with: `make test` does not ask for this release, `make test-releases` does.
collect_ignore = [] if oracle.by_library() else ["differential/test_release_12_9.py"]

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def code_that_differs_from_nvlinks_has_no_hazard() -> Iterator[None]:
    """Code that comparisons of this run saw to differ waits for all that it uses."""
    yield
    found = list(collected.findings())
    assert not found, "\n".join(found[:20])


@pytest.fixture(autouse=True)
def threads_of_links(request: pytest.FixtureRequest) -> Iterator[None]:
    """Comparisons with the real tool take 1, 2, 3 and 8 threads in turns, also for small inputs."""
    if "differential" not in request.path.parts:
        yield
        return
    number = zlib.crc32(request.node.nodeid.encode())
    with threads(THREADS[number % len(THREADS)]):
        yield


@pytest.fixture(scope="session")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nvcc of an overlay, for tests that compare what it prints (`helpers.through_nvcc`)."""
    return overlay_nvcc(tmp_path_factory.mktemp("overlay") / "cuda")


def pytest_configure(config: pytest.Config) -> None:
    if skips.REQUIRED:
        config.pluginmanager.register(skips.SkipPolicy())


def pytest_report_header() -> list[str]:
    found = oracle.find()
    if found is None:
        tools = f"no nvlink {oracle.NVLINK_RELEASE}; tests that compare with it are skipped"
    else:
        tools = f"nvlink {oracle.NVLINK_RELEASE} in {found.bin}"
    wanted = "all but a GPU must be there" if skips.REQUIRED else "tests without theirs are skipped"
    return [f"oracle: {tools}", f"clients: {wanted}"]

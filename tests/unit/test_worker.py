"""The worker: many requests at once, with mistakes among them, in both protocols."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers import fake_tool
from helpers.cubin_builder import one_kernel
from helpers.worker_client import Answer, Client

import pylink
from pylink.worker.command import main
from pylink.worker.protocol import JsonProtocol, ProtocolError

PROTOCOLS = ["json", "proto"]
THREADS, EACH = 4, 250


def folders(place: Path) -> dict[str, bytes]:
    """Sandboxes with a cubin each, all of one name; the image that each is linked to."""
    made = {}
    for name in ("one", "two", "three", "four"):
        folder = place / "sandboxes" / name
        folder.mkdir(parents=True)
        (folder / "a.cubin").write_bytes(one_kernel(f"kernel_{name}").build())
        (folder / "broken.cubin").write_bytes(one_kernel().build()[:200])
        (folder / "words").write_text("a.cubin -arch=sm_80")
        made[f"sandboxes/{name}"] = pylink.link([folder / "a.cubin"], arch="sm_80").image
    return made


# What is asked for by the number of the request, the status, and a part of what is printed.
ASKED: list[tuple[list[str], int, str]] = [
    (["-arch=sm_80", "a.cubin", "-o", "{}.out"], 0, ""),
    (["@words", "-o", "{}.out"], 0, ""),
    (["link", "-arch=sm_80", "a.cubin", "-o", "{}.out", "--Map", "-"], 0, "Kept symbols"),
    (["-arch=sm_80", "missing.cubin", "-o", "{}.bad"], 1, "Could not open input file 'missing"),
    (["-arch=sm_80", "a.cubin", "--bogus", "-o", "{}.bad"], 1, "Unknown option '-bogus'"),
    (["-arch=sm_80", "broken.cubin", "-o", "{}.bad"], 255, "broken.cubin"),
    (["-arch=sm_80", "a.cubin", "-o", "no/folder/{}.bad"], 1, "Could not open output file"),
    (["--version"], 0, "release 13.0"),
    ([], 1, "Unknown arch name"),
    (["-arch=sm_80", "a.cubin", "-o", "{}.out", "--diag-log", "/dev/null"], 0, ""),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_thousand_requests_over_four_threads(protocol: str, tmp_path: Path) -> None:
    images = folders(tmp_path)
    client = Client(tmp_path, protocol)
    wrong: list[object] = []

    def work(thread: int) -> None:
        waiting = []
        for index in range(EACH):
            number = 1 + thread * EACH + index
            words, status, text = ASKED[number % len(ASKED)]
            sandbox = list(images)[(number // 3) % len(images)]
            own = [word.format(number) for word in words]
            waiting.append(
                (number, sandbox, status, text, client.send(number, own, sandbox=sandbox))
            )
            if len(waiting) == 8:  # several of one thread are under way at once
                check(*waiting.pop(0))
        for answer in waiting:
            check(*answer)

    def check(number: int, sandbox: str, status: int, text: str, queue: object) -> None:
        answer = queue.get(timeout=60)  # type: ignore[attr-defined]  # a queue of answers
        if (answer.status, answer.cancelled) != (status, False) or text not in answer.output:
            wrong.append((number, answer))
        output = tmp_path / sandbox / f"{number}.out"
        if status == 0 and text != "release 13.0" and output.read_bytes() != images[sandbox]:
            wrong.append((number, "image"))

    threads = [threading.Thread(target=work, args=[thread]) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.end() == (0, "")
    assert wrong == []
    assert not list(tmp_path.glob("**/*.bad"))
    assert len(list(tmp_path.glob("**/*.out"))) == THREADS * EACH * 4 // len(ASKED)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_without_a_sandbox_are_in_the_folder_of_the_worker(
    protocol: str, tmp_path: Path
) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    client = Client(tmp_path, protocol, ["-arch=sm_80"])
    assert client.ask(0, ["a.cubin", "-o", "out"]) == Answer(0, "", cancelled=False)
    assert (tmp_path / "out").read_bytes()
    answer = client.ask(0, ["a.cubin", "-o", "out"], sandbox="missing")
    assert (answer.status, "no sandbox" in answer.output) == (1, True)
    assert client.ask(7, ["a.cubin", "-o", "again"]).status == 0
    assert client.end() == (0, "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_are_cancelled(protocol: str, tmp_path: Path) -> None:
    """Those that run are linked to their end, those that wait never begin."""
    gate = tmp_path / "gate"
    tool = fake_tool.fake_tool(
        tmp_path / "ptxas",
        f'until [ -e {gate} ]; do sleep 0.01; done; cat {tmp_path}/cubin > "$out"',
    )
    (tmp_path / "cubin").write_bytes(one_kernel().build())
    (tmp_path / "a.ptx").write_text(".version 8.0\n.target sm_80\n.address_size 64\n")
    client = Client(tmp_path, protocol, ["-arch=sm_80", f"--ptxas-path={tool}"])
    asked = {n: client.send(n, ["a.ptx", "-o", f"{n}.out"]) for n in range(1, 13)}
    for number in (2, 9, 10):
        client.send(number, cancel=True)
    for number in (9, 10):
        assert asked[number].get(timeout=60).cancelled
    gate.touch()
    client.send(99, cancel=True)  # nobody asked for it
    answers = {n: queue.get(timeout=60) for n, queue in asked.items() if n not in (9, 10)}
    assert {n for n, answer in answers.items() if answer.cancelled} == {2}
    assert all(answer.status == 0 for answer in answers.values())
    assert not (tmp_path / "9.out").exists()
    client.send(1, cancel=True)  # done long ago
    assert client.ask(20, ["a.ptx", "-o", "20.out"]).status == 0
    assert client.end() == (0, "")


@pytest.mark.parametrize(
    ("protocol", "data", "reason"),
    [
        ("json", b"{\n", "not JSON"),
        ("json", b"[]\n", "not a JSON object"),
        ("json", b"[" * 200_000 + b"\n", "nested too deeply"),
        ("json", b'{"arguments": ' + b"[" * 200_000, "nested too deeply"),
        ("json", b'{"arguments": [1]}\n', "not a list of strings"),
        ("json", b'{"requestId": "1"}\n', "of another type"),
        ("proto", b"\x05ab", "cut short"),
        ("proto", b"\x80", "cut short in its size"),
        ("proto", b"\xff" * 5, "not a 32-bit varint"),
        ("proto", b"\x02\xff\xff", "not a WorkRequest"),
        ("proto", b"\xff\xff\xff\xff\x0f", "cut short"),
    ],
)
def test_what_is_no_request_ends_the_worker(protocol: str, data: bytes, reason: str) -> None:
    words = [sys.executable, "-m", "pylink", "worker", "--persistent_worker"]
    done = subprocess.run(
        [*words, f"--worker_protocol={protocol}"], input=data, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"pylink worker: ")
    assert reason in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_without_being_asked_to_stay_it_links_once(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = [sys.executable, "-m", "pylink", "worker", "-arch=sm_80", "a.cubin", "-o", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "out").read_bytes() == pylink.link(
        [tmp_path / "a.cubin"], arch="sm_80"
    ).image


def test_protobuf_is_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    assert main(["--persistent_worker"]) == 1
    assert capfd.readouterr().err == (
        "pylink worker: a request in protobuf needs the package protobuf: pip install "
        "'pylink-cuda[worker]', or use --worker_protocol=json\n"
    )


def test_requests_of_json_need_no_new_lines() -> None:
    """Bazel 4.2 sends none, and sends nothing more before it has an answer."""
    command = [sys.executable, "-m", "pylink", "worker", "--worker_protocol=json"]
    with subprocess.Popen(
        [*command, "--persistent_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        for number in (1, 2):
            worker.stdin.write(b'{"arguments": ["--version"], "requestId": %d}' % number)
            worker.stdin.flush()
            assert json.loads(worker.stdout.readline())["requestId"] == number
        worker.stdin.close()
        assert worker.wait() == 0


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_requests_of_json_in_pieces(step: int) -> None:
    """However a pipe cuts them: also within a letter, a bracket of a text, or several at once."""
    asked = [["a{}\u00e9", "}"], ["x" * 100_000], [], ["]}{["]]
    lines = [json.dumps({"arguments": words}, ensure_ascii=False) for words in asked]
    data = "\n \n".join(["".join(lines[:2]), *lines[2:]]).encode()

    class Pieces(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return super().read1(min(step, size or 0))

    protocol, stream = JsonProtocol(), Pieces(data)
    found = []
    while (request := protocol.read(stream)) is not None:
        found.append(request.arguments)
    assert found == asked
    with pytest.raises(ProtocolError, match="not JSON"):
        JsonProtocol().read(Pieces(b'{"arguments": ["a"'))

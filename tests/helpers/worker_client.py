"""A client of `pylink worker` for both protocols, written from their description."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Queue


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    output: str
    cancelled: bool


class Client:
    """A worker that runs in `folder`; `ask` may be called by several threads."""

    def __init__(self, folder: Path, protocol: str, words: Sequence[str] = ()) -> None:
        self.protocol = protocol
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pylink", "worker", "--persistent_worker"),
                *(f"--worker_protocol={protocol}", "--worker_threads=4", *words),
            ],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._writing = threading.Lock()
        self._answers: dict[int, Queue[Answer]] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def send(
        self, number: int, words: Sequence[str] = (), *, sandbox: str = "", cancel: bool = False
    ) -> Queue[Answer]:
        """Send a request without waiting, and return the queue for its answer."""
        data = (self._json if self.protocol == "json" else self._proto)(
            number, words, sandbox, cancel
        )
        assert self.process.stdin is not None
        with self._writing:
            queue = self._answers.setdefault(number, Queue())
            self.process.stdin.write(data)
            self.process.stdin.flush()
        return queue

    def ask(self, number: int, words: Sequence[str], sandbox: str = "") -> Answer:
        """Send a request and wait for its answer."""
        return self.send(number, words, sandbox=sandbox).get(timeout=60)

    def end(self) -> tuple[int, str]:
        """Close the worker's input, and return its exit status and its standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        errors = self.process.stderr.read().decode()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        return self.process.wait(), errors

    def _json(self, number: int, words: Sequence[str], sandbox: str, cancel: bool) -> bytes:
        """Return a request as JSON."""
        fields: dict[str, object] = {"arguments": list(words), "inputs": [{"path": "unused"}]}
        if number:
            fields["requestId"] = number
        if sandbox:
            fields["sandboxDir"] = sandbox
        if cancel:
            fields["cancel"] = True
        return json.dumps(fields).encode() + b"\n"

    def _proto(self, number: int, words: Sequence[str], sandbox: str, cancel: bool) -> bytes:
        """Return a request as a protobuf message."""
        body = b"".join(_field(1, word.encode()) for word in words)
        body += _field(2, _field(1, b"unused") + _field(2, b"digest"))
        body += b"\x18" + _varint(number) + (b"\x20\x01" if cancel else b"")
        body += _field(6, sandbox.encode()) if sandbox else b""
        return _varint(len(body)) + body

    def _read(self) -> None:
        """Read responses, and put each into the queue of its request."""
        assert self.process.stdout is not None
        while True:
            numbered = self._read_json() if self.protocol == "json" else self._read_proto()
            if numbered is None:
                return
            number, answer = numbered
            self._answers[number].put(answer)

    def _read_json(self) -> tuple[int, Answer] | None:
        """Return the next response in JSON, with its number; None at the end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return None
        fields = json.loads(line)
        answer = Answer(fields["exitCode"], fields["output"], fields.get("wasCancelled", False))
        return fields["requestId"], answer

    def _read_proto(self) -> tuple[int, Answer] | None:
        """Return the next protobuf response, with its number; None at the end."""
        size = self._read_varint()
        if size is None:
            return None
        assert self.process.stdout is not None
        data = self.process.stdout.read(size)
        numbers = {1: 0, 3: 0, 4: 0}
        output = ""
        at = 0
        while at < len(data):
            key, at = _number_at(data, at)
            value, at = _number_at(data, at)
            if key & 7 == 2:
                assert key >> 3 == 2
                output, at = data[at : at + value].decode(), at + value
            else:
                numbers[key >> 3] = value
        status = struct.unpack("<i", struct.pack("<I", numbers[1] & 0xFFFFFFFF))[0]
        return numbers[3], Answer(status, output, bool(numbers[4]))

    def _read_varint(self) -> int | None:
        """Return the next number of the stream; None at the end."""
        assert self.process.stdout is not None
        data = b""
        while not data or data[-1] & 128:
            byte = self.process.stdout.read(1)
            if not byte:
                return None
            data += byte
        return _number_at(data, 0)[0]


def _field(number: int, data: bytes) -> bytes:
    """Return a protobuf field with bytes."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Return a number as a varint."""
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def _number_at(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the offset after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at

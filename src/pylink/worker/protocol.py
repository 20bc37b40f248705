"""Requests and responses of Bazel's workers, as objects of JSON and as messages of protobuf.

Names and numbers of fields are those of Bazel's documentation of persistent workers.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder

from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

# Limit of the bytes of a request, in JSON of its characters: more than any command line has. Longer
# input is not a request.
MAX_REQUEST_SIZE = 1 << 28
# Bytes to read at once.
_CHUNK = 1 << 16

# By message: name, number and type of each field, "*" for a repeated one.
_FIELDS = {
    "Input": (("path", 1, "string"), ("digest", 2, "bytes")),
    "WorkRequest": (
        ("arguments", 1, "string*"),
        ("inputs", 2, "Input*"),
        ("request_id", 3, "int32"),
        ("cancel", 4, "bool"),
        ("verbosity", 5, "int32"),
        ("sandbox_dir", 6, "string"),
    ),
    "WorkResponse": (
        ("exit_code", 1, "int32"),
        ("output", 2, "string"),
        ("request_id", 3, "int32"),
        ("was_cancelled", 4, "bool"),
    ),
}


class ProtocolError(Exception):
    """The input is not a request. Nothing after it can be read either."""


class WorkerRequest:
    """A request to link with these arguments, or with `cancel` to cancel an earlier request.

    `number` is that of the request, or of the one to cancel; 0 for one request at a time.
    `sandbox` is the directory to link in, empty for the worker's own.
    """

    __slots__ = ("arguments", "cancel", "number", "sandbox")

    def __init__(
        self, arguments: list[str], number: int = 0, *, cancel: bool = False, sandbox: str = ""
    ) -> None:
        self.arguments = arguments
        self.number = number
        self.cancel = cancel
        self.sandbox = sandbox


class Response:
    """The outcome of request `number`: the status of the link, and all that it printed."""

    __slots__ = ("cancelled", "number", "output", "status")

    def __init__(self, number: int, status: int, output: str, *, cancelled: bool = False) -> None:
        self.number = number
        self.status = status
        self.output = output
        self.cancelled = cancelled


class Protocol(ABC):
    """One form of requests and responses."""

    @abstractmethod
    def read(self, stream: BinaryIO) -> WorkerRequest | None:
        """Return the next request, None at the end; ProtocolError if the input is not a request."""

    @abstractmethod
    def encode(self, response: Response) -> bytes:
        """Return the bytes of a response."""


class JsonProtocol(Protocol):
    """JSON objects with names in camel case; a missing field is zero or empty.

    A new line after an object is optional: Bazel 4.2 sends none, and waits for a response.
    """

    def __init__(self) -> None:
        self._text = ""  # read already, but not part of a request that was returned
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._json = json.JSONDecoder()

    def read(self, stream: BinaryIO) -> WorkerRequest | None:
        fields = self._next_object(stream)
        if fields is None:
            return None
        arguments = fields.get("arguments", [])
        number, sandbox = fields.get("requestId", 0), fields.get("sandboxDir", "")
        if not (isinstance(arguments, list) and all(isinstance(word, str) for word in arguments)):
            raise ProtocolError("the arguments of a request are not a list of strings")
        if not (isinstance(number, int) and isinstance(sandbox, str)):
            raise ProtocolError("the number or the sandbox of a request is of another type")
        return WorkerRequest(
            arguments, number, cancel=fields.get("cancel") is True, sandbox=sandbox
        )

    def _next_object(self, stream: BinaryIO) -> dict[str, Any] | None:
        """Return the next object as soon as it is complete; None at the end of the stream."""
        # `complete` says whether the text that was read may contain a complete object.
        at_end, complete = False, True
        while True:
            text = self._text.lstrip()
            if text and complete:
                try:
                    value, end = self._json.raw_decode(text)
                except ValueError as error:
                    if at_end or "\n" in text:
                        raise ProtocolError(f"a request is not JSON: {error}") from None
                except RecursionError:
                    raise ProtocolError("a request is nested too deeply") from None
                else:
                    self._text = text[end:]
                    if not isinstance(value, dict):
                        raise ProtocolError("a request is not a JSON object")
                    return value
            if at_end:
                return None
            if len(text) > MAX_REQUEST_SIZE:
                raise ProtocolError(f"a request has more than {MAX_REQUEST_SIZE} characters")
            chunk = stream.read1(_CHUNK)  # type: ignore[attr-defined]  # waits for one byte only
            at_end = not chunk
            self._text += self._utf8.decode(chunk, final=at_end)
            # Parsing a large object again after each of its chunks would take long.
            complete = at_end or b"\n" in chunk or chunk.rstrip().endswith(b"}")

    def encode(self, response: Response) -> bytes:
        fields: dict[str, object] = {
            "exitCode": response.status,
            "output": response.output,
            "requestId": response.number,
        }
        if response.cancelled:
            fields["wasCancelled"] = True
        return json.dumps(fields).encode() + b"\n"


class ProtoProtocol(Protocol):
    """Protobuf messages, each after its size as a varint; ImportError without that package."""

    def __init__(self) -> None:
        classes = _message_classes()
        self._request, self._response = classes["WorkRequest"], classes["WorkResponse"]

    def read(self, stream: BinaryIO) -> WorkerRequest | None:
        from google.protobuf.message import DecodeError

        size = _read_size(stream)
        if size is None:
            return None
        data = stream.read(size) if size <= MAX_REQUEST_SIZE else b""
        if len(data) != size:
            raise ProtocolError(f"a request of {size} bytes is cut short")
        try:
            message = self._request.FromString(data)
        except DecodeError as error:
            raise ProtocolError(f"a request is not a WorkRequest: {error}") from None
        return WorkerRequest(
            list(message.arguments),
            message.request_id,
            cancel=message.cancel,
            sandbox=message.sandbox_dir,
        )

    def encode(self, response: Response) -> bytes:
        message = self._response(
            exit_code=response.status,
            output=response.output,
            request_id=response.number,
            was_cancelled=response.cancelled,
        )
        data: bytes = message.SerializeToString()
        return _encode_size(len(data)) + data


PROTOCOLS: dict[str, type[Protocol]] = {"proto": ProtoProtocol, "json": JsonProtocol}


def _message_classes() -> dict[str, Any]:
    """Return the message classes for `_FIELDS`, created in a pool of their own."""
    need("google.protobuf", "a request in protobuf", extra="worker")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="worker.proto", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            base_kind = kind.rstrip("*")
            label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if base_kind in _FIELDS:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".{base_kind}"
            else:
                added.type = kinds.Type.Value(f"TYPE_{base_kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in _FIELDS
    }


def _encode_size(size: int) -> bytes:
    """Return a size as a varint: 7 bits a byte, lowest first; bit 7 is set in all but the last."""
    encoded = bytearray()
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)


def _read_size(stream: BinaryIO) -> int | None:
    """Read a varint; None at the end of the stream."""
    size = 0
    for shift in range(0, 35, 7):
        byte = stream.read(1)
        if not byte:
            if shift:
                raise ProtocolError("a request is cut short in its size")
            return None
        size |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return size
    raise ProtocolError("the size of a request is not a 32-bit varint")

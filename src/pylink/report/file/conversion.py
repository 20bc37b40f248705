"""Between the messages of protobuf and the model, field by field.

A class of the model has the fields of its message under the same names, written in lower case with
underscores. Where it does not, `EXCEPTIONS` says what is done instead.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from google.protobuf import message as protobuf
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from pylink.report import model
from pylink.report.errors import ReportError
from pylink.report.file.values import encodable, read_value, text, write_value

M = TypeVar("M", bound=model.Message)

# Names that differ, the model's first. The word of the format is misspelt.
RENAMED = {
    "cmdline_arguments": "CmdlineAgruments",
    "mangled_name": "KernelMangledName",
    "function_name": "KernelFunctionName",
    "demangled_name": "KernelDemangledName",
}


_STRING = FieldDescriptor.TYPE_STRING


class _Field(NamedTuple):
    attribute: str
    name: str
    model: type[model.Message] | None  # None for scalars
    repeated: bool


class _Plan(NamedTuple):
    fields: list[_Field]
    by_name: dict[str, _Field]
    foreign: list[str]  # attributes that this message cannot hold


class _Exception(NamedTuple):
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]


_plans: dict[tuple[type, type], _Plan] = {}


def plan(cls: type, message: protobuf.Message) -> _Plan:
    """Which field of the message each attribute of `cls` is."""
    key = (cls, type(message))
    plan_of = _plans.get(key)
    if plan_of is None:
        plan_of = _plans[key] = _make_plan(cls, [field.name for field in message.DESCRIPTOR.fields])
    return plan_of


def _make_plan(cls: Any, names: list[str]) -> _Plan:
    plain = {name.lower(): name for name in names}
    hints = typing.get_type_hints(cls)
    fields, foreign = [], []
    for each in dataclasses.fields(cls):
        if each.name == "unknown":
            continue
        wanted = RENAMED.get(each.name, each.name.replace("_", ""))
        name = plain.get(wanted.lower())
        if name is None:
            foreign.append(each.name)
            continue
        hint, repeated = hints[each.name], False
        parts = typing.get_args(hint)
        if typing.get_origin(hint) is list:
            (hint,), repeated = parts, True
        elif isinstance(hint, types.UnionType):
            hint = next(part for part in parts if part is not types.NoneType)
        submodel = hint if isinstance(hint, type) and issubclass(hint, model.Message) else None
        fields.append(_Field(each.name, name, submodel, repeated))
    return _Plan(fields, {each.name: each for each in fields}, foreign)


def to_model(message: Any, cls: type[M], *, careful: bool) -> M:
    """The model of a message; with `careful`, fields that the message cannot name are kept."""
    special = EXCEPTIONS.get(cls)
    if special is not None:
        built: M = special.read(message)
    else:
        built = cls(**attributes(message, cls, careful=careful))
    if careful:
        built.unknown = unknown_fields(message)
    return built


def attributes(
    message: Any, cls: type, *, careful: bool, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The attributes that the fields of a message stand for, except those in `without`."""
    by_name = plan(cls, message).by_name
    values: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        field = by_name.get(descriptor.name)
        if field is None or field.attribute in without:
            continue
        submodel = field.model
        if descriptor.type == _STRING:
            values[field.attribute] = [*map(text, value)] if field.repeated else text(value)
        elif submodel is None:
            values[field.attribute] = list(value) if field.repeated else value
        elif field.repeated:
            values[field.attribute] = [to_model(each, submodel, careful=careful) for each in value]
        else:
            values[field.attribute] = to_model(value, submodel, careful=careful)
    return values


def to_message(built: Any, message: Any, without: frozenset[str] = frozenset()) -> None:
    """Set the fields of a message to what the model says, except attributes in `without`.

    Raises ReportError for a value that its field cannot hold.
    """
    special = EXCEPTIONS.get(type(built))
    if special is not None:
        special.write(built, message)
    else:
        _fill(built, message, without)
    if built.unknown:
        message.MergeFromString(built.unknown)


def _fill(made: Any, message: Any, without: frozenset[str]) -> None:
    known = plan(type(made), message)
    for attribute in known.foreign:
        if attribute not in without and getattr(made, attribute) is not None:
            raise ReportError(f"{message.DESCRIPTOR.name} has no field for {attribute}")
    for attribute, name, submodel, repeated in known.fields:
        value = getattr(made, attribute)
        if value is None or attribute in without:
            continue
        try:
            if repeated:
                target = getattr(message, name)
                if submodel is None:
                    target.extend(value)
                else:
                    for each in value:
                        to_message(each, target.add())
            elif submodel is None:
                setattr(message, name, encodable(value))
            else:
                child = getattr(message, name)
                child.SetInParent()
                to_message(value, child)
        except (TypeError, ValueError) as error:
            if isinstance(error, ReportError):
                raise
            raise ReportError(f"{type(made).__name__}.{attribute}: {error}") from error


def unknown_fields(message: Any) -> bytes:
    """The encoded fields of a message that have no name here, of this message alone."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in message.ListFields():
        rest.ClearField(descriptor.name)
    encoded: bytes = rest.SerializePartialToString()
    return encoded


def _read_attribute(message: Any) -> model.DeviceAttribute:
    value, kind = read_value(message.Value)
    return model.DeviceAttribute(text(message.Name), value, kind)


def _write_attribute(made: model.DeviceAttribute, message: Any) -> None:
    message.Name = encodable(made.name)
    message.Value.SetInParent()
    if made.value is not None:
        write_value(message.Value, made.value, made.kind, made.name)


def _read_comment(message: Any) -> model.SectionComment:
    return model.SectionComment(
        text(message.ID.SectionID), text(message.DisplayName), text(message.Text)
    )


def _write_comment(target: model.SectionComment, message: Any) -> None:
    message.ID.SectionID = encodable(target.section_id)
    message.DisplayName, message.Text = encodable(target.display_name), encodable(target.text)


EXCEPTIONS: dict[type, _Exception] = {
    model.DeviceAttribute: _Exception(_read_attribute, _write_attribute),
    model.SectionComment: _Exception(_read_comment, _write_comment),
}

"""Converts between messages of protobuf and the model, field by field.

A class of the model has the fields of its message under the same names, in lower case with
underscores. Other classes are in `EXCEPTIONS`, with functions of their own.
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

# Names that differ, the model's first. The format misspells "arguments".
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
    foreign: list[str]  # attributes without a field in this message


class _Exception(NamedTuple):
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]


_plans: dict[tuple[type, type], _Plan] = {}


def plan(cls: type, message: protobuf.Message) -> _Plan:
    """The fields of the message for the attributes of `cls`."""
    key = (cls, type(message))
    plan_of = _plans.get(key)
    if plan_of is None:
        plan_of = _plans[key] = _make_plan(cls, [field.name for field in message.DESCRIPTOR.fields])
    return plan_of


def _make_plan(cls: Any, names: list[str]) -> _Plan:
    lower_names = {name.lower(): name for name in names}
    hints = typing.get_type_hints(cls)
    fields, foreign = [], []
    for attribute in dataclasses.fields(cls):
        if attribute.name == "unknown":
            continue
        field_name = RENAMED.get(attribute.name, attribute.name.replace("_", ""))
        name = lower_names.get(field_name.lower())
        if name is None:
            foreign.append(attribute.name)
            continue
        hint, repeated = hints[attribute.name], False
        parts = typing.get_args(hint)
        if typing.get_origin(hint) is list:
            (hint,), repeated = parts, True
        elif isinstance(hint, types.UnionType):
            hint = next(part for part in parts if part is not types.NoneType)
        submodel = hint if isinstance(hint, type) and issubclass(hint, model.Message) else None
        fields.append(_Field(attribute.name, name, submodel, repeated))
    return _Plan(fields, {field.name: field for field in fields}, foreign)


def to_model(message: Any, cls: type[M], *, careful: bool) -> M:
    """The model of a message; with `careful`, unknown fields are kept."""
    special = EXCEPTIONS.get(cls)
    if special is not None:
        converted: M = special.read(message)
    else:
        converted = cls(**attributes(message, cls, careful=careful))
    if careful:
        converted.unknown = unknown_fields(message)
    return converted


def attributes(
    message: Any, cls: type, *, careful: bool, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The attributes for the fields of a message, except those in `without`."""
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
            values[field.attribute] = [to_model(item, submodel, careful=careful) for item in value]
        else:
            values[field.attribute] = to_model(value, submodel, careful=careful)
    return values


def to_message(instance: Any, message: Any, without: frozenset[str] = frozenset()) -> None:
    """Set the fields of a message from an instance of the model, except those in `without`.

    Raises ReportError for a value that its field cannot hold.
    """
    special = EXCEPTIONS.get(type(instance))
    if special is not None:
        special.write(instance, message)
    else:
        _fill(instance, message, without)
    if instance.unknown:
        message.MergeFromString(instance.unknown)


def _fill(instance: Any, message: Any, without: frozenset[str]) -> None:
    message_plan = plan(type(instance), message)
    for attribute in message_plan.foreign:
        if attribute not in without and getattr(instance, attribute) is not None:
            raise ReportError(f"{message.DESCRIPTOR.name} has no field for {attribute}")
    for attribute, name, submodel, repeated in message_plan.fields:
        value = getattr(instance, attribute)
        if value is None or attribute in without:
            continue
        try:
            if repeated:
                target = getattr(message, name)
                if submodel is None:
                    target.extend(value)
                else:
                    for item in value:
                        to_message(item, target.add())
            elif submodel is None:
                setattr(message, name, encodable(value))
            else:
                child = getattr(message, name)
                child.SetInParent()
                to_message(value, child)
        except (TypeError, ValueError) as error:
            if isinstance(error, ReportError):
                raise
            raise ReportError(f"{type(instance).__name__}.{attribute}: {error}") from error


def unknown_fields(message: Any) -> bytes:
    """The encoded unknown fields of a message, without those of its submessages."""
    if not len(UnknownFieldSet(message)):
        return b""
    copy = type(message)()
    copy.CopyFrom(message)
    for descriptor, _ in message.ListFields():
        copy.ClearField(descriptor.name)
    encoded: bytes = copy.SerializePartialToString()
    return encoded


def _read_attribute(message: Any) -> model.DeviceAttribute:
    value, kind = read_value(message.Value)
    return model.DeviceAttribute(text(message.Name), value, kind)


def _write_attribute(attribute: model.DeviceAttribute, message: Any) -> None:
    message.Name = encodable(attribute.name)
    message.Value.SetInParent()
    if attribute.value is not None:
        write_value(message.Value, attribute.value, attribute.kind, attribute.name)


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

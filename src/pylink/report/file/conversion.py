"""Converts between messages of protobuf and the model, field by field.

Most classes of the model have the fields of their message under the same names, in lower case with
underscores. The other classes are in `SPECIAL_CLASSES`, with functions that convert them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from google.protobuf import message as protobuf
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from pylink.report import model
from pylink.report.errors import ReportError
from pylink.report.file.values import decode_text, encodable, read_value, write_value

M = TypeVar("M", bound=model.Message)

# {attribute of the model: its field}, if the names differ by more than case and underscores.
# The format misspells "arguments".
RENAMED = {
    "cmdline_arguments": "CmdlineAgruments",
    "mangled_name": "KernelMangledName",
    "function_name": "KernelFunctionName",
    "demangled_name": "KernelDemangledName",
}


_STRING = FieldDescriptor.TYPE_STRING


class _Field(NamedTuple):
    """An attribute of a class of the model, and the name of the field with its value."""

    attribute: str
    name: str
    submodel: type[model.Message] | None  # class of the values; None for scalars
    repeated: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """The fields of one class of the model in one kind of message."""

    fields: list[_Field]
    by_name: dict[str, _Field]  # by the name in the message
    fieldless: list[str]  # attributes without a field in this message


@dataclass(frozen=True, slots=True)
class _Conversion:
    """Functions for a class of the model whose message has fields unlike its attributes."""

    read: Callable[[Any], Any]  # message to instance
    write: Callable[[Any, Any], None]  # instance into message


# By the class of the model and the class of the message.
_plans: dict[tuple[type, type], _Plan] = {}


def plan_for(cls: type, message: protobuf.Message) -> _Plan:
    """Return which field of the message has the value of each attribute of `cls`."""
    key = (cls, type(message))
    cached = _plans.get(key)
    if cached is None:
        cached = _plans[key] = _create_plan(
            cls, [field.name for field in message.DESCRIPTOR.fields]
        )
    return cached


def _create_plan(cls: Any, names: list[str]) -> _Plan:
    """Return the plan for a class and a message whose fields have the names `names`."""
    lower_names = {name.lower(): name for name in names}
    hints = typing.get_type_hints(cls)
    fields, fieldless = [], []
    for attribute in dataclasses.fields(cls):
        if attribute.name == "unknown":
            continue
        field_name = RENAMED.get(attribute.name, attribute.name.replace("_", ""))
        name = lower_names.get(field_name.lower())
        if name is None:
            fieldless.append(attribute.name)
            continue
        hint, repeated = hints[attribute.name], False
        type_arguments = typing.get_args(hint)
        if typing.get_origin(hint) is list:
            (hint,), repeated = type_arguments, True
        elif isinstance(hint, types.UnionType):
            hint = next(part for part in type_arguments if part is not types.NoneType)
        submodel = hint if isinstance(hint, type) and issubclass(hint, model.Message) else None
        fields.append(_Field(attribute.name, name, submodel, repeated))
    return _Plan(fields, {field.name: field for field in fields}, fieldless)


def to_model(message: Any, cls: type[M], *, keeps_unknown: bool) -> M:
    """Convert a message to an instance of `cls`, a class of the model.

    With `keeps_unknown`, its `unknown` has the fields that this version does not know.
    """
    conversion = SPECIAL_CLASSES.get(cls)
    if conversion is not None:
        converted: M = conversion.read(message)
    else:
        converted = cls(**attributes(message, cls, keeps_unknown=keeps_unknown))
    if keeps_unknown:
        converted.unknown = unknown_fields(message)
    return converted


def attributes(
    message: Any, cls: type, *, keeps_unknown: bool, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return {attribute of `cls`: value} for the fields that a message has.

    Attributes in `without` are omitted. With `keeps_unknown`, each value that is an instance of the
    model keeps its unknown fields in its `unknown`.
    """
    by_name = plan_for(cls, message).by_name
    values: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        field = by_name.get(descriptor.name)
        if field is None or field.attribute in without:
            continue
        submodel = field.submodel
        if descriptor.type == _STRING:
            values[field.attribute] = (
                [*map(decode_text, value)] if field.repeated else decode_text(value)
            )
        elif submodel is None:
            values[field.attribute] = list(value) if field.repeated else value
        elif field.repeated:
            values[field.attribute] = [
                to_model(item, submodel, keeps_unknown=keeps_unknown) for item in value
            ]
        else:
            values[field.attribute] = to_model(value, submodel, keeps_unknown=keeps_unknown)
    return values


def to_message(instance: Any, message: Any, without: frozenset[str] = frozenset()) -> None:
    """Set the fields of a message from an instance of the model.

    Attributes in `without` are ignored. Raises ReportError for a value that its field cannot hold.
    """
    conversion = SPECIAL_CLASSES.get(type(instance))
    if conversion is not None:
        conversion.write(instance, message)
    else:
        _fill(instance, message, without)
    if instance.unknown:
        message.MergeFromString(instance.unknown)


def _fill(instance: Any, message: Any, without: frozenset[str]) -> None:
    """Set the fields of a message as the plan for the class of `instance` says."""
    message_plan = plan_for(type(instance), message)
    for attribute in message_plan.fieldless:
        if attribute not in without and getattr(instance, attribute) is not None:
            raise ReportError(f"{message.DESCRIPTOR.name} has no field for {attribute}")
    for attribute, name, submodel, repeated in message_plan.fields:
        value = getattr(instance, attribute)
        if value is None or attribute in without:
            continue
        try:
            if repeated:
                values = getattr(message, name)
                if submodel is None:
                    values.extend(value)
                else:
                    for item in value:
                        to_message(item, values.add())
            elif submodel is None:
                setattr(message, name, encodable(value))
            else:
                submessage = getattr(message, name)
                submessage.SetInParent()
                to_message(value, submessage)
        except (TypeError, ValueError) as error:
            if isinstance(error, ReportError):
                raise
            raise ReportError(f"{type(instance).__name__}.{attribute}: {error}") from error


def unknown_fields(message: Any) -> bytes:
    """Return the encoded unknown fields of a message, without those of its submessages."""
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
    return model.DeviceAttribute(decode_text(message.Name), value, kind)


def _write_attribute(attribute: model.DeviceAttribute, message: Any) -> None:
    message.Name = encodable(attribute.name)
    message.Value.SetInParent()
    if attribute.value is not None:
        write_value(message.Value, attribute.value, attribute.kind, attribute.name)


def _read_comment(message: Any) -> model.SectionComment:
    return model.SectionComment(
        decode_text(message.ID.SectionID),
        decode_text(message.DisplayName),
        decode_text(message.Text),
    )


def _write_comment(comment: model.SectionComment, message: Any) -> None:
    message.ID.SectionID = encodable(comment.section_id)
    message.DisplayName, message.Text = encodable(comment.display_name), encodable(comment.text)


# Classes of the model with conversions of their own; all others are converted by attribute names.
SPECIAL_CLASSES: dict[type, _Conversion] = {
    model.DeviceAttribute: _Conversion(_read_attribute, _write_attribute),
    model.SectionComment: _Conversion(_read_comment, _write_comment),
}

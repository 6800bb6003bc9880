"""Dataclasses as JSON and back, by the annotations of their fields: the one writer and the one reader of saved results.

Every key must be there, none beside them, and every value of its type. Unions of dataclasses are told apart by a field `form`, or by their
keys. A field marked `INLINE`, a dictionary, stands among the keys of its own dataclass.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

K = TypeVar("K")
INLINE: Final = MappingProxyType({"inline": True})
"""Metadata of a dictionary field whose keys are stored beside the other fields of its dataclass."""
_GREATEST, _WHOLE = 1.7e308, 1 << 63
_INTEGERS: Final = (int, ...)
_KINDS = {dict: "mapping", list: "list", tuple: "list", str: "text", int: "whole number", float: "finite number", bool: "true or false"}


def to_plain(value: Any) -> Any:  # noqa: ANN401 - dataclasses of any kind
    """A dataclass with everything inside it as dictionaries, lists and plain values; other values unchanged."""
    if is_dataclass(value) and not isinstance(value, type):
        inline = _inline(type(value))
        plain = dict[str, Any]()
        for name in _fields_of(type(value)):
            item = to_plain(getattr(value, name))
            plain |= item if name == inline else {name: item}
        return plain
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def to_file(head: Mapping[str, str | int], value: Any) -> dict[str, Any]:  # noqa: ANN401 - of every dataclass
    """A dataclass as a file holds it: what the file is, such as its kind and format, then the fields."""
    return {**head, **to_plain(value)}


def from_file(
    kind: type[K], data: object, head: Mapping[str, str | int], refusal: str, path: str = "", types: Mapping[str, Any] | None = None
) -> K:
    """The dataclass in a file that begins with this head; a ValueError with the refusal where another one stands there."""
    if not isinstance(data, dict) or any(data.get(name) != value for name, value in head.items()):
        raise ValueError(refusal)
    found: K = from_plain(kind, {name: value for name, value in data.items() if name not in head}, path, types)
    return found


def from_plain(kind: Any, data: object, path: str = "", types: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - of every dataclass
    """The dataclass in plain data; a ValueError that names the path if it is invalid. `types` maps its type variables, by name,
    to types.
    """
    hints, inline = _fields_of(kind), _inline(kind)
    if not isinstance(data, dict):
        raise ValueError(f"{path.rstrip('.')}: a mapping is needed")
    if inline:
        data = {name: data[name] for name in data if name in hints and name != inline} | {
            inline: {name: value for name, value in data.items() if name not in hints or name == inline}
        }
    if wrong := sorted(hints.keys() ^ data.keys()):
        raise ValueError(f"{path}{wrong[0]}: this key is {'unknown' if wrong[0] in data else 'missing'}")
    return kind(**{name: _typed(hint, data[name], f"{path}{name}", types or {}) for name, hint in hints.items()})


@cache
def _fields_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """The field types of a dataclass by name, cached."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _inline(kind: Any) -> str:  # noqa: ANN401
    """The field whose keys are stored among those of its dataclass; empty if there is none."""
    return next((field.name for field in fields(kind) if field.metadata.get("inline")), "")


def _typed(hint: Any, value: object, path: str, types: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one reading for every type of a field
    """The value converted to a field's type; a ValueError that names the path if it is invalid."""
    hint = types.get(hint.__name__, hint) if isinstance(hint, TypeVar) else hint
    origin, inner, record = _parts_of(hint)
    if origin is Union:
        return None if value is None and type(None) in inner else _typed(_one_of(inner, value, path), value, path, types)
    if record:
        return from_plain(origin or hint, value, f"{path}.", types)
    if origin is tuple and isinstance(value, list):
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise ValueError(f"{path}: {len(inner)} items are needed")
        hints = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        plain = inner == _INTEGERS and all(type(item) is int for item in value)  # as most of a long proof is
        read = (_typed(inner, item, f"{path}[{index}]", types) for index, (inner, item) in enumerate(zip(hints, value, strict=True)))
        return tuple(value if plain else read)
    if hint is Any:
        return value
    if not _is(hint, value):
        raise ValueError(f"{path}: {str(value)[:40]!r} is no {_KINDS.get(origin or hint, 'known word')}")
    if origin is dict and isinstance(value, dict) and inner[1] is not Any:
        return {key: _typed(inner[1], item, f"{path}.{key}", types) for key, item in value.items()}
    return float(value) if hint is float else value  # type: ignore[arg-type]


@cache
def _parts_of(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:  # noqa: ANN401
    """The origin of a type, `Union` for each form of unions, its arguments, and whether it is a dataclass."""
    origin = get_origin(hint)
    return Union if origin is UnionType else origin, get_args(hint), is_dataclass(origin or hint)


def _one_of(inner: tuple[Any, ...], value: object, path: str) -> Any:  # noqa: ANN401
    """The member of a union that a value has: integers differ from other numbers, dataclasses by `form` or their keys."""
    options = [member for member in inner if member is not type(None)]
    if set(options) == {int, float}:
        return int if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _WHOLE else float
    if len(options) == 1:
        return options[0]
    forms = _by_form(tuple(options))
    if not forms:
        keys = value.keys() if isinstance(value, dict) else ()
        return max(options, key=lambda option: len(_fields_of(option).keys() & keys))
    form = value.get("form") if isinstance(value, dict) else None
    if not isinstance(form, str) or form not in forms:
        raise ValueError(f"{path}.form: {str(form)[:40]!r} is none of {', '.join(forms)}")
    return forms[form]


@cache
def _by_form(kinds: tuple[Any, ...]) -> dict[str, Any]:
    """Dataclasses by the constant value of their field `form`; empty if they have no such field."""
    return {get_args(_fields_of(kind)["form"])[0]: kind for kind in kinds if "form" in _fields_of(kind)}


def _is(hint: Any, value: object) -> bool:  # noqa: ANN401
    """Whether a JSON value has this type; infinite numbers and integers too large for a float do not."""
    origin, inner, _ = _parts_of(hint)
    if origin is Literal:
        return value in inner
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _GREATEST
    return isinstance(value, origin or hint) and (hint is not int or not isinstance(value, bool))

"""The decorator `dataclass` for modules that every command loads: classes are defined in a quarter of the time.

The standard one compiles six methods for each class, and hundreds of classes are defined before a question is read. Here only `__init__` is
compiled; the other methods are closures or shared, and do what the standard ones do. `dataclasses` makes fields, slots and all else.
"""

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, kw_only: bool = False
    ) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which still makes classes with an order, a dataclass as base, or such methods of their own."""

        def decorated(cls: type) -> type:
            if (
                order
                or dataclasses.is_dataclass(cls)
                or cls.__dict__.keys() & {"__eq__", "__hash__", "__init__", "__repr__", "__setattr__"}
            ):
                return dataclasses.dataclass(cls, frozen=frozen, slots=slots, eq=eq, order=order, kw_only=kw_only)
            made = dataclasses.dataclass(cls, init=False, eq=False, repr=False, slots=slots, kw_only=kw_only)
            methods = {"__init__": _init_of(made, frozen=frozen), "__repr__": _text_of(made)}
            methods |= _comparison_of(made, frozen=frozen) if eq else {}
            for name, method in (methods | (_FROZEN if frozen else {})).items():
                setattr(made, name, method)
            made.__dataclass_params__.frozen = frozen  # for what is derived
            return made

        return decorated


__all__ = ["dataclass"]


def _init_of(cls: type, *, frozen: bool) -> Any:  # noqa: ANN401
    """`__init__` with the fields as its parameters: all of them, and either none or all by keyword."""
    declared, scope = dataclasses.fields(cls), dict[str, Any](__name__=cls.__module__, __put=object.__setattr__)
    named = any(field.kw_only for field in declared)
    parameters, body = ["self", *["*"] * named], ["pass"]
    for field in declared:
        name, value, default = field.name, field.name, f"__{field.name}"
        if not field.init or field.kw_only != named:
            raise TypeError(f"{cls.__qualname__}.{name}: such fields need the decorator of `dataclasses`")
        if field.default_factory is not dataclasses.MISSING:
            scope[default], value = field.default_factory, f"{default}() if {name} is __put else {name}"
            parameters.append(f"{name}=__put")
        elif field.default is not dataclasses.MISSING:
            scope[default] = field.default
            parameters.append(f"{name}={default}")
        else:
            parameters.append(name)
        body.append(f"__put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    body += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    exec(f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(body), scope)  # noqa: S102 - names of fields, as `dataclasses` does it
    scope["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    scope["__init__"].__annotations__ = {field.name: field.type for field in declared} | {"return": None}
    return scope["__init__"]


def _text_of(cls: type) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]
    values, form = _values_of(names), ", ".join(f"{name}={{!r}}" for name in names)
    return lambda self: f"{type(self).__qualname__}({form.format(*values(self))})"


def _comparison_of(cls: type, *, frozen: bool) -> dict[str, Any]:
    """`__eq__` and `__hash__`; instances that can change have no hash."""
    declared = dataclasses.fields(cls)
    compared = _values_of([field.name for field in declared if field.compare])
    hashed = _values_of([field.name for field in declared if (field.compare if field.hash is None else field.hash)])

    def equal(self: Any, other: object) -> bool:  # noqa: ANN401
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equal, "__hash__": (lambda self: hash(hashed(self))) if frozen else None}


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of some fields of an instance as a tuple."""
    return attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)


def _refuse(self: object, name: str, *value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _state(self: Any) -> list[Any]:  # noqa: ANN401
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: Sequence[Any]) -> None:  # noqa: ANN401
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN: dict[str, Any] = {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _restore}
"""What instances that never change have in common."""

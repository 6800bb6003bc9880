"""The decorator `dataclass` for modules that every command loads: classes are defined in half the time.

The standard one compiles six methods for each class, and hundreds of classes are defined before a question is read. Comparison, hash and
text are closures here, which give the same values; everything else is done by `dataclasses`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, kw_only: bool = False
    ) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which also makes the classes that have an order, or that write one of these methods themselves."""

        def decorated(cls: type) -> type:
            standard = partial(dataclasses.dataclass, frozen=frozen, slots=slots, kw_only=kw_only)
            if order or cls.__dict__.keys() & {"__eq__", "__hash__", "__repr__"}:
                return standard(cls, eq=eq, order=order)
            made = standard(cls, eq=False, repr=False)
            made.__repr__ = _text_of(made)
            if eq:
                made.__eq__, made.__hash__ = _comparison_of(made, frozen=frozen)
            return made

        return decorated


__all__ = ["dataclass"]


def _text_of(cls: type) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]
    values, form = _values_of(names), ", ".join(f"{name}={{!r}}" for name in names)
    return lambda self: f"{type(self).__qualname__}({form.format(*values(self))})"


def _comparison_of(cls: type, *, frozen: bool) -> tuple[Callable[[Any, object], bool], Callable[[Any], int] | None]:
    """`__eq__` and `__hash__`; instances that can change have no hash."""
    declared = dataclasses.fields(cls)
    compared = _values_of([field.name for field in declared if field.compare])
    hashed = _values_of([field.name for field in declared if (field.compare if field.hash is None else field.hash)])

    def equal(self: Any, other: object) -> bool:  # noqa: ANN401
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal, (lambda self: hash(hashed(self))) if frozen else None


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of some fields of an instance as a tuple."""
    return attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

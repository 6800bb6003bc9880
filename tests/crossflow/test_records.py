"""Classes that are defined quickly are those of `dataclasses` in all that one sees of them."""

import dataclasses
import pickle
from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, field, replace
from inspect import signature
from typing import Any

import pytest

from crossopt.crossflow import records

Decorator = Callable[..., Callable[[type], type]]


def classes(decorator: Decorator) -> list[type]:
    """Classes of all forms that the code declares."""

    @decorator(frozen=True, slots=True)
    class Nothing:
        pass

    @decorator(frozen=True, slots=True)
    class Single:
        first: int

    @decorator(frozen=True, slots=True)
    class Several:
        first: int
        second: str = "b"
        unseen: float = field(default=0.5, repr=False)
        beside: tuple[int, ...] = field(default=(), compare=False)
        unhashed: list[int] = field(default_factory=list, hash=False)

    @decorator(slots=True)
    class Changing:
        first: int
        second: int = 2

    @decorator(frozen=True, slots=True, eq=False)
    class Itself:
        first: int

    @decorator(frozen=True, slots=True, order=True)
    class Ordered:
        first: int

    @decorator(frozen=True, slots=True)
    class Own:
        first: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.first % 10 == other.first % 10

        def __hash__(self) -> int:
            return self.first % 10

        def __repr__(self) -> str:
            return "own"

    return [Nothing, Single, Several, Changing, Itself, Ordered, Own]


PAIRS = list(zip(classes(records.dataclass), classes(dataclasses.dataclass), strict=True))


def seen(cls: Any) -> dict[str, object]:  # noqa: ANN401 - a class of either decorator
    """What comparison, hash and text say of some instances."""
    values = () if cls.__name__ == "Nothing" else (1,)
    made, again, other = cls(*values), cls(*values), cls(*(value + 10 for value in values))
    extended = type("Extended", (cls,), {"__slots__": ()})(*values)
    return {
        "equal": [made == made, made == again, made == other, made == extended, extended == made, made == values, made != again],  # noqa: PLR0124
        "hashable": cls.__hash__ is not None and (cls.__hash__ is object.__hash__ or hash(made)),
        "text": [repr(made).replace(hex(id(made)), ""), repr(extended), repr([other])],
        "parts": [[one.name for one in dataclasses.fields(cls)], cls.__match_args__, dataclasses.astuple(made)],
        "signature": [(one.name, one.kind, one.annotation, one.default is one.empty) for one in signature(cls).parameters.values()],
        "copied": [dataclasses.astuple(copy(made)), dataclasses.astuple(replace(made))],
    }


@pytest.mark.parametrize(("quick", "usual"), PAIRS, ids=lambda cls: cls.__name__)
def test_both_decorators_make_the_same_class(quick: type, usual: type) -> None:
    assert seen(quick) == seen(usual)


@pytest.mark.parametrize("values", [(1, "b", 0.5, (), [1]), (1, "b", 0.5, (9,), [1]), (1, "b", 0.75, (), [1]), (2, "b", 0.5, (), [1])])
def test_fields_count_as_they_are_declared(values: tuple[object, ...]) -> None:
    quick, usual = PAIRS[2]
    first = (1, "b", 0.5, (), [1])
    assert (quick(*values) == quick(*first)) == (usual(*values) == usual(*first))
    assert hash(quick(*values)) == hash(usual(*values))
    assert repr(quick(*values)) == repr(usual(*values))


@pytest.mark.parametrize("decorator", [records.dataclass, dataclasses.dataclass])
def test_frozen_ones_stay_as_they_are_and_others_have_no_hash(decorator: Decorator) -> None:
    cls = classes(decorator)
    frozen, changing = cls[1](1), cls[3](1)
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'first'$"):
        frozen.first = 2
    with pytest.raises(FrozenInstanceError, match=r"^cannot delete field 'first'$"):
        del frozen.first
    assert frozen == cls[1](1)
    changing.first = 2
    assert changing == cls[3](2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(changing)


@pytest.mark.parametrize("decorator", [records.dataclass, dataclasses.dataclass])
def test_fields_by_keyword_may_stand_behind_others_with_a_default_and_are_looked_at(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        first: list[int] = field(default_factory=lambda: [1])
        second: int

        def __post_init__(self) -> None:
            if self.second < 0:
                raise ValueError("below zero")

    made: Any = Named
    assert (made(second=2).first, made(second=2, first=[]).first) == ([1], [])
    assert made(second=2).first is not made(second=2).first
    with pytest.raises(TypeError, match="positional"):
        made([1], 2)
    with pytest.raises(ValueError, match="below zero"):
        made(second=-1)


def test_fields_that_are_no_parameters_are_refused_where_they_are_declared() -> None:
    with pytest.raises(TypeError, match=r"Derived\.second: such fields need the decorator of `dataclasses`$"):

        @records.dataclass(frozen=True)
        class Derived:
            first: int
            second: int = field(init=False)


@records.dataclass(frozen=True, slots=True)
class Sent:
    """One that goes to another process."""

    first: int
    second: str = "b"


def test_they_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Sent(3))) == Sent(3)  # noqa: S301 - our own


@pytest.mark.parametrize("base", [records.dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("derived", [records.dataclass, dataclasses.dataclass])
def test_classes_of_both_decorators_are_derived_from_each_other(base: Decorator, derived: Decorator) -> None:
    @base(frozen=True, slots=True)
    class Base:
        first: int

    @derived(frozen=True, slots=True)
    class Derived(Base):
        second: int = 2

    made: Any = Derived
    assert (made(1), hash(made(1, 3))) == (made(1, 2), hash((1, 3)))
    assert made(1) != made(1, 3) != Base(1)
    with pytest.raises(FrozenInstanceError):
        made(1).first = 2

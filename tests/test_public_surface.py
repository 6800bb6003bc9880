"""What each package offers: a sorted list of names, each of which is there."""

import importlib
from types import ModuleType

import pytest

PACKAGES = ("crossopt.crossflow", "crossopt.instances")


@pytest.mark.parametrize("name", PACKAGES)
def test_the_public_names_are_sorted_and_there_is_no_name_twice(name: str) -> None:
    names = importlib.import_module(name).__all__
    assert list(names) == sorted(set(names))


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_can_be_imported(name: str) -> None:
    """A name of a package is a thing in it or one of its modules."""
    package = importlib.import_module(name)
    for public in package.__all__:
        found = getattr(package, public, None) or importlib.import_module(f"{name}.{public}")
        assert found is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_public_things_are_documented(name: str) -> None:
    package = importlib.import_module(name)
    things = [(public, getattr(package, public)) for public in package.__all__ if hasattr(package, public)]
    assert package.__doc__
    assert [public for public, thing in things if callable(thing) and not isinstance(thing, ModuleType) and not thing.__doc__] == []

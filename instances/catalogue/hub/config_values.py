"""Single figures of a model's `config.json`, each checked; what cannot be used is a ValueError of one sentence that names the key."""

from collections.abc import Mapping
from typing import Any

from crossopt.instances.files.schema import LARGEST_WHOLE
from crossopt.instances.files.units import quoted

Config = Mapping[str, Any]


def whole(config: Config, keys: tuple[str, ...], usual: int = 0) -> int:
    """The whole number above zero at the first of these keys that is given, else the usual one, which 0 says there is not."""
    key = next((key for key in keys if config.get(key) is not None), None)
    if key is None and not usual:
        raise ValueError(f"{quoted(keys[0])} is missing, a whole number is needed")
    return usual if key is None else checked(key, config[key])


def optional(config: Config, *keys: str, usual: int = 0) -> int:
    """The whole number above zero at the first of these keys that is given, or the usual one where there is none."""
    key = next((key for key in keys if config.get(key) is not None), None)
    return usual if key is None else checked(key, config[key])


def count(config: Config, key: str) -> int:
    """The whole number at this key, which may be zero, as it is where there is none."""
    return 0 if config.get(key) in (None, 0) and not isinstance(config.get(key), bool) else checked(key, config[key])


def checked(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{quoted(key)} is {shown(value)}, a whole number above zero is needed")
    return value


def flag(config: Config, key: str, usual: bool) -> bool:
    value = config.get(key, usual)
    if not isinstance(value, bool):
        raise ValueError(f"{quoted(key)} is {shown(value)}, true or false is needed")
    return value


def share(config: Config, key: str, usual: float) -> float:
    value = config.get(key, usual)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{quoted(key)} is {shown(value)}, a share from 0 to 1 is needed")
    return value


def capped(config: Config, key: str, usual: bool) -> bool:
    """Whether there is a cap at this key, which null says there is not."""
    value = config.get(key, 1.0 if usual else None)
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not value > 0):
        raise ValueError(f"{quoted(key)} is {shown(value)}, a number above zero or null is needed")
    return value is not None


def shown(value: object) -> str:
    return {dict: "a mapping", list: "a list", type(None): "null"}.get(type(value)) or quoted(str(value))

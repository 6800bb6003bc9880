"""Settings of plans as a question lists them, and what they come to at plans to which some of them mean nothing.

A setting that is listed holds where it applies: `overlap: both` is the data overlap alone at a plan of one stage, and `sequence_parallel:
true` is nothing at a plan of tensor degree 1. So no listed value deletes a plan, and options that come to the same are one plan.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.crossflow.plan import CANONICAL_SETTINGS, END_STAGES, Plans, code
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance


def codes_of(instance: Instance, name: str) -> tuple[int, ...]:
    """The options of a setting by their numbers."""
    return tuple(code(name, value) for value in dict(instance.plan_options)[name])


def with_settings(plans: Plans, settings: dict[str, int]) -> Plans:
    """The same plans with other settings."""
    return replace(plans, **{name: np.full(len(plans), number, np.int64) for name, number in settings.items()})


def comings(instance: Instance, plans: Plans, name: str) -> tuple[Whole, Mask]:
    """What each option of a setting (columns) comes to at each plan (rows), and which are the first to come to that.

    The others are no plans of their own; nor are those that do not come to themselves where the question has a setting `only` so."""
    codes = np.array(codes_of(instance, name), np.int64)
    came: Whole = np.broadcast_to(codes, (len(plans), len(codes)))
    if name not in CANONICAL_SETTINGS:
        return came, np.ones(came.shape, bool)
    model = cast("Transformer", instance.workload)
    meant = [replace(plans, **{name: _meant(model, plans, name, number)}) for number in codes.tolist()]
    came = np.column_stack([CANONICAL_SETTINGS[name](model, plans) for plans in meant])
    first: Mask = _to_the_letter(came, codes) if name in instance.only else np.ones(came.shape, bool)
    for place in range(1, len(codes)):
        first[:, place] &= ~(first[:, :place] & (came[:, :place] == came[:, place : place + 1])).any(axis=1)
    return came, first


def _meant(model: Transformer, plans: Plans, name: str, number: int) -> Whole:
    """What an option says of each plan: layers of an end below 0 are so many fewer than the even share, which stays where none are left."""
    if name not in END_STAGES or number >= 0:
        return np.full(len(plans), number, np.int64)
    return np.maximum(model.stack // plans.pipeline + number, 0)


def _to_the_letter(came: Whole, codes: Whole) -> Mask:
    """Which options come to themselves, or to what they say of the plan."""
    found: Mask = (came == codes) | ((codes < 0) & (came > 0))
    return found


def place_of_none(instance: Instance, name: str) -> int:
    """The place of the option by which a plan without this setting is counted: the first one, or to the letter the one that says so."""
    codes = codes_of(instance, name)
    if name not in instance.only:
        return 0
    return codes.index(0) if 0 in codes else -1


def is_listed(instance: Instance, plan: Plans, name: str) -> bool:
    """Whether some option of a setting comes to what this one plan has: the first that is looked at is the one that says so."""
    own, model = int(getattr(plan, name)[0]), cast("Transformer", instance.workload)
    says_so = own >= 0 and own in codes_of(instance, name)
    if says_so and (name not in CANONICAL_SETTINGS or CANONICAL_SETTINGS[name](model, plan)[0] == own):
        return True
    return bool(listed_as(instance, plan, name).any())


def listed_as(instance: Instance, plans: Plans, name: str) -> Mask:
    """Which options of a setting (columns) come to what each plan (row) has."""
    came, _ = comings(instance, plans, name)
    found: Mask = came == np.asarray(getattr(plans, name))[:, None]
    return found & _to_the_letter(came, np.array(codes_of(instance, name))) if name in instance.only else found

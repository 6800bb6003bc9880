"""What `crossopt solve` says an engine may spend and how it shall work, as Limits; refused in words where it makes no sense."""

from argparse import Namespace

from crossopt.solvers.answer import Limits

_SEEDS = 2**31
"""As many as every solver knows."""
_WORKERS = 256


def limits_of(options: Namespace, seconds: float) -> Limits:
    """The limits; a ValueError in words if there are no such ones, or if the engine has no use for them."""
    modelled = options.engine in {"milp", "cpsat"}
    for name, value in (("--form", options.form), ("--workers", options.workers)):
        if value is not None and not modelled:
            raise ValueError(f"{name} {value}: the engine {options.engine} solves no integer model (take --engine milp or cpsat)")
    if not 0 <= options.seed < _SEEDS:
        raise ValueError(f"--seed {options.seed}: this is no seed (write a whole number from 0 to {_SEEDS - 1})")
    workers = options.workers or 1
    if workers > _WORKERS:
        raise ValueError(f"--workers {workers}: this is too many (write {_WORKERS} or less; more than the machine's cores gain nothing)")
    return Limits(seconds, options.seed, options.gap, options.form or "strong", workers)

"""A whole training run as a goal: so many tokens, until when and for how much; and the step time that this leaves."""

from dataclasses import dataclass
from math import ceil, inf

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Goal:
    """What the run shall come to. A run of N tokens has ceil(N / tokens of a step) steps, all of which take the step time."""

    tokens: float
    step_tokens: int
    devices: int
    deadline: float = inf
    """Seconds for the whole run."""
    budget: float = inf
    """Money for the whole run."""
    rent: float | None = None
    """Money for a device and an hour."""

    @property
    def steps(self) -> int:
        return ceil(self.tokens / self.step_tokens)

    def seconds(self, step_time: float) -> float:
        """How long the run takes."""
        return self.steps * step_time

    def money(self, step_time: float) -> float | None:
        """What the devices cost meanwhile; None where no rent is given."""
        return None if self.rent is None else self.devices * self.rent * self.seconds(step_time) / _HOUR

    @property
    def step_time(self) -> float:
        """The longest step that keeps deadline and budget."""
        hourly = self.devices * (self.rent or 0.0)
        paid = self.budget * _HOUR / hourly if hourly else inf
        return min(self.deadline, paid) / self.steps

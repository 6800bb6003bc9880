"""The chip that each stage would take alone, against a look at every chip of no larger area."""

import numpy as np
import pytest

from crossopt.crossflow.accelerator import chip_area
from crossopt.instances.accelerator.networks import Network
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.reports.sheets.accelerator import stage_chips
from crossopt.solvers.accelerator.family import FAMILY
from crossopt.solvers.accelerator.judge import ChipAnswer
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from tests.extent import some
from tests.solvers.accelerator.drawn import drawn, passes_of_layer


@pytest.mark.parametrize("seed", some(range(60), 4))
def test_each_stage_has_its_quickest_chip_of_no_larger_area(seed: int) -> None:
    question = drawn(seed)
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    if result.answer is None or result.details is None or not isinstance(result.answer.chip, ChipAnswer):
        return
    areas = chip_area(question.chips)
    small = np.flatnonzero(areas <= chip_area(result.answer.chip.columns())[0])
    for row, wishes in enumerate(stage_chips(question, result.answer, result.details)):
        network, plan = question.networks[row], result.answer.plans[row]
        assert sorted(number for one in wishes for number in one.stages) == list(range(len(plan.stages)))
        for wish in wishes:
            stage, loads = plan.stages[wish.stages[0]], result.details.networks[row].stages
            again = stage.recompute == "full" and wish.stages[0] < len(plan.stages) - 1 and question.file.passes == "training"
            kinds = [network.kind_of[network.names.index(name)] for name in stage.layers]
            least = min(_of_stage(question, network, int(chip), (kinds, stage.tensor, plan.microbatch), again) for chip in small)
            assert wish.seconds == pytest.approx(least, rel=1e-9)
            assert wish.seconds <= loads[wish.stages[0]].compute * (1.0 + 1e-9)


def _of_stage(question: AcceleratorQuestion, network: Network, chip: int, chosen: tuple[list[int], int, int], again: bool) -> float:
    kinds, tensor, size = chosen
    passes = [passes_of_layer(question, network, chip, (kind, tensor, size)) for kind in kinds]
    return sum(sum(one) + again * one[0] for one in passes)

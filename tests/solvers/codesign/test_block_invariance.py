"""A price does not depend on the plans and chips that are priced beside it, to the last bit."""

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import corners, grid, whole
from crossopt.instances.codesign.space import plan_blocks
from crossopt.solvers.codesign.pricing import joined, rows_of, values_of
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import ask

_GATHERED_BEHIND = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}}}
cluster: {{devices: {devices}}}
hardware: h100-sxm
stack: megatron-core
choices:
  tensor: [1, 2, 4, 8]
  pipeline: [1, 2, 4, 8]
  overlap: [none, both]
  sequence_parallel: [false, true]
  zero: 1
  microbatch: [1, 2]
  recompute: [none, full]
"""


@pytest.mark.parametrize(("model", "batch", "sequence", "devices"), [("gpt3-13b", 128, 2048, 8), ("llama3-8b", 24, 1024, 16)])
def test_a_best_plan_without_overlap_is_priced_alike_beside_plans_with_it(model: str, batch: int, sequence: int, devices: int) -> None:
    """Megatron-Core gathers updated weights behind the first forward pass where overlap is on."""
    question = ask(_GATHERED_BEHIND.format(model=model, batch=batch, sequence=sequence, devices=devices))
    result = answered(question)
    assert result.proved
    assert checked(result).refused == ()
    plans, space = joined(list(plan_blocks(question))), grid(question)
    chips = corners(question, space, whole(space))
    together = values_of(question, chips, plans)
    alone = [values_of(question, chips, rows_of(plans, np.array([row]))) for row in range(len(plans))]
    assert np.array_equal(together, np.concatenate(alone))

"""Questions whose plans a stack must launch."""

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.stack_rules import STACKS
from tests.solvers.codesign.questions import ask

_DENSE = "{layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 2048, vocabulary: 8192, sequence: 512, gated: true}"
_EXPERTS = "{layers: 6, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4, experts_per_token: 2}"
_BOUGHT = "hardware: a100-40g"
_FREE = "technology: accelerator-7nm"
STACK_NAMES = tuple(STACKS)


def stack_question(stack: str, *, experts: bool = False, free: bool = False, host: bool = True, node: int = 4) -> Instance:
    """Much is open on eight devices, of a chip that is bought or one that is free."""
    text = f"""\
kind: codesign
workload: {{transformer: {_EXPERTS if experts else _DENSE}, global_batch: 8, attention: unfused}}
cluster: {{devices: 8, devices_per_node: {node}{", host: {memory: 64 GiB, bandwidth: 25 GB/s}" if host else ""}}}
{_FREE if free else _BOUGHT}
choices:
  rest: all
  microbatch: [1, 2]
  interleave: [1, 2, 3]
  first_stage_layers: 0
  last_stage_layers: [0, -1]
  recompute_layers: 0
{"  offload: [none, activations, optimizer, all]" if host else ""}
"""
    return ask(text + ("  compute_area: [200 mm^2, 400 mm^2]\n" if free else "") + (f"stack: {stack}\n" if stack else ""))

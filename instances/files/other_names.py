"""Keys that a question does not have: what is called otherwise in training frameworks and configurations, and what stands elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Final

from crossopt.instances.files.units import nearest

_CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "choices.tensor": ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size", "tensor_parallel_degree"),
    "choices.pipeline": ("pp", "pp_size", "pipeline_parallel", "pipeline_parallel_size", "pipeline_model_parallel_size", "stages"),
    "choices.data": ("dp", "dp_size", "data_parallel", "data_parallel_size", "data_parallel_degree", "replicas"),
    "choices.context": ("cp", "cp_size", "context_parallel", "context_parallel_size", "context_parallel_degree"),
    "choices.expert": ("ep", "ep_size", "expert_parallel", "expert_parallel_size", "expert_model_parallel_size"),
    "choices.expert_tensor": ("etp", "etp_size", "expert_tensor_parallel_size", "expert_tensor_parallel_degree"),
    "choices.sequence_parallel": ("sp", "sequence_parallelism"),
    "choices.microbatch": ("mbs", "micro_batch", "micro_batch_size", "microbatch_size", "train_micro_batch_size_per_gpu"),
    "choices.interleave": ("vp", "vpp", "virtual_pipeline", "virtual_pipeline_model_parallel_size", "num_model_chunks"),
    "choices.recompute": (
        "recomputation",
        "recompute_granularity",
        "recompute_modules",
        "activation_checkpointing",
        "gradient_checkpointing",
    ),
    "choices.zero": ("zero_stage", "fsdp", "zero_optimization"),
    "choices.shard": ("hsdp", "data_parallel_shard_degree", "sharding_group_size", "hybrid_shard"),
    "choices.schedule": ("pipeline_schedule", "pipeline_parallel_schedule", "pp_schedule"),
    "choices.first_stage_layers": ("decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"),
    "choices.last_stage_layers": ("decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"),
    "choices.expert_exchange": ("overlap_moe_expert_parallel_comm", "moe_a2a_overlap"),
    "choices.tensor_exchange": ("tp_comm_overlap", "async_tensor_parallel", "enable_async_tensor_parallel"),
    "choices.hbm_stacks": ("stacks", "num_stacks"),
    "microbatches": ("num_microbatches", "num_micro_batches", "gradient_accumulation_steps", "mbs_in_batch"),
    "workload.global_batch": ("gbs", "batch", "batch_size", "global_batch_size", "train_batch_size"),
    "workload.sequence": ("seq", "seq_len", "seq_length", "seqlen", "sequence_length", "context_length", "max_seq_len", "block_size"),
    "workload.precision": ("dtype", "torch_dtype"),
    "transformer.layers": ("num_layers", "n_layers", "n_layer", "num_hidden_layers"),
    "transformer.hidden": ("hidden_size", "hidden_dim", "d_model", "n_embd", "dim"),
    "transformer.heads": ("num_heads", "n_heads", "n_head", "num_attention_heads"),
    "transformer.kv_heads": ("n_kv_heads", "num_kv_heads", "num_key_value_heads", "num_query_groups"),
    "transformer.head_size": ("head_dim", "kv_channels"),
    "transformer.ffn": ("ffn_hidden_size", "intermediate_size", "ffn_dim", "d_ff"),
    "transformer.vocabulary": ("vocab", "vocab_size", "padded_vocab_size"),
    "transformer.experts": ("num_experts", "n_experts", "num_local_experts"),
    "transformer.experts_per_token": ("top_k", "topk", "moe_router_topk", "num_experts_per_tok"),
    "transformer.expert_ffn": ("moe_intermediate_size", "moe_ffn_hidden_size", "expert_intermediate_size"),
    "transformer.shared_experts": ("n_shared_experts", "num_shared_experts"),
    "transformer.expert_groups": ("n_group", "moe_router_num_groups"),
    "transformer.groups_per_token": ("topk_group", "moe_router_group_topk"),
    "transformer.dense_layers": ("first_k_dense_replace",),
    "transformer.window": ("sliding_window", "window_size", "attention_window"),
    "transformer.query_rank": ("q_lora_rank",),
    "transformer.kv_rank": ("kv_lora_rank",),
    "transformer.rope_size": ("qk_rope_head_dim",),
    "transformer.value_size": ("v_head_dim",),
    "transformer.qk_norm": ("qk_layernorm",),
    "transformer.prediction_layers": ("num_nextn_predict_layers", "mtp_num_layers"),
    "cluster.devices": ("gpus", "num_gpus", "n_gpus", "ngpus", "world_size", "num_devices"),
    "cluster.devices_per_node": ("gpus_per_node", "num_gpus_per_node", "nproc_per_node"),
    "hardware": ("gpu", "device", "accelerator"),
}
"""What others call a key, by our key and the end of its path where there are several."""
_OURS: Final = {name: ours for ours, names in _CALLED.items() for name in names}
_FEW: Final = 3


def called_here(key: str) -> str:
    """What a key that others use is called in questions, with the end of its path; nothing for other keys."""
    return _OURS.get(key.casefold().replace("-", "_"), "")


def remedy_for(key: str, section: str, known: Sequence[str], places: Mapping[str, Sequence[str]]) -> tuple[list[str], str]:
    """What an unknown key of a section is meant to be of the known ones, if anything; and what to write, by the places of all keys."""
    ours = called_here(key)
    name = ours.rpartition(".")[2]
    if name in known and (ours.startswith("choices.") or not section.endswith("choices")):  # a choice may have the name of a shape
        return [name], f"{key} is called {name} here"
    if meant := [path for path in places.get(name, ()) if f".{path}".endswith(f".{ours}")] or list(places.get(name, ())):
        return [], f"{key} is called {name} here: {_either(meant)}"
    guess = nearest(key, known)[:1]
    if key in places and not (guess and guess[0].casefold() == key.casefold()):
        return [], f"{key} stands elsewhere: {_either([f'{path} at the top' if '.' not in path else path for path in places[key]])}"
    return guess, f"did you mean '{guess[0]}'?" if guess else f"the known keys are {', '.join(known)}"


def _either(paths: Sequence[str]) -> str:
    return " or ".join(paths) if len(paths) <= _FEW else f"{', '.join(paths[:_FEW])}, ..."

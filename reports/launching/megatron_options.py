"""The arguments of Megatron-LM's pretrain scripts that exports use."""

from crossopt.reports.launching.options import options_of

OPTIONS = options_of(
    "Megatron-LM with Megatron-Core 0.15",
    "NVIDIA/Megatron-LM megatron/training/arguments.py",
    "000c4ac24f61",
    """--num-layers --hidden-size --ffn-hidden-size --num-attention-heads --num-query-groups --kv-channels --seq-length
    --max-position-embeddings --vocab-size --position-embedding-type --normalization --attention-backend --attention-dropout
    --hidden-dropout --num-experts --moe-router-topk --moe-router-num-groups --moe-router-group-topk --moe-router-dtype
    --moe-token-dispatcher-type --moe-ffn-hidden-size --moe-shared-expert-intermediate-size
    --expert-model-parallel-size --expert-tensor-parallel-size --micro-batch-size --global-batch-size --tensor-model-parallel-size
    --pipeline-model-parallel-size --pipeline-model-parallel-layout --decoder-first-pipeline-num-layers
    --decoder-last-pipeline-num-layers --num-virtual-stages-per-pipeline-rank --context-parallel-size --recompute-granularity
    --recompute-modules --recompute-method --recompute-num-layers --data-parallel-sharding-strategy --ckpt-format
    --cpu-offloading-num-layers --fp8-format --fp8-recipe --fp4-format --exp-avg-dtype --exp-avg-sq-dtype
    --moe-layer-freq --q-lora-rank --kv-lora-rank --qk-head-dim --qk-pos-emb-head-dim
    --v-head-dim --window-size --window-attn-skip-freq --softmax-type --mtp-num-layers --cp-comm-type
    --num-distributed-optimizer-instances --cross-entropy-fusion-impl
    --glu-linear-offset --activation-func-clamp-value""",
    """--group-query-attention --swiglu --untie-embeddings-and-output-weights --disable-bias-linear --moe-grouped-gemm
    --sequence-parallel --tp-comm-overlap --overlap-moe-expert-parallel-comm
    --use-distributed-optimizer --use-megatron-fsdp --init-model-with-meta-device --no-gradient-accumulation-fusion --overlap-grad-reduce
    --overlap-param-gather --no-overlap-p2p-communication --bf16 --fp16
    --grad-reduce-in-bf16 --use-tp-pp-dp-mapping --multi-latent-attention --qk-layernorm --add-qkv-bias
    --cross-entropy-loss-fusion --moe-enable-deepep --moe-permute-fusion --moe-router-fusion --moe-router-padding-for-fp8
    --use-precision-aware-optimizer --manual-gc --quick-geglu --no-bias-dropout-fusion""",
)

"""Small configurations by hand, of architectures whose own ones do not become small by dividing: layers of several kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

__all__ = ["written_configs"]

_SLIDING, _FULL = "sliding_attention", "full_attention"
_SMALL = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_SMALL |= {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}
_SMALL |= {"pad_token_id": 0}
_MIXTURE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
_DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
_BY_LAYER = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 99}

_WRITTEN: dict[str, tuple[dict[str, Any], ...]] = {
    "bamba": (_SMALL | _MAMBA | {"attn_layer_indices": [1], "mamba_expand": 2},),
    "dots1": (
        _SMALL
        | {"layer_types": [_FULL, _SLIDING], "sliding_window": 8, "moe_intermediate_size": 16, "num_experts_per_tok": 2}
        | {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1},
    ),
    "gemma3n_text": (
        _SMALL
        | _BY_LAYER
        | {"num_hidden_layers": 4, "layer_types": [_SLIDING, _FULL] * 2, "sliding_window": 8, "num_kv_shared_layers": 2}
        | {"laurel_rank": 4, "altup_num_inputs": 2, "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0]},
    ),
    "gemma4_text": (
        _SMALL
        | _BY_LAYER
        | {"num_hidden_layers": 4, "layer_types": [_SLIDING, _FULL] * 2, "sliding_window": 8, "num_kv_shared_layers": 2}
        | {"global_head_dim": 16, "num_global_key_value_heads": 1},
    ),
    "granitemoehybrid": (
        _SMALL
        | _MAMBA
        | {
            "layer_types": ["mamba", "attention"],
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 48,
        },
    ),
    "lfm2_moe": (_SMALL | _MIXTURE | {"layer_types": ["conv", _FULL], "num_dense_layers": 1},),
    "qwen3_5_moe_text": (
        _SMALL | _MIXTURE | _DELTA | {"layer_types": ["linear_attention", _FULL], "shared_expert_intermediate_size": 16},
    ),
    "zamba2": (
        _SMALL
        | {
            "num_hidden_layers": 4,
            "layers_block_type": ["mamba", "hybrid"] * 2,
            "hybrid_layer_ids": [1, 3],
            "num_mem_blocks": 1,
        }
        | {"mamba_d_state": 8, "mamba_ngroups": 1, "n_mamba_heads": 8, "mamba_headdim": 8, "adapter_rank": 4}
        | {"attention_hidden_size": 64, "attention_head_dim": 16, "num_key_value_heads": 4},
    ),
}


def written_configs(name: str) -> Iterator[PreTrainedConfig]:
    """Those of an architecture; of most there are none."""
    for options in _WRITTEN.get(name, ()):
        yield CONFIG_MAPPING[name](**options)

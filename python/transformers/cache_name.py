"""What models of this transformers call their cache: ``cache`` from 5.24 on, ``past_key_values`` before."""

from __future__ import annotations

from dataclasses import fields

from transformers.modeling_outputs import CausalLMOutputWithPast

__all__ = ["CACHE"]

CACHE = "cache" if "cache" in {f.name for f in fields(CausalLMOutputWithPast)} else "past_key_values"

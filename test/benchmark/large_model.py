"""A Llama of 70B parameters that nobody holds: export, import, compilation and the plan of its preparation, with peak memory.

``python test/benchmark/large_model.py [--layers 80] [--weights int4]`` builds the model without memory for its parameters and
prints for each step seconds of the processor and the process's peak resident memory, then the size of the module's text, the
bytes of raw and prepared weights, and the most that preparing takes at once. No file is read, none is written.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from torch import nn

import relaxir as rx
from relaxir.transformers.skeleton import skeleton

#: Llama 3's: https://huggingface.co/meta-llama/Meta-Llama-3-70B/blob/main/config.json
SIZES = {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8}
SIZES |= {"vocab_size": 128256, "rope_theta": 500000.0, "use_cache": False}


class Logits(nn.Module):
    """Ids of tokens to logits; names of weights are those of the checkpoint, behind ``model.``."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(tokens).logits


def exported(layers: int, **sizes: Any) -> torch.export.ExportedProgram:
    """The program of a model of so many layers, with the sizes of Llama 3 70B but for those that are given."""
    config = transformers.LlamaConfig(num_hidden_layers=layers, **(SIZES | sizes))
    model = Logits(skeleton(transformers.LlamaForCausalLM, config))
    length = torch.export.Dim("n", min=2, max=8192)
    with torch.no_grad():
        return torch.export.export(model, (torch.zeros(1, 8, dtype=torch.int64),), dynamic_shapes=[{1: length}])


@contextmanager
def told(what: str) -> Iterator[None]:
    """Prints what a step took."""
    start = time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:8} {time.process_time() - start:7.1f} s of processor, peak memory of the process {peak:6.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=80)
    parser.add_argument("--weights", default=None, help="bf16, int8 or int4")
    arguments = parser.parse_args()
    with told("start"):
        pass
    with told("export"):
        program = exported(arguments.layers)
    with told("import"):
        module = rx.from_torch(program)
    with told("compile"):
        exe = rx.compile(module, weights=arguments.weights, cache=False)
    raw, prepared = (sum(w.array.nbytes for w in weights.values())
                     for weights in (exe.manifest.raw_weights, exe.manifest.prepared_weights))  # fmt: skip
    print(f"text of the module {len(str(module)) / 2**20:.2f} MiB, {len(exe.manifest.raw_weights)} weights")
    print(f"raw weights {raw / 2**30:.1f} GiB, prepared {prepared / 2**30:.1f} GiB, "
          f"most memory that preparing takes at once {exe.manifest.peak_bytes / 2**30:.2f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()

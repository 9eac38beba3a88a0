"""Which passes go through MLIR's pattern driver, and which do not, and why."""

from __future__ import annotations

__all__ = ["PATTERN_PASSES", "WHOLE_PASSES"]

#: Passes whose rewrites are patterns, with the options by which their lit files show them.
PATTERN_PASSES = {
    "relax-adjust-matmul-order": "",
    "relax-canonicalize": "",
    "relax-combine-parallel-matmul": "",
    "relax-expand-matmul-of-sum": "",
    "relax-fold-batch-norm": "",
    "relax-fold-dequantize": "",
    "relax-fold-scales": "",
    "relax-group-packed-rows": "{bf16=2}",
    "relax-lazy-get-input": "",
    "relax-lazy-set-output": "",
    "relax-lazy-transform-params": "",
    "relax-lift-transform-params": "",
    "relax-pack-nibbles": "",
    "relax-pack-weights": "",
    "relax-pool-integers": "",
    "relax-quantize-activations": "{rows=4}",
    "relax-quantize-convolutions": "",
    "relax-quantize-weights": "",
    "relax-realize-vdevice": "",
    "relax-reorder-permute-dims-after-concat": "",
    "relax-reorder-take-after-matmul": "",
    "relax-round-exact-products": "",
    "relax-share-packed-weights": "",
    "relax-sink-growth": "",
    "relax-to-mixed-precision": "",
    "relax-winograd-convolutions": "",
}
#: Those that change a function, or a module, as a whole, and why that is no pattern.
WHOLE_PASSES = {
    "relax-bundle-model-params": "signatures",
    "relax-compute-shape-values": "one list of sizes per function, which its ops share",
    "relax-convert-layout": "one walk in program order: values are in two layouts at once, and readers choose",
    "relax-expand-tuple-arguments": "signatures and calls of them",
    "relax-inline": "bodies take the place of calls, innermost first",
    "relax-inline-private-functions": "the same",
    "relax-remove-unused-outputs": "signatures and calls of them",
    "relax-remove-unused-parameters": "signatures and calls of them",
    "relax-schedule-lazy-io": "the order of all ops of a block",
    "relax-shard": "types of all values at once: what of a weight a rank has says what of others",
    "relax-update-vdevice": "types of all values at once",
}

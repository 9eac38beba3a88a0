"""What happens to a module before it is lowered, as the text of a pipeline of passes on relax."""

from __future__ import annotations

from ..dialect.passes.pipeline_text import parse_pipeline

__all__ = ["CONVOLUTIONS", "NARROW", "WEIGHTS", "completed_pipeline", "default_pipeline"]

# What calls may fail in is checked, or kept, before anything is dropped that goes unread: code refuses what `evaluate` does.
_CHECKS = "relax-check-scalars,relax-keep-checks"
# Code has no tuples, at its boundary neither.
_NO_TUPLES = "relax-expand-tuple-arguments{public=true}"
# Products of integers are made before words of eight are: those are for products of floats. How weights are packed for the
# target is in the module (``relax.weight_layouts``).
_PIPELINE = (
    "{tuples},relax-inline-private-functions,{checks},"
    "relax-canonicalize,relax-fold-dequantize,relax-round-exact-products,relax-fold-batch-norm,"
    "relax-pool-integers,relax-quantize-convolutions,relax-fold-scales,{weights}relax-convert-layout{{gainful=true}},relax-canonicalize,{convolutions}relax-pack-weights,"
    "relax-sink-growth,relax-share-packed-weights,relax-quantize-activations{{floats={floats} exact=true}},relax-pack-nibbles,"
    "relax-group-packed-rows,relax-lift-transform-params,relax-canonicalize,cse,{branches}symbol-dce"
)
# What makes the weights of products narrow, by the dtype that they are stored in. A scale per 32 elements is what four bits
# need to be of use (llama.cpp's Q4_0 and ONNX Runtime's default have it, too), in bf16, as an f32 would be a fifth of what is
# read; f16 would lose scales of small weights. Those with names of llama.cpp's have its scales.
WEIGHTS = {
    None: "",
    "bf16": "relax-to-mixed-precision{dtype=bf16},",
    "int8": "relax-quantize-weights{bits=8},",
    "int4": "relax-quantize-weights{bits=4 group=32 scale=bf16},",
    "q8_0": "relax-quantize-weights{bits=8 group=32 scale=f16},",
    "q4_0": "relax-quantize-weights{bits=4 group=32 scale=f16},",
}
#: What they can be called.
NARROW = tuple(name for name in WEIGHTS if name is not None)


#: How 3x3 convolutions of f32 are computed, by what ``relaxir.compile`` calls it.
CONVOLUTIONS = {None: "relax-winograd-convolutions{gainful=true},", "direct": ""}


def default_pipeline(
    weights: str | None = None, activations: str | None = None, convolutions: str | None = None, *, branches: bool = True
) -> str:
    """What happens to a module before it is lowered, as a pipeline; the first options are those of ``relaxir.compile``.

    Args:
        branches: whether products are skipped where a mask keeps nothing of them, for which on a GPU the host would wait.
    """
    floats = "false" if activations is None else "true"
    skip = "relax-skip-masked-products," if branches else ""
    windows = CONVOLUTIONS[convolutions]
    return _PIPELINE.format(
        tuples=_NO_TUPLES, checks=_CHECKS, weights=WEIGHTS[weights], floats=floats, branches=skip, convolutions=windows
    )


def completed_pipeline(pipeline: str) -> str:
    """A user's pipeline: behind what keeps its passes from dropping what calls fail in, before what takes tuples away.

    Raises RelaxError where its text is malformed.
    """
    parse_pipeline(pipeline)
    return f"{_CHECKS},{pipeline},{_NO_TUPLES}" if pipeline.strip() else f"{_CHECKS},{_NO_TUPLES}"

"""Pass names in, pass classes out: a table of import thunks, so that starting a tool imports only the passes it runs.

Other packages add passes through the entry-point group ``relaxir.passes``: the entry's name is the pass name, its object a
subclass of :class:`relaxir.dialect.passes.base.Pass`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RelaxError
from ..plugins import PASSES, load_one, plugins

if TYPE_CHECKING:
    from .base import Pass

__all__ = [
    "is_registered", "listed", "register", "registered", "registered_pass", "reserve", "suggestion", "upstream_passes",
]  # fmt: skip

Loader = Callable[[], "type[Pass]"]


def _ours(module: str, name: str) -> Loader:
    return lambda: getattr(importlib.import_module(f"..transforms.{module}", __package__), name)


_LOADERS: dict[str, Loader] = {
    "relax-adjust-matmul-order": _ours("products.adjust_matmul_order", "AdjustMatmulOrder"),
    "relax-bundle-model-params": _ours("cleanup.bundle_model_params", "BundleModelParams"),
    "relax-canonicalize": _ours("cleanup.canonicalize", "Canonicalize"),
    "relax-combine-parallel-matmul": _ours("products.combine_parallel_matmul", "CombineParallelMatmul"),
    "relax-expand-matmul-of-sum": _ours("products.expand_matmul_of_sum", "ExpandMatmulOfSum"),
    "relax-compute-shape-values": _ours("cleanup.compute_shape_values", "ComputeShapeValues"),
    "relax-convert-layout": _ours("image_layout.convert_layout", "ConvertLayout"),
    "relax-fold-batch-norm": _ours("products.fold_batch_norm", "FoldBatchNorm"),
    "relax-fold-dequantize": _ours("precision.fold_dequantize", "FoldDequantize"),
    "relax-fold-scales": _ours("precision.fold_scales", "FoldScales"),
    "relax-expand-tuple-arguments": _ours("cleanup.expand_tuple_arguments", "ExpandTupleArguments"),
    "relax-inline": _ours("cleanup.inline", "Inline"),
    "relax-inline-private-functions": _ours("cleanup.inline_private_functions", "InlinePrivateFunctions"),
    "relax-lazy-get-input": _ours("lazy_io.lazy_get_input", "LazyGetInput"),
    "relax-lazy-set-output": _ours("lazy_io.lazy_set_output", "LazySetOutput"),
    "relax-lazy-transform-params": _ours("lazy_io.lazy_transform_params", "LazyTransformParams"),
    "relax-lift-transform-params": _ours("lifting.lift_transform_params", "LiftTransformParams"),
    "relax-group-packed-rows": _ours("packing.group_packed_rows", "GroupPackedRows"),
    "relax-pack-nibbles": _ours("packing.pack_nibbles", "PackIntoNibbles"),
    "relax-pack-weights": _ours("packing.pack_weights", "PackWeights"),
    "relax-pool-integers": _ours("precision.pool_integers", "PoolIntegers"),
    "relax-quantize-activations": _ours("precision.quantize_activations", "QuantizeActivations"),
    "relax-quantize-convolutions": _ours("precision.quantize_convolutions", "QuantizeConvolutions"),
    "relax-quantize-weights": _ours("precision.quantize_weights", "QuantizeWeights"),
    "relax-realize-vdevice": _ours("devices.realize_vdevice", "RealizeVDevice"),
    "relax-reorder-permute-dims-after-concat": _ours(
        "products.reorder_permute_dims_after_concat", "ReorderPermuteDimsAfterConcat"
    ),
    "relax-reorder-take-after-matmul": _ours("products.reorder_take_after_matmul", "ReorderTakeAfterMatmul"),
    "relax-remove-unused-outputs": _ours("cleanup.remove_unused_outputs", "RemoveUnusedOutputs"),
    "relax-remove-unused-parameters": _ours("cleanup.remove_unused_parameters", "RemoveUnusedParameters"),
    "relax-round-exact-products": _ours("precision.round_exact_products", "RoundExactProducts"),
    "relax-shard": _ours("parallel.shard", "ShardWeights"),
    "relax-share-packed-weights": _ours("packing.share_packed_weights", "SharePackedWeights"),
    "relax-sink-growth": _ours("packing.sink_growth", "SinkGrowth"),
    "relax-winograd-convolutions": _ours("packing.winograd_convolutions", "WinogradConvolutions"),
    "relax-schedule-lazy-io": _ours("lazy_io.schedule_lazy_io", "ScheduleLazyIo"),
    "relax-to-mixed-precision": _ours("precision.to_mixed_precision", "ToMixedPrecision"),
    "relax-update-vdevice": _ours("devices.update_vdevice", "UpdateVDevice"),
}

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Names that no pass may have, and why.
_RESERVED = {"any": "which pipelines nest passes under"}


@functools.cache
def upstream_passes() -> tuple[str, ...]:
    """The names of MLIR's own passes, sorted. MLIR has no such list."""
    lines = Path(__file__).with_name("upstream_passes.txt").read_text().splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


def reserve(names: Iterable[str], why: str) -> None:
    """Keeps names from passes, those that a tool takes for something else. ``why`` follows the name in an error."""
    _RESERVED.update(dict.fromkeys(names, why))


def register(name: str, loader: Loader) -> None:
    """Adds a pass under a name; ``loader`` imports and returns its class when it is first used.

    Raises:
        RelaxError: another pass has that name, ours or MLIR's, a flag of a tool has it, or it is no name of a pass.
    """
    if _LOADERS.get(name) is not loader:
        _check_new(name)
        _LOADERS[name] = loader


def _check_new(name: str) -> None:
    if name in _LOADERS:
        raise RelaxError(f"expected a new pass name, got '{name}', which is registered already")
    if name in _RESERVED:
        raise RelaxError(f"expected a new pass name, got '{name}', {_RESERVED[name]}")
    if not name.startswith("relax-") and name in upstream_passes():
        raise RelaxError(f"expected a new pass name, got '{name}', which is one of MLIR's")
    if not _NAME.fullmatch(name):
        raise RelaxError(f"expected a pass name of lower-case letters, digits and dashes, got {name!r}")


def registered() -> Mapping[str, type[Pass]]:
    """All our passes by name, plug-ins included; a class is imported when it is looked up."""
    return _Registry()


def registered_pass(name: str) -> type[Pass] | None:
    """The pass of that name, None when it is not one of ours (it may be one of MLIR's).

    Raises:
        RelaxError: a plug-in that provides it does not load.
    """
    return _loaded(name) if is_registered(name) else None


def listed() -> Iterator[tuple[str, type[Pass] | RelaxError]]:
    """All our passes by name, in order; for one that does not load, what is wrong with it."""
    for name in registered():
        try:
            yield name, _loaded(name)
        except RelaxError as error:
            yield name, error


def is_registered(name: str) -> bool:
    """Whether a pass is one of ours; imports nothing of it."""
    if name not in _LOADERS:
        _load_plugins()
    return name in _LOADERS


def suggestion(name: str) -> str:
    """A hint for a misspelled pass name, empty when nothing is near."""
    _load_plugins()
    close = difflib.get_close_matches(name, [*_LOADERS, "any", *upstream_passes()], 1)
    return f", did you mean '{close[0]}'" if close else ""


class _Registry(Mapping[str, "type[Pass]"]):
    """The read-only view that :func:`registered` returns."""

    def __getitem__(self, name: str) -> type[Pass]:
        found = registered_pass(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        _load_plugins()
        return iter(sorted(_LOADERS))

    def __len__(self) -> int:
        _load_plugins()
        return len(_LOADERS)


@functools.cache
def _loaded(name: str) -> type[Pass]:
    from .pass_class import check_class  # here: it imports MLIR

    return check_class(_LOADERS[name]())


@functools.cache
def _load_plugins() -> None:
    entries = plugins(PASSES)
    for entry in entries:  # before any is there: the next call says the same again
        try:
            _check_new(entry.name)
        except RelaxError as error:
            raise RelaxError(f"{error}, of plug-in {entry.value}") from None
    for entry in entries:
        register(entry.name, functools.partial(load_one, entry))

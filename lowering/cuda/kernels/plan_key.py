"""What decides the plan of a product, as text: the key of measured plans.

``product rows<=512 columns=4096 depth=4096 batch=1 by=bf16 left=k16 right=k16 store=8 group=none epilogue=addf:bf16``. Sizes
that are known at run time only are ``?``; rows, which vary with the prompt, are a class of up to a power of two, all others
are those of weights, and exact. A factor is copied along k or along rows, by so many bytes at once. The epilogue is what is
fused with the product: its operations, how often each, and the type of its results.
"""

from __future__ import annotations

from collections import Counter

from ....dialect.bindings import ir
from ...kernels.structure.match import MatchedGroup
from .matvec.shape import MatvecShape
from .products.shape import FactorShape, ProductShape

__all__ = ["key_of_matvec", "key_of_product"]


def key_of_product(shape: ProductShape, group: MatchedGroup) -> str:
    """Of a product in tiles."""
    factors = f"by={shape.by} left={_factor(shape.left)} right={_factor(shape.right)} store={shape.store}"
    sizes = _sizes(f"rows{_class(shape.rows)}", shape.columns, shape.depth, shape.batch)
    mapped = " mapped" if shape.is_mapped else ""
    kind = f"grouped product groups={shape.groups}" if shape.groups else "product"
    return f"{kind} {sizes} {factors} group={_group(shape.group)} epilogue={_epilogue(group)}{mapped}"


def key_of_matvec(shape: MatvecShape, group: MatchedGroup) -> str:
    """Of a product of few rows."""
    sizes = _sizes(f"rows={shape.rows}", shape.columns, shape.depth, shape.batch)
    numbers = f"bits={shape.step_bits} steps={shape.steps} group={_group(shape.group)}"
    kind = f"grouped matvec groups={shape.groups}" if shape.groups else "matvec"
    return f"{kind} {sizes} {numbers} epilogue={_epilogue(group)}"


def _sizes(rows: str, columns: int | None, depth: int | None, batch: int | None) -> str:
    named = {"columns": columns, "depth": depth, "batch": batch}
    return " ".join([rows, *(f"{name}={'?' if size is None else size}" for name, size in named.items())])


def _class(rows: int | None) -> str:
    return "=?" if rows is None else f"<={1 << max(0, rows - 1).bit_length()}"


def _factor(factor: FactorShape) -> str:
    return f"{'k' if factor.along_k else 'rows'}{'computed' if factor.is_computed else factor.copy}"


def _group(group: int | None) -> str:
    return "none" if group is None else str(group)


def _epilogue(group: MatchedGroup) -> str:
    """``none``, or ``addf+maximumf*2:bf16``."""
    if group.epilogue is None:
        return "none"
    names = Counter(op.operation.name.partition(".")[2] for op in group.epilogue.regions[0].blocks[0].operations)
    del names["yield"]
    counted = [name if count == 1 else f"{name}*{count}" for name, count in sorted(names.items())]
    outputs = list(ir.DenseI32ArrayAttr(group.epilogue.attributes["operandSegmentSizes"]))[1]
    kinds = [str(ir.MemRefType(v.type).element_type) for v in list(group.epilogue.operands)[-outputs:]]
    return f"{'+'.join(counted) or 'copy'}:{'+'.join(kinds)}"

"""Which operators may go through torch-mlir's lowering: those that agree with torch on all OpInfo samples.

``test/conformance/outlined_operators.py`` writes the tables; see there for what is compared, and how.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["KNOWN_SIZES", "SYMBOLIC_SIZES", "untrusted"]

_REASON = "no relax form, and no lowering of torch-mlir that is known to agree with torch"


def untrusted(key: str, dtypes: Collection[str], is_static: bool) -> str | None:
    """Why an operator may not be lowered by torch-mlir; None when it may.

    Args:
        key: the operator, as ``aten.tan``.
        dtypes: those of all its operands and results.
        is_static: whether the sizes of all of them are known.
    """
    table = KNOWN_SIZES if is_static else SYMBOLIC_SIZES
    if "+".join(sorted(dtypes)) in table.get(key, "").split():
        return None
    if key not in KNOWN_SIZES and key not in SYMBOLIC_SIZES:
        return _REASON
    return f"{_REASON} on {', '.join(sorted(dtypes))} of {'known' if is_static else 'symbolic'} sizes"


#: What follows is written by test/conformance/outlined_operators.py.
KNOWN_SIZES: dict[str, str] = {
    "aten.atan2": "bf16 f16 f32 f32+i16 f32+i32 f32+i64 f32+i8 f64",
    "aten.ldexp.Tensor": "bf16 f16 f32 f32+i16 f32+i32 f32+i64 f32+i8 f64",
}
SYMBOLIC_SIZES: dict[str, str] = {
    "aten.atan2": "bf16 f16 f32 f32+i32 f32+i64 f64",
    "aten.ldexp.Tensor": "bf16 f16 f32 f32+i32 f32+i64 f64",
}

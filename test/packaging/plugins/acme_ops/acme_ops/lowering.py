"""How the ops become linalg."""

from __future__ import annotations

from relaxir.extend import LinalgBuilder, Scalar, Source, ir, lowering, math

__all__: list[str] = []


@lowering("relax.acme_soft_sign")
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    def body(x: Scalar) -> Scalar:
        return x / (math("absf", x) + source.attrs["sharpness"])

    return b.elementwise(source.operands, source.result, body)

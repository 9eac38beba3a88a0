"""How the ops become linalg."""

from __future__ import annotations

from relaxir.extend import LinalgBuilder, Scalar, Source, ir, lowering, math, select

__all__: list[str] = []


@lowering("relax.acme_soft_sign")
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    def body(x: Scalar) -> Scalar:
        return x / (math("absf", x) + source.attrs["sharpness"])

    return b.elementwise(source.operands, source.result, body)


@lowering("relax.acme_parts")
def _lower_parts(b: LinalgBuilder, source: Source) -> list[ir.Value]:
    def value(x: Scalar, *bias: Scalar) -> Scalar:
        scaled = x * source.attrs["scale"]
        return scaled + bias[0] if bias else scaled

    def part(sign: str, *operands: Scalar) -> Scalar:
        found = value(*operands)
        return select(found.compare(sign, 0), found, 0)

    kinds = zip(("gt", "lt"), source.results, strict=True)
    return [b.elementwise(source.operands, result, lambda *xs, sign=sign: part(sign, *xs)) for sign, result in kinds]

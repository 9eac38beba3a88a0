"""The classes of the ops."""

from __future__ import annotations

from relaxir.extend import Attrs, Op, Operand, RelaxError, Result, Tensor, TensorInfo, attributes, inference, op_costs

__all__ = ["AcmeParts", "AcmeSoftSign"]


class AcmeSoftSign(Op, name="acme_soft_sign"):
    """``x / (sharpness + |x|)``, of floats."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"sharpness": attributes.real(default=1.0)}
    elementwise = True
    cost = op_costs.per_element(3)

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        inference.require_float(x)
        if attrs["sharpness"] <= 0:
            raise RelaxError(f"expected a sharpness above 0, got {attrs['sharpness']}")
        return x


class AcmeParts(Op, name="acme_parts"):
    """``max(x * scale + bias, 0)`` and ``min(x * scale + bias, 0)``, of floats; without bias it is 0."""

    x: Operand[Tensor]
    bias: Operand[Tensor] | None
    positive: Result[Tensor]
    negative: Result[Tensor]
    attrs = {"scale": attributes.real()}
    elementwise = True
    cost = op_costs.per_element(4)

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> list[TensorInfo]:
        x, *_ = operands
        inference.require_float(x)
        inference.require_same_dtype(*operands)
        result = x.with_(shape=inference.broadcast_shapes(*(o.shape for o in operands)))
        return [result, result]

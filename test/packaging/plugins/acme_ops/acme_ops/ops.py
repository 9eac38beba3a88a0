"""The classes of the ops."""

from __future__ import annotations

from relaxir.extend import Attrs, Op, Operand, RelaxError, Result, Tensor, TensorInfo, attributes, inference, op_costs

__all__ = ["AcmeSoftSign"]


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

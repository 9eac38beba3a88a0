"""What to write in the place of an operator that cannot be imported; each is a use that can be."""

from __future__ import annotations

__all__ = ["alternative"]

_LINEAR = "compute it before export where it reads weights alone, and keep it as a buffer"
_RANDOM = "pass random numbers as an input of the model"
_MASK = "torch.where(mask, x, other), whose size is known, or torch.topk(mask.int(), k) for k places"
_NUMBER = "keep it as a tensor without dimensions: x * y.sum(), not x * y.sum().item()"
_EVAL = "model.eval() before export"
_COUNT = "torch.zeros(n).scatter_add(0, x, torch.ones(x.shape)) for counts of n values"

#: By the operator's name without namespace and overload.
_ALTERNATIVES = {
    "Bool": _NUMBER,
    "Float": _NUMBER,
    "Int": _NUMBER,
    "_local_scalar_dense": _NUMBER,
    "bernoulli": _RANDOM,
    "bincount": _COUNT,
    "item": _NUMBER,
    "linalg_eig": _LINEAR,
    "linalg_ldl_factor_ex": _LINEAR,
    "multinomial": "return the probabilities, and draw outside of the model",
    "native_dropout": _EVAL,
    "nonzero_static": _MASK,
    "normal": _RANDOM,
    "rand": _RANDOM,
    "rand_like": _RANDOM,
    "randint": _RANDOM,
    "randn": _RANDOM,
    "randn_like": _RANDOM,
    "randperm": _RANDOM,
    "rrelu": _EVAL,
}


#: Of what has no form in real numbers.
_REAL = (
    "torch.view_as_real(x) as input and result, and torch.view_as_complex(x) inside, for what adds, multiplies and transforms"
)


def alternative(operator: str, reason: str = "") -> str | None:
    """What to write instead of an operator of torch (``aten.nonzero``, ``aten.index.Tensor``), refused for a reason; None when
    nothing is known.
    """
    if "real numbers" in reason:
        return _REAL
    namespace, _, rest = operator.partition(".")
    return _ALTERNATIVES.get(rest.split(".")[0]) if namespace == "aten" else None

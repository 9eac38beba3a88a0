"""Complex numbers as pairs of reals: a functional graph in, the same without complex tensors out, as far as there are rules.

::

    %c = aten.view_as_complex(%x)       # x: [n, 4, 2]
    %d = aten.mul.Tensor(%c, %w)        # w: a complex weight [4], from here on [4, 2]
    %y = aten.view_as_real(%d)

    %re, %im = aten.select.int(%x, -1, 0), aten.select.int(%x, -1, 1)      # of %w alike
    %y = aten.stack([re * re_w - im * im_w, re * im_w + im * re_w], -1)

Fourier transforms become an operator on both parts (:mod:`.fourier`), dimension by dimension. What has no rule stays, and is
refused with its line when the graph is converted: complex inputs and results, and others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.fx.node import map_arg
from torch.utils._pytree import tree_map

from .fourier import DFT

__all__ = ["REFUSED", "is_complex", "split_complex"]

#: Of a node: why it has no relax form.
REFUSED = "relax.refused"

_aten = torch.ops.aten

#: Real and imaginary part: nodes, or numbers.
_Pair = tuple[Any, Any]


def _operators(names: str) -> list[Any]:
    """Operators of ATen, by names and overloads."""
    parts = [name.partition(".") for name in names.split()]
    return [getattr(getattr(_aten, name), overload or "default") for name, _, overload in parts]


#: Move elements, or add and scale them, whatever they are: applied to both parts, of the operands at these places. The others
#: are real numbers that say how: indices, masks, sizes.
_LINEAR: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys(
        _operators(
            "alias cat clone contiguous cumsum detach diag_embed diagonal expand flip gather index.Tensor index_select mean "
            "mean.dim neg permute repeat reshape resolve_conj resolve_neg roll select.int slice.Tensor split.Tensor "
            "split_with_sizes squeeze squeeze.dim squeeze.dims stack sum sum.dim_IntList t transpose.int tril triu unbind.int "
            "unfold unsqueeze view _unsafe_view"
        ),
        (0,),
    ),
    **dict.fromkeys(_operators("copy select_scatter slice_scatter"), (0, 1)),
    **dict.fromkeys(_operators("index_put masked_fill.Scalar masked_fill.Tensor"), (0, 2)),
    **dict.fromkeys(_operators("index_add index_copy scatter.src scatter.value scatter_add"), (0, 3)),
    **dict.fromkeys(_operators("where.self where.ScalarSelf where.ScalarOther"), (1, 2)),
}

#: Make tensors of one number: its place, if it has one.
_FILLED: dict[Any, int | None] = {
    **dict.fromkeys(_operators("empty.memory_format empty_like new_empty new_ones new_zeros ones ones_like zeros zeros_like")),
    _aten.fill.Scalar: 1, _aten.full.default: 1, _aten.full_like.default: 1, _aten.new_full.default: 2,
    _aten.scalar_tensor.default: 0,
}  # fmt: skip

_CONJUGATE = {_aten._conj.default, _aten._conj_physical.default, _aten.conj_physical.default}
_PRODUCTS = {_aten.mul.Tensor, _aten.mm.default, _aten.bmm.default, _aten.matmul.default}
_SUMS = {_aten.add.Tensor, _aten.sub.Tensor}


_TRANSFORMS = {_aten._fft_c2c.default, _aten._fft_r2c.default, _aten._fft_c2r.default}

#: Products that a power becomes are bounded by it.
_MOST_POWER = 64

_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def split_complex(graph: torch.fx.Graph, weights: Collection[str]) -> None:
    """Rewrites a graph in place.

    Args:
        graph: operators with fake values.
        weights: names of the placeholders that become real, with a last dimension of two, where they are complex.
    """
    if not any(is_complex(node) for node in graph.nodes):
        return
    splitter = _Splitter(graph, weights)
    for node in list(graph.nodes):
        splitter.visit(node)
    for node in graph.output_node().all_input_nodes:
        if node in splitter.replaced:
            _refuse(node)
    for node in reversed(list(graph.nodes)):
        if not node.users and node in splitter.replaced:
            graph.erase_node(node)


def is_complex(value: object) -> bool:
    """Whether a node's value, or one of several, has complex numbers."""
    found = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    if isinstance(found, list | tuple):
        return any(map(is_complex, found))
    return found.is_complex() if isinstance(found, torch.Tensor) else isinstance(found, complex)


def _refuse(node: torch.fx.Node) -> None:
    """Has a node reported, and not what it reads: that has a form."""
    node.args, node.kwargs = (), {}
    node.meta[REFUSED] = "no form in real numbers"


class _Splitter:
    """Writes parts of complex values beside the nodes that make them.

    Attributes:
        parts: real and imaginary part of each complex node.
        replaced: nodes that something else does the work of.
    """

    def __init__(self, graph: torch.fx.Graph, weights: Collection[str]):
        self.parts: dict[torch.fx.Node, _Pair] = {}
        self.replaced: set[torch.fx.Node] = set()
        self._graph = graph
        self._weights = weights
        self._node: torch.fx.Node | None = None
        # Outside of it torch runs kernels that take no symbolic sizes.
        values = [n.meta["val"] for n in graph.nodes if "val" in n.meta]
        self._mode: Any = detect_fake_mode(values) or nullcontext()

    def visit(self, node: torch.fx.Node) -> None:
        if node.op == "placeholder" and is_complex(node):
            return self._split_placeholder(node)
        operands = node.all_input_nodes
        if node.op != "call_function" or not (is_complex(node) or any(is_complex(n) for n in operands)):
            return
        if any(is_complex(n) and n not in self.parts for n in operands):
            return  # of one that has no rule
        if node.target is _aten._assert_tensor_metadata.default:  # what torch.export has just seen to hold
            return self._graph.erase_node(node)
        self._node = node
        with self._graph.inserting_before(node):
            found = self._rule(node)
        if isinstance(found, tuple):
            self.parts[node] = found
            self.replaced.add(node)
        elif found is not None:
            self._take_over(node, found)
        else:
            _refuse(node)

    def _split_placeholder(self, node: torch.fx.Node) -> None:
        if node.name not in self._weights:
            return
        node.meta["val"] = torch.view_as_real(node.meta["val"])
        node.meta.pop("tensor_meta", None)
        self._node = node
        with self._graph.inserting_before(next(n for n in self._graph.nodes if n.op != "placeholder")):
            self.parts[node] = self.call(_aten.select.int, node, -1, 0), self.call(_aten.select.int, node, -1, 1)

    def _take_over(self, node: torch.fx.Node, new: torch.fx.Node) -> None:
        """A real node in the place of another one, under its name: results go by the names of nodes."""
        name = node.name
        node.replace_all_uses_with(new)
        self._graph.erase_node(node)
        new.name = name

    def _rule(self, node: torch.fx.Node) -> _Pair | torch.fx.Node | None:
        """The parts of a complex node, what a real one becomes, or None where there is no rule."""
        target, arguments = node.target, node.args
        if target is _aten.view_as_complex.default:
            return self.call(_aten.select.int, arguments[0], -1, 0), self.call(_aten.select.int, arguments[0], -1, 1)
        if target is _aten.polar.default:
            radius, angle = arguments
            return _both(lambda f: self._mul(radius, self.call(f, angle)), (_aten.cos.default, _aten.sin.default))
        if target is _aten.complex.default:
            return arguments[0], arguments[1]
        if target in _PRODUCTS:
            return self._product(target, arguments[0], arguments[1])
        if target in _SUMS:
            a, b = self._parts(arguments[0]), self._parts(arguments[1])
            return _both(lambda i: self.call(target, a[i], b[i], **node.kwargs), (0, 1))
        if target is _aten.constant_pad_nd.default:
            return self._padded(*arguments)
        if target is _aten.div.Tensor:
            return self._quotient(arguments[0], arguments[1])
        if target is _aten.reciprocal.default:
            return self._over((self._one_like(arguments[0]), 0), self._parts(arguments[0]))
        if target is _aten.pow.Tensor_Scalar:
            return self._power(arguments[0], arguments[1])
        if target in _TRANSFORMS:
            return self._transform(node)
        if target in _LINEAR:
            return self._linear(node, _LINEAR[target])
        if target is operator.getitem:
            return _both(lambda part: self.call(target, part, arguments[1]), self._parts(arguments[0]))
        if target in _FILLED:
            return self._filled(node, _FILLED[target])
        dtype: Any = node.kwargs.get("dtype")
        if target is _aten._to_copy.default and dtype in _REAL:
            kwargs = {**node.kwargs, "dtype": _REAL[dtype]}
            return _both(lambda part: self.call(target, part, **kwargs), self._parts(arguments[0]))
        return self._of_one(node)

    def _of_one(self, node: torch.fx.Node) -> _Pair | torch.fx.Node | None:
        """Rules of operators with one complex operand."""
        if not isinstance(node.args[0], torch.fx.Node) or node.args[0] not in self.parts:
            return None
        real, imaginary = self.parts[node.args[0]]
        if node.target in _CONJUGATE:
            return real, self.call(_aten.neg.default, imaginary)
        if node.target is _aten.view_as_real.default:
            return self.call(_aten.stack.default, [real, imaginary], -1)
        if node.target in (_aten.real.default, _aten.imag.default):
            return self.call(_aten.clone.default, real if node.target is _aten.real.default else imaginary)
        if node.target is _aten.linalg_vector_norm.default:
            size = self.call(_aten.hypot.default, real, imaginary)
            return self.call(node.target, size, *node.args[1:], **node.kwargs)
        if node.target is _aten.abs.default:
            return self.call(_aten.hypot.default, real, imaginary)
        if node.target is _aten.angle.default:
            return self.call(_aten.atan2.default, imaginary, real)
        if node.target is _aten.exp.default:
            size = self.call(_aten.exp.default, real)
            return _both(lambda f: self._mul(size, self.call(f, imaginary)), (_aten.cos.default, _aten.sin.default))
        return None

    def _padded(self, x: Any, amounts: Any, value: Any = 0) -> _Pair:
        real, imaginary = self._parts(x)
        value = complex(value)
        pad, node = _aten.constant_pad_nd.default, self._node
        assert node is not None
        return self._like(node, pad, real, amounts, value.real), self._like(node, pad, imaginary, amounts, value.imag)

    def _transform(self, node: torch.fx.Node) -> _Pair | torch.fx.Node | None:
        """Along each dimension; of real numbers the last one first, of which half the frequencies say all, or back to them."""
        given: Any = node.args
        x, dims, norm, last = given
        dims = [d % len(x.meta["val"].shape) for d in dims]
        power = {0: 0.0, 1: 0.5, 2: 1.0}[norm]
        if not dims:
            return None
        if node.target is _aten._fft_c2r.default:
            return self._to_real(x, dims, last, power)
        is_real = node.target is _aten._fft_r2c.default
        sign = -1 if is_real or last else 1
        parts: tuple[Any, Any] = (x, None) if is_real else self._parts(x)
        for d in reversed(dims):
            count = self._size(parts[0], d)
            if is_real and last and d == dims[-1]:
                count = self._half(count)
            parts = self._halves(self.call(DFT, *parts, d, count, sign, power))
        return parts

    def _size(self, x: torch.fx.Node, axis: int) -> Any:
        """A number, or a node of one."""
        size = x.meta["val"].shape[axis]
        return size if isinstance(size, int) else self.call(_aten.sym_size.int, x, axis)

    def _half(self, size: Any) -> Any:
        """How many frequencies of real numbers say all."""
        return size // 2 + 1 if isinstance(size, int) else self.call(operator.add, self.call(operator.floordiv, size, 2), 1)

    def _to_real(self, x: torch.fx.Node, dims: list[int], n: Any, power: float) -> torch.fx.Node:
        """Real numbers from half of their frequencies: the other half are these, conjugate, in reverse.

        Args:
            n: how many along the last dimension, a number or a node of one.
        """
        *others, last = dims
        real, imaginary = self._parts(x)
        for d in reversed(others):
            real, imaginary = self._halves(self.call(DFT, real, imaginary, d, self._size(real, d), 1, power))
        half = self._half(n)
        real, imaginary = (self.call(_aten.slice.Tensor, p, last, 0, half) for p in (real, imaginary))
        is_open = isinstance(n, torch.fx.Node)
        imaginary = (self._without_open_ends if is_open else self._without_ends)(imaginary, last, n)
        if is_open or n > 2:
            end = self.call(operator.sub, self.call(operator.add, n, 1), half) if is_open else (n + 1) // 2
            rest = [self.call(_aten.flip.default, self.call(_aten.slice.Tensor, p, last, 1, end), [last])
                    for p in (real, imaginary)]  # fmt: skip
            real = self.call(_aten.cat.default, [real, rest[0]], last)
            imaginary = self.call(_aten.cat.default, [imaginary, self.call(_aten.neg.default, rest[1])], last)
        return self._halves(self.call(DFT, real, imaginary, last, n, 1, power))[0]

    def _without_ends(self, x: torch.fx.Node, axis: int, n: int) -> torch.fx.Node:
        """Zeros where frequencies of real numbers have no imaginary part: at the first, and of even sizes the last."""
        begin, end = 1, (n + 1) // 2
        zero = self.call(_aten.zeros_like.default, self.call(_aten.slice.Tensor, x, axis, 0, 1))
        parts = [zero, *([self.call(_aten.slice.Tensor, x, axis, begin, end)] if end > begin else [])]
        return self.call(_aten.cat.default, parts if n % 2 or n < 2 else [*parts, zero], axis)

    def _without_open_ends(self, x: torch.fx.Node, axis: int, n: torch.fx.Node) -> torch.fx.Node:
        """The same where it is not known whether the size is even."""
        place = self.call(_aten.arange.default, self._size(x, axis))
        keeps = self.call(_aten.gt.Scalar, place, 0)
        middle = self.call(_aten.ne.Scalar, self.call(_aten.mul.Scalar, place, 2), n)
        keeps = self.call(_aten.logical_and.default, keeps, middle)
        for _ in range(axis + 1, len(x.meta["val"].shape)):
            keeps = self.call(_aten.unsqueeze.default, keeps, -1)
        return self.call(_aten.where.self, keeps, x, self.call(_aten.zeros_like.default, x))

    def _halves(self, both: torch.fx.Node) -> tuple[torch.fx.Node, torch.fx.Node]:
        return self.call(_aten.select.int, both, 0, 0), self.call(_aten.select.int, both, 0, 1)

    def _parts(self, value: Any) -> _Pair:
        if isinstance(value, complex):
            return value.real, value.imag
        if not isinstance(value, torch.fx.Node):
            return value, 0
        return self.parts[value] if value in self.parts else (value, self.call(_aten.zeros_like.default, value))

    def _linear(self, node: torch.fx.Node, places: tuple[int, ...]) -> _Pair:
        """The operator of each part of what is at these places."""
        kwargs: dict[str, Any] = dict(node.kwargs)
        kwargs |= {"dtype": _REAL.get(kwargs["dtype"], kwargs["dtype"])} if "dtype" in kwargs else {}

        def of(index: int) -> torch.fx.Node:
            args: list[Any] = [self._part(a, index) if i in places else a for i, a in enumerate(node.args)]
            return self._like(node, node.target, *args, **kwargs)

        return _both(of, (0, 1))

    def _like(self, complex_node: torch.fx.Node, target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
        """A node for one part of what another one gives; run, torch's kernels would decide by the sizes of examples."""
        node = self._new(target, args, kwargs)
        with self._mode:
            node.meta["val"] = tree_map(_real_like, complex_node.meta["val"])
        return node

    def _part(self, value: Any, index: int) -> Any:
        """One part of an operand, or of each one in a list."""
        return [self._part(v, index) for v in value] if isinstance(value, list | tuple) else self._parts(value)[index]

    def _filled(self, node: torch.fx.Node, place: int | None) -> _Pair | None:
        """Both parts of a number; ones are real."""
        if not is_complex(node):
            return None
        kwargs = {**node.kwargs, "dtype": _REAL[node.meta["val"].dtype]}
        args = [self._parts(a)[0] if isinstance(a, torch.fx.Node) and is_complex(a) else a for a in node.args]
        if place is None:
            return self.call(node.target, *args, **kwargs), self._mul(self.call(node.target, *args, **kwargs), 0)
        given: Any = node.args[place]
        number = complex(given)

        def of(part: float) -> torch.fx.Node:
            return self.call(node.target, *args[:place], part, *args[place + 1 :], **kwargs)

        return of(number.real), of(number.imag)

    def _is_real(self, value: Any) -> bool:
        return value not in self.parts if isinstance(value, torch.fx.Node) else not isinstance(value, complex)

    def _mul(self, a: Any, b: Any) -> torch.fx.Node:
        return self.call(_aten.mul.Tensor, a, b)

    def _product(self, f: Any, a: Any, b: Any) -> _Pair:
        if self._is_real(a):
            return _both(lambda part: self.call(f, a, part), self._parts(b))
        if self._is_real(b):
            return _both(lambda part: self.call(f, part, b), self._parts(a))
        (a_real, a_imaginary), (b_real, b_imaginary) = self._parts(a), self._parts(b)
        real = self.call(_aten.sub.Tensor, self.call(f, a_real, b_real), self.call(f, a_imaginary, b_imaginary))
        return real, self.call(_aten.add.Tensor, self.call(f, a_real, b_imaginary), self.call(f, a_imaginary, b_real))

    def _quotient(self, a: Any, b: Any) -> _Pair | None:
        """By Smith's method, as PyTorch does it: squares of large or small numbers would leave the range.

        Source: https://github.com/pytorch/pytorch, c10/util/complex.h.
        """
        if self._is_real(b):
            return _both(lambda part: self.call(_aten.div.Tensor, part, b), self._parts(a))
        if not isinstance(a, torch.fx.Node) or b == 0:
            return None
        if not isinstance(b, torch.fx.Node):
            return self._product(_aten.mul.Tensor, a, 1 / b)
        return self._over(self._parts(a), self._parts(b))

    def _over(self, a: _Pair, b: _Pair) -> _Pair:
        (a_real, a_imaginary), (c, d) = a, b
        sizes = [self.call(_aten.abs.default, part) for part in (c, d)]
        is_wide = self.call(_aten.ge.Tensor, *sizes)
        large, small = self._where(is_wide, c, d), self._where(is_wide, d, c)
        ratio = self._div(small, large)
        scale = self.call(_aten.reciprocal.default, self._add(large, self._mul(small, ratio)))
        first, second = self._mul(a_real, ratio), self._mul(a_imaginary, ratio)
        real = self._where(is_wide, self._add(a_real, second), self._add(first, a_imaginary))
        imaginary = self._where(is_wide, self._sub(a_imaginary, first), self._sub(second, a_real))
        size = self.call(_aten.maximum.default, *sizes)
        is_zero = self.call(_aten.eq.Scalar, size, 0)
        return (
            self._where(is_zero, self._div(a_real, size), self._mul(real, scale)),
            self._where(is_zero, self._div(a_imaginary, size), self._mul(imaginary, scale)),
        )

    def _one_like(self, x: Any) -> torch.fx.Node:
        return self.call(_aten.ones_like.default, self._parts(x)[0])

    def _power(self, x: Any, exponent: Any) -> _Pair | None:
        """Whole powers as products, by squares."""
        if not isinstance(exponent, int | float) or exponent != int(exponent) or not 0 < abs(exponent) <= _MOST_POWER:
            return None
        bits, squared = int(abs(exponent)), self._parts(x)
        found: _Pair | None = None
        while bits:
            if bits & 1:
                found = squared if found is None else self._times(found, squared)
            bits >>= 1
            squared = self._times(squared, squared) if bits else squared
        assert found is not None
        return found if exponent > 0 else self._over((self._one_like(x), 0), found)

    def _times(self, a: _Pair, b: _Pair) -> _Pair:
        real = self._sub(self._mul(a[0], b[0]), self._mul(a[1], b[1]))
        return real, self._add(self._mul(a[0], b[1]), self._mul(a[1], b[0]))

    def _where(self, condition: Any, a: Any, b: Any) -> torch.fx.Node:
        return self.call(_aten.where.self, condition, a, b)

    def _add(self, a: Any, b: Any) -> torch.fx.Node:
        return self.call(_aten.add.Tensor, a, b)

    def _sub(self, a: Any, b: Any) -> torch.fx.Node:
        return self.call(_aten.sub.Tensor, a, b)

    def _div(self, a: Any, b: Any) -> torch.fx.Node:
        return self.call(_aten.div.Tensor, a, b)

    def call(self, target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
        """A new node at the insertion point, with its fake value and the place in the source of the node it stands for."""
        node = self._new(target, args, kwargs)
        with self._mode:
            node.meta["val"] = target(*map_arg(args, _value), **map_arg(kwargs, _value))
        return node

    def _new(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
        assert self._node is not None
        node = self._graph.call_function(target, args, kwargs)
        node.meta = {k: v for k, v in self._node.meta.items() if k in ("stack_trace", "nn_module_stack")}
        return node


def _both(f: Callable[[Any], Any], parts: _Pair) -> _Pair:
    return f(parts[0]), f(parts[1])


def _real_like(x: Any) -> Any:
    return x.new_empty(x.shape, dtype=_REAL.get(x.dtype, x.dtype)) if isinstance(x, torch.Tensor) else x


def _value(node: torch.fx.Node) -> Any:
    return node.meta["val"]

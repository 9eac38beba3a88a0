"""Functions of tensors, many operators each, that exercise the whole op map; every output has a name for messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

aten = torch.ops.aten
Outputs = dict[str, Tensor]


@dataclass(frozen=True)
class Case:
    """A function of tensors.

    Attributes:
        function: the function; a dictionary of named results.
        inputs: makes the arguments.
    """

    function: Callable[..., Outputs]
    inputs: Callable[[], tuple[Tensor, ...]]


class Wrapped(nn.Module):
    """A function as a module, for torch.export."""

    def __init__(self, function: Callable[..., Outputs]):
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Outputs:
        return self.function(*args)


CASES: dict[str, Case] = {}


def case(*inputs: Callable[[], Tensor]) -> Callable[[Callable[..., Outputs]], Callable[..., Outputs]]:
    def register(function: Callable[..., Outputs]) -> Callable[..., Outputs]:
        CASES[function.__name__] = Case(function, lambda: tuple(make() for make in inputs))
        return function

    return register


def floats(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(shape)


def positive(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.rand(shape) + 0.1


def integers(*shape: int, low: int = -7, high: int = 8, dtype: torch.dtype = torch.int64) -> Callable[[], Tensor]:
    return lambda: torch.randint(low, high, shape).to(dtype)


def booleans(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.rand(shape) > 0.5


def value(x: float, dtype: torch.dtype) -> Callable[[], Tensor]:
    return lambda: torch.tensor(x, dtype=dtype)


@case(floats(3, 4), positive(3, 4), integers(3, 4))
def unary(x, p, i):
    return {
        "abs": x.abs(),
        "neg": -x,
        "sign": x.sign(),
        "sgn": torch.sgn(x),
        "square": x.square(),
        "cos": x.cos(),
        "sin": x.sin(),
        "erf": x.erf(),
        "erfc": (3 * x).erfc(),
        "erfinv": x.tanh().erfinv(),
        "lgamma": (3 * x).lgamma(),
        "lgamma_int": i.lgamma(),
        "digamma": (3 * x).digamma(),
        "exp": x.exp(),
        "log": p.log(),
        "log2": p.log2(),
        "log10": p.log10(),
        "exp2": x.exp2(),
        "reciprocal": p.reciprocal(),
        "rsqrt": p.rsqrt(),
        "sigmoid": x.sigmoid(),
        "sqrt": p.sqrt(),
        "tanh": x.tanh(),
        "silu": F.silu(x),
        "hardswish": F.hardswish(3 * x),
        "gelu": F.gelu(x),
        "gelu_tanh": F.gelu(x, approximate="tanh"),
        "relu": F.relu(x),
        "relu6": F.relu6(5 * x),
        "leaky": F.leaky_relu(x, 0.2),
        "softplus": F.softplus(30 * x),
        "softplus_beta": F.softplus(x, beta=2.0),
        "ceil": (3 * x).ceil(),
        "floor": (3 * x).floor(),
        "round": (3 * x).round(),
        "trunc": (3 * x).trunc(),
        "round to places": (9 * x).round(decimals=1) + (900 * x).round(decimals=-2),
        "round_int": i.round(),
        "relu_int": F.relu(i),
        "abs_int": i.abs(),
        "exp_int": i.exp(),
        "hardtanh": F.hardtanh(x),
        "clamp": x.clamp(-0.5, 0.5),
        "clamp_min": x.clamp_min(0.1),
        "clamp_max": x.clamp_max(0.1),
        "clamp_int": i.clamp(min=-2),
        "clip": x.clip(max=0.3),
        "elu": F.elu(x),
        "positive": +x,
        "log1p": p.log1p(),
        "log1p_small": (p * 1e-6).log1p() * 1e6,
        "expm1": x.expm1(),
        "expm1_small": (x * 1e-6).expm1() * 1e6,
        "acos": x.tanh().acos(),
        "acosh": (p + 1).acosh(),
        "asin": x.tanh().asin(),
        "asinh": x.asinh(),
        "atan": x.atan(),
        "atanh": x.tanh().atanh(),
        "cosh": x.cosh(),
        "sinh": x.sinh(),
        "tan": x.tan(),
        "softplus_threshold": F.softplus(x, 3.0, 0.2),
    }


@case(floats(3, 4), floats(3, 4), floats(4), positive(3, 1), value(1.5, torch.float32))
def binary(x, y, row, column, scalar):
    return {
        "add": x + y,
        "add_alpha": torch.add(x, y, alpha=2),
        "add_row": x + row,
        "add_number": x + 2.5,
        "sub": x - column,
        "sub_alpha": torch.sub(x, y, alpha=0.5),
        "sub_number": x - 1,
        "rsub": 1.0 - x,
        "rsub_tensor": torch.rsub(x, y, alpha=3),
        "mul": x * y,
        "mul_number": x * 3,
        "mul_one": x * 1.0,
        "div": x / column,
        "div_number": x / 4,
        "div_one": x / 1,
        "floor_divide": torch.floor_divide(x, column),
        "floor_number": x // 0.3,
        "div_floor": torch.div(x, y, rounding_mode="floor"),
        "div_trunc": torch.div(3 * x, column, rounding_mode="trunc"),
        "div_none": torch.div(x, y, rounding_mode=None),
        "div_number_floor": aten.div.Scalar_mode(x, 0.3, rounding_mode="floor"),
        "remainder": torch.remainder(x, column),
        "remainder_number": x % 0.7,
        "fmod": torch.fmod(x, column),
        "fmod_number": torch.fmod(x, 0.7),
        "pow": column**x,
        "pow_1": x**1,
        "pow_2": x**2,
        "pow_3": x**3.0,
        "pow_5": x**5,
        "pow_half": column**0.5,
        "pow_minus_half": column**-0.5,
        "pow_minus_1": column**-1,
        "pow_number": column.pow(1.7),
        "pow_of_number": 2.0**x,
        "maximum": torch.maximum(x, y),
        "minimum": torch.minimum(x, row),
        "max_other": torch.max(x, y),
        "min_other": torch.min(x, y),
        "zero_d": x * scalar,
        "clamp_tensor": x.clamp(row - 1, row),
        "clamp_min_tensor": torch.clamp_min(x, row),
        "clamp_max_tensor": torch.clamp_max(x, row),
        "clamp_half": torch.clamp(x, max=row),
        "type_as": x.double().type_as(x),
    }


@case(integers(3, 4), integers(3, 4), integers(3, 4, low=1, high=5), booleans(3, 4), booleans(4))
def on_integers(i, j, small, b, c):
    return {
        "add": i + j,
        "add_zero": i + 0,
        "mul": i * j,
        "div": i / small,
        "floor_divide": i // small,
        "trunc": torch.div(i, small, rounding_mode="trunc"),
        "remainder": i % small,
        "fmod": torch.fmod(i, small),
        "pow": small**3,
        "pow_2": i**2,
        "and": i & j,
        "or": i | j,
        "xor": i ^ j,
        "not": ~i,
        "left": small << 2,
        "right": i >> 1,
        "left_tensor": small << small,
        "right_tensor": small >> j.abs(),
        "shift_left": torch.bitwise_left_shift(small, small),
        "shift_right": torch.bitwise_right_shift(i, small),
        "shift_left_2": torch.bitwise_left_shift(small, 2),
        "shift_of_number": torch.bitwise_left_shift(3, small),
        "shift_right_of_number": torch.bitwise_right_shift(1000, small),
        "shift_right_2": torch.bitwise_right_shift(i, 2),
        "div_number": torch.div(i, 2, rounding_mode="floor"),
        "and_number": i & 3,
        "or_number": i | 1,
        "xor_number": i ^ 5,
        "bool_and": b & c,
        "bool_or": b | c,
        "bool_xor": b ^ c,
        "bool_not": ~b,
        "bool_add": b + c,
        "bool_mul": b * c,
        "bool_max": torch.maximum(b, c),
        "logical_and": torch.logical_and(i, j),
        "logical_or": torch.logical_or(b, i),
        "logical_xor": torch.logical_xor(i, b),
        "logical_not": torch.logical_not(i),
        "isnan": i.isnan(),
        "isfinite": i.isfinite(),
        "isinf": torch.isinf(i / small),
    }


@case(
    floats(3, 4),
    floats(3, 4),
    integers(3, 4),
    integers(3, 4, dtype=torch.int32),
    booleans(3, 4),
    lambda: torch.tensor([[1.0, float("nan"), float("inf"), -float("inf")]] * 3),
)
def comparisons(x, y, i, j, b, special):
    return {
        "eq": i == j,
        "ne": x != y,
        "lt": x < y,
        "le": x <= 0,
        "gt": x > i,
        "ge": i >= 2,
        "eq_float": i == 2.0,
        "lt_float": i < 0.5,
        "ge_bool": b >= i,
        "ne_number": i != 1,
        "gt_number": x > 0.1,
        "lt_int": i < j,
        "le_tensor": i <= j,
        "where": torch.where(b, x, y),
        "where_number": torch.where(b, x, 0.0),
        "where_other": torch.where(b, 1.0, x),
        "where_numbers": torch.where(b, 1.0, 2.0),
        "where_mixed": torch.where(b, i, x),
        "masked_fill": x.masked_fill(b, -1.0),
        "masked_fill_tensor": x.masked_fill(b, y.sum()),
        "masked_fill_int": i.masked_fill(b, 3),
        "isnan": special.isnan(),
        "isinf": special.isinf(),
        "isfinite": special.isfinite(),
        "nan_max": torch.maximum(special, x),
    }


@case(
    floats(3, 4),
    integers(3, 4),
    booleans(3, 4),
    integers(3, 4, dtype=torch.int32),
    integers(4, low=0, dtype=torch.uint8),
    lambda: torch.randn(3, 4).to(torch.bfloat16),
    lambda: torch.randn(4).to(torch.float16),
    lambda: torch.randn(4).double(),
    value(2.5, torch.float64),
    value(3, torch.int64),
)
def promotion(f32, i64, b, i32, u8, bf16, f16, f64, scalar_f64, scalar_i64):
    return {
        "int_float": i64 + f32,
        "int_number": i64 * 2.5,
        "int_int": i32 + i64,
        "u8_i32": u8 + i32,
        "u8_number": u8 + 1,
        "bool_int": b + i32,
        "bool_number": b * 3,
        "bool_float": b + 0.5,
        "bf16_f32": bf16 * f32,
        "bf16_f16": bf16 + f16,
        "f16_number": f16 * 2,
        "f64": f32 + f64,
        "scalar_does_not_count": f32 * scalar_f64,
        "scalar_kind_counts": i64 * scalar_f64,
        "scalar_int": f32 + scalar_i64,
        "i32_scalar": i32 + scalar_i64,
        "two_scalars": scalar_f64 + scalar_i64,
        "bf16_int": bf16 + i64,
        "mean_int": i64.to(torch.float32).mean(),
        "compare_mixed": i32 > f32,
        "compare_bf16": bf16 > 0.1,
        "compare_u8": u8 == i32,
        "cat": torch.cat([f32, f64.expand(1, 4)]),
        "cat_int": torch.cat([i32, i64]),
        "to": f32.to(torch.int32),
        "to_bool": i64.to(torch.bool),
        "to_layout": aten.to.dtype_layout(f32, dtype=torch.int32),
        "to_device": f32.to("cpu", torch.float64),
        "convert": torch.ops.prims.convert_element_type(f32, torch.int32),
        "to_bf16": f32.to(torch.bfloat16),
        "double": bf16.double(),
        "half_to_int": f16.to(torch.int64),
        "bool_to_float": b.float(),
        "sum_bool": b.sum(),
        "sum_i32": i32.sum(0),
        "sum_dtype": f32.sum(dtype=torch.float64),
        "cumsum_bool": b.cumsum(1),
        "prod_i32": i32.prod(),
        "div_int": i32 / u8.clamp(1),
        "softmax_dtype": bf16.softmax(-1, dtype=torch.float32),
        "true_div_bool": b / 2,
        "sqrt_int": (i64 * i64).sqrt(),
    }


@case(floats(2, 3, 4), floats(2, 3, 4), floats(1, 3, 1))
def shapes(x, y, thin):
    a, b = x.split(2, dim=-1)
    c, d, e = x.unbind(1)
    f, g = torch.split(x, [1, 3], dim=2)
    h = x.chunk(2, dim=2)
    k = torch.split(x, 3, 2)
    return {
        "view": x.view(6, 4),
        "view_minus": x.view(2, -1),
        "reshape": x.transpose(0, 1).reshape(-1),
        "flatten": x.flatten(1),
        "flatten_0d": x.sum().flatten(),
        "unflatten": x.unflatten(2, (2, -1)),
        "unsqueeze": x.unsqueeze(-1).unsqueeze(0),
        "squeeze": thin.squeeze(),
        "squeeze_dim": thin.squeeze(0),
        "squeeze_not": x.squeeze(1),
        "squeeze_dims": thin.squeeze((0, 2)),
        "expand": thin.expand(2, -1, 4),
        "expand_new": thin.expand(5, 2, 3, 4),
        "expand_as": thin.expand_as(x),
        "broadcast_to": torch.broadcast_to(thin, (2, 3, 4)),
        "permute": x.permute(2, 0, -2),
        "transpose": x.transpose(-1, 0),
        "t": x[0].t(),
        "T": x[1].T,
        "mT": x.mT,
        "movedim": x.movedim(0, 2),
        "cat": torch.cat([x, y, x], -1),
        "cat_one": torch.cat([x]),
        "cat_empty": torch.cat([torch.zeros(0), x[0, 0]]),
        "stack": torch.stack([x, y], 1),
        "repeat": x.repeat(2, 1, 1, 3),
        "interleave": x.repeat_interleave(3, dim=1),
        "interleave_flat": x.repeat_interleave(2),
        "flip": x.flip(0, -1),
        "roll": x.roll(1, 2),
        "roll_two": x.roll((1, -2), (0, 2)),
        "roll_flat": x.roll(5),
        "split": a * b,
        "unbind": c * d - e,
        "split_sizes": f * g,
        "chunk": h[0] - h[1],
        "uneven": k[0].sum() + k[1].sum(),
        "clone": x.clone(),
        "contiguous": x.mT.contiguous(),
        "detach": x.detach(),
        "alias": aten.alias(x),
        "unsafe_view": aten._unsafe_view(x, [6, 4]),
        "reshape_alias": aten._reshape_alias(x, [6, 4], [4, 1]),
    }


@case(
    floats(6, 5),
    integers(3, low=0, high=5),
    integers(2, 3, low=-5, high=5),
    floats(4, 6, 5),
    integers(6, 2, low=0, high=5),
    floats(2, 5),
    floats(5),
)
def indexing(x, i, j, z, columns, rows, one):
    return {
        "slice": x[1:4],
        "slice_step": x[::2, 1::3],
        "slice_negative": x[-3:-1],
        "slice_far": x[4:100],
        "slice_empty": x[5:2],
        "select": x[2],
        "select_negative": x[:, -1],
        "narrow": x.narrow(1, 1, 3),
        "index": x[i],
        "index_axis": x[:, i],
        "index_2d": x[j % 6],
        "index_negative": x[j, j],
        "index_pair": z[:, i, i],
        "index_apart": z[i % 4, :, i],
        "index_broadcast": z[i[:, None] % 4, i[None]],
        "index_all": z[i % 4, i, i],
        "index_arange": x[torch.arange(5)[:, None], torch.arange(5)[None]],
        "index_select": x.index_select(1, i),
        "put": x.put(columns, x[:, :2]),
        "gather": x.gather(1, columns),
        "gather_smaller": x.gather(1, columns[:3]),
        "gather_0": x.gather(0, columns[:4]),
        "embedding": F.embedding(columns, x),
        "diff": x.diff(),
        "diff_options": x.diff(2, 0, prepend=x[:1], append=x[:2]),
        "diff_bool": (x > 0).diff(),
        "slice_scatter": torch.slice_scatter(x, rows, 0, 1, 3),
        "slice_scatter of every third": torch.slice_scatter(x, x[:2], 0, 1, step=3),
        "select_scatter": torch.select_scatter(x, one, 0, -2),
        "copy": aten.copy(x, one),
        "one_hot": F.one_hot(i, 7),
        "pad": F.pad(x, (1, 2)),
        "pad_2d": F.pad(z, (1, 0, 0, 2), value=2.5),
        "pad_crop": F.pad(x, (-1, 2, 1, -2)),
        "pad_int": F.pad(i, (0, 1), value=9),
        "unsafe_index": aten._unsafe_index(x, [i]),
        "tril": x.tril(),
        "triu": x.triu(1),
        "tril_low": x.tril(-1),
    }


@case(floats(6, 5), floats(4, 6, 5), floats(2, 5), floats(5), lambda: torch.tensor([4, -6]), lambda: torch.tensor([3, 1]))
def writes(x, z, rows, one, i, j):
    return {
        "index_put": aten.index_put(x, [i], rows),
        "index_put_broadcast": aten.index_put(x, [i], one),
        "index_put_inner": aten.index_put(z, [None, j], one),
        "index_put_last": aten.index_put(z, [None, None, j], x[:, :2]),
        "index_put_distant": aten.index_put(z, [j, None, j], x[:, :2].T),
        "index_put_distant_one": aten.index_put(z, [j[:, None], None, j[None] + 1], one[0]),
        "index_put_distant_rows": aten.index_put(z, [j[:, None], None, -j[None]], z[:2, :, :2].mT),
        "index_put_distant_added": aten.index_put(z[None], [j * 0, None, j, -j], x[:2, :4], True),
        "index_put_mask": aten.index_put(x, [x > 0], x[0, 0]),
        "index_put_rows": aten.index_put(x, [x[:, 0] > 0], x[0, 0]),
        "index_put_columns": aten.index_put(z, [None, x > 0], x[0, 0]),
    }


INDEX = integers(4, 3, low=0, high=5)
TWICE = [lambda: torch.tensor([4, 4, 1]), lambda: torch.tensor([[0, -1], [3, -1]])]
MASK = [lambda: torch.tensor([True, False, True, True, False, False]), lambda: torch.tensor([[0, 1, 2, 3, 4], [5, 0, 1, 2, 3]])]


@case(
    floats(6, 5), floats(4, 6, 5), floats(4, 5), floats(5), INDEX, integers(4, 5, low=0, high=6), integers(6, 5), *TWICE, *MASK,
    floats(4, 3), lambda: torch.tensor(0),
)  # fmt: skip
def scattered(x, z, rows, one, i, j, n, twice, back, mask, two, less, none):
    return {
        "add_rows": aten.index_put(x, [twice], rows[:3], True),
        "add_one": aten.index_put(z, [None, twice], one, True),
        "add_places": aten.index_put(z, [back, back], one, True),
        "add_mask": aten.index_put(x, [x > 0], x[0, 0], True),
        "put_mask": aten.index_put(x, [mask], rows[:3]),
        "put_mask_row": aten.index_put(x, [mask], one),
        "put_mask_inside": aten.index_put(z, [None, mask], z[:, :3]),
        "add_mask_inside": aten.index_put(z, [None, mask], rows[:, None] + 1, True),
        "index_add": x.index_add(0, twice, rows[:3], alpha=2),
        "src": x.scatter(0, two, rows),
        "value": x.scatter(1, i, 2.5),
        "value_int": n.scatter(0, j, 3),
        "add": x.scatter_add(1, i, less),
        "add_int": n.scatter_add(0, j, n),
        "reduce": x.scatter(0, j, rows, reduce="add"),
        "reduce_value": x.scatter(1, i, 2.0, reduce="multiply"),
        "sum": x.scatter_reduce(0, j, rows, "sum"),
        "prod": x.scatter_reduce(0, j, rows, "prod", include_self=False),
        "mean": x.scatter_reduce(0, j, rows, "mean"),
        "mean_others": x.scatter_reduce(0, j, rows, "mean", include_self=False),
        "amax": x.scatter_reduce(1, i, less, "amax", include_self=False),
        "amin": x.scatter_reduce(1, i, less, "amin"),
        "amin_int": n.scatter_reduce(0, j, n, "amin", include_self=False),
        "any": (x > 0).scatter_reduce(0, j, rows > 0, "amax"),
        "scalar": one[0].scatter_add(0, none, one[1]),
        "masked": z.masked_scatter(x > 0, z.flip(0)),
        "masked_rows": x.masked_scatter(mask[:, None], rows),
        "diagonal": x.diagonal_scatter(one[:4], -2),
        "diagonal_inner": z.diagonal_scatter(rows[:, :4], 1, 1, 2),
        "histc": torch.histc(x, 4, -1, 1),
        "histc_experts": torch.histc(j.float(), 6, 0, 5),
        "histc_of_data": torch.histc(x, 5),
        "histc_of_one_number": torch.histc(torch.ones_like(x), 5),
    }


@case(
    floats(3, 7), integers(3, 7), booleans(3, 7), lambda: torch.tensor([[1.0, float("nan"), 0, float("inf"), 2]]),
    floats(2, 5, 3), lambda: torch.tensor([-1.0, 0, 0.5, 0.5, 1]),
)  # fmt: skip
def sorted_(x, i, b, special, z, rows):
    values, order = x.sort(-1)
    down, where = z.sort(1, descending=True)
    stable, places = i.sort(stable=True, dim=0, descending=True)
    top, best = x.topk(3)
    low, least = z.topk(2, 1, largest=False)
    kth, kth_place = x.kthvalue(2, 0, keepdim=True)
    middle, middle_place = x.median(1)
    most, most_place = i.cummax(1)
    fewest, fewest_place = special.cummin(1)
    held, held_place = b.cummax(1)
    return {
        "sort": values, "order": order, "down": down, "where": where, "stable": stable, "places": places, "top": top,
        "best": best, "low": low, "least": least, "kth": kth, "kth_place": kth_place, "middle": middle,
        "middle_place": middle_place, "most": most, "most_place": most_place, "fewest": fewest, "fewest_place": fewest_place,
        "held": held, "held_place": held_place,
        "booleans": b.sort(dim=-1, stable=True)[1],
        "special": special.sort(-1)[0],
        "special_down": special.sort(-1, descending=True)[1],
        "special_median": special.median(1)[0],
        "median_all": x.median(),
        "argsort": x.argsort(0),
        "argsort_stable": i.argsort(dim=1, stable=True, descending=True),
        "scalar": x[0, 0].sort()[0],
        "scalar_top": x[0, 0].topk(1)[1],
        "scalar_max": x[0, 0].max(0)[1],
        "scalar_argmax": x[0, 0].argmax(0),
        "scalar_select": x[0, 0].index_select(0, torch.zeros(1, dtype=torch.int64)),
        "cumprod": x.cumprod(1),
        "logcumsumexp": x.logcumsumexp(1),
        "cumprod_int": i.cumprod(0),
        "search": torch.searchsorted(rows, x),
        "search_right": torch.searchsorted(values, x, right=True, out_int32=True),
        "bucketize": torch.bucketize(x, rows, right=True),
        "bucketize_number": torch.bucketize(0.3, rows),
        "search_number": torch.searchsorted(rows, 0.1, right=True),
    }  # fmt: skip


@case(floats(3, 4), floats(3, 4), lambda: torch.tensor([0.0, -0.0, float("inf"), -float("nan")]), integers(3, 4))
def edges(x, y, special, i):
    return {
        "fmax": torch.fmax(x, special), "fmin": torch.fmin(special, x), "fmax_int": torch.fmax(i, i.flip(1)),
        "signbit": torch.signbit(special), "signbit_bf16": torch.signbit(-special.bfloat16()),
        "bits": x.view(torch.int32), "other_bits": i.bfloat16().view(torch.float16), "same_bits": x.view(torch.float32),
        "bits_of_truth": (x > 0).view(torch.int8),
        "signbit_int": torch.signbit(i), "copysign": torch.copysign(x, special),
        "copysign_number": torch.copysign(x, -0.0), "hypot": torch.hypot(x, y), "hypot_special": torch.hypot(special, x * 1e30),
    }  # fmt: skip


@case(floats(7, 16), floats(3, 16, 8), lambda: torch.tensor([2, 2, 7], dtype=torch.int32), lambda: torch.tensor([1, 1, 5]))
def experts(x, w, ends, fewer):
    from transformers.integrations import moe  # noqa: F401  registers an operator

    fallback = torch.ops.transformers.grouped_mm_fallback
    return {
        "grouped": torch._grouped_mm(x.bfloat16(), w.bfloat16(), offs=ends),
        "fallback": fallback(x, w, ends),
        "rows_of_no_group": fallback(x, w, fewer),
    }


@case(floats(3, 4), integers(3, 4), booleans(3, 4))
def creation(x, i, b):
    return {
        "zeros": torch.zeros(2, 3) + x[0, 0],
        "ones": torch.ones(4, dtype=torch.int32) + i[0, 0],
        "full": torch.full((2, 2), 3.5) * x[0, 0],
        "full_bool": torch.full((3, 4), True) & b,
        "zeros_like": torch.zeros_like(x),
        "zero": torch.ops.aten.zero(x),
        "ones_like": torch.ones_like(i),
        "full_like": torch.full_like(x, -2.0),
        "new_zeros": x.new_zeros(5),
        "new_ones": x.new_ones((2,), dtype=torch.int64),
        "new_full": i.new_full((2, 1), 4),
        "arange": torch.arange(5) + i[0, 0],
        "arange_from": torch.arange(2, 9) * i[0, 0],
        "arange_step": torch.arange(1, 10, 3) * i[0, 0],
        "arange_down": torch.arange(5, 0, -2) * i[0, 0],
        "arange_float": torch.arange(4, dtype=torch.float32) * x[0, 0],
        "arange_fraction": torch.arange(0, 1, 0.25) + x[0, 0],
        "scalar_tensor": torch.scalar_tensor(3.0) * x[0, 0],
        "fill": aten.fill.Scalar(x, 7.0),
        "fill_tensor": aten.fill.Tensor(x, x[0, 0]),
    }


@case(floats(0, 4), integers(3, 0), booleans(0, 4))
def reductions_of_nothing(x, i, b):
    values, where = x.max(1)
    return {
        "sum": x.sum(),
        "sum_dim": x.sum(0),
        "sum_other": i.sum(0),
        "mean": x.mean(0),
        "prod": i.prod(1),
        "any": b.any(),
        "any_dim": b.any(0),
        "any_other": b.any(1, keepdim=True),
        "any_dims": torch.any(x, (0, 1)),
        "any_int": i.any(1),
        "is_any": aten._is_any_true(b),
        "all": b.all(),
        "all_dim": b.all(0, keepdim=True),
        "all_int": i.all(1),
        "is_all": aten._is_all_true(b),
        "byte": b.to(torch.uint8).any(0),
        "max_dim": values,
        "max_where": where,
        "argmin": x.argmin(1),
        "amax": x.amax(1),
        "var": x.var(0),
        "std": x.std(1),
        "norm": torch.linalg.vector_norm(x, dim=0),
        "logsumexp": x.logsumexp(0),
        "softmax": x.softmax(0),
        "cumsum": x.cumsum(0),
        "cummax": x.cummax(0)[0],
        "median": x.median(1)[0],
        "sort": x.sort(0)[0],
        "topk": x.topk(2, 1)[0],
    }


@case(floats(2, 3, 4), integers(2, 3, 4), booleans(2, 3, 4))
def reductions(x, i, b):
    values, where = x.max(1)
    low, _ = x.min(-1, keepdim=True)
    return {
        "sum": x.sum(),
        "sum_dim": x.sum((0, 2)),
        "sum_keep": x.sum(-1, keepdim=True),
        "mean": x.mean(),
        "mean_dim": x.mean(1, keepdim=True),
        "amax": x.amax((1, 2)),
        "amin": x.amin(0),
        "max": x.max(),
        "min": i.min(),
        "max_dim": values,
        "max_where": where,
        "min_dim": low,
        "prod": x.prod(),
        "prod_dim": x.prod(2),
        "any": b.any(),
        "any_dim": b.any(1),
        "any_dims": torch.any(b, (0, 2)),
        "is_all": aten._is_all_true(b),
        "is_any": aten._is_any_true(b),
        "all": b.all(),
        "all_dim": b.all(2, keepdim=True),
        "any_int": i.any(0),
        "all_float": x.all(),
        "all_dims": torch.all(i, dim=(0, 1)),
        "argmax": x.argmax(1),
        "argmax_all": x.argmax(),
        "argmin": x.argmin(-1, keepdim=True),
        "argmax_keep": x.argmax(keepdim=True),
        "var": x.var(),
        "var_dim": x.var(1),
        "var_population": x.var((0, 1), correction=0, keepdim=True),
        "std": x.std(-1),
        "std_all": x.std(),
        "cumsum": x.cumsum(1),
        "softmax": x.softmax(-1),
        "log_softmax": x.log_softmax(1),
        "logsumexp": x.logsumexp((1, 2)),
        "logsumexp_infinite": (x[0] / 0).logsumexp(0),
        "logsumexp_nothing": (-x[0].abs() / 0).logsumexp(1, keepdim=True),
        "norm": torch.linalg.vector_norm(x, dim=-1),
        "sum_0d": x[0, 0, 0].sum(),
        "softmax_0d": x[0, 0, 0].softmax(0),
        "cumsum_0d": x[0, 0, 0].cumsum(0),
        "mean_0d": x[0, 0, 0].mean(0),
    }


@case(floats(2, 3, 4), floats(5, 4), floats(5), floats(2, 4, 3), floats(4), floats(3, 5), floats(2, 3, 3))
def products(x, w, b, y, v, c, d):
    return {
        "linear": F.linear(x, w, b),
        "linear_plain": F.linear(x, w),
        "linear_vector": F.linear(v, w, b),
        "mm": w @ w.t(),
        "bmm": torch.bmm(x, y),
        "matmul": x @ y,
        "matmul_broadcast": x @ w.t(),
        "mv": w @ v,
        "dot": v @ v,
        "row": v @ y,
        "addmm": torch.addmm(c, x[0], w.t()),
        "addmm_scaled": torch.addmm(c, x[0], w.t(), beta=2, alpha=0.5),
        "addmm_no_c": torch.addmm(c * float("nan"), x[0], w.t(), beta=0),
        "baddbmm": torch.baddbmm(d, x, y, beta=0.5),
        "addmv": torch.addmv(b, w, v),
        "outer": torch.outer(v, b),
        "vdot": torch.vdot(v, v),
        "mv_plain": torch.mv(w, v),
        "dot_plain": torch.dot(v, v),
        "linear_1d": aten.linear(x, v),
    }


@case(floats(2, 6, 4), floats(4), floats(4), floats(6), positive(6), lambda: torch.randn(2, 6, 4).to(torch.bfloat16))
def norms(x, gamma, beta, channel, variance, half):
    return {
        "layer_norm": F.layer_norm(x, (4,), gamma, beta),
        "layer_norm_plain": F.layer_norm(x, (6, 4), eps=1e-3),
        "layer_norm_scale": F.layer_norm(x, (4,), gamma),
        "layer_norm_bf16": F.layer_norm(half, (4,)),
        "rms_norm": F.rms_norm(x, (4,), gamma, 1e-6),
        "rms_norm_plain": F.rms_norm(x, (4,)),
        "batch_norm": F.batch_norm(x, channel, variance, channel, channel),
        "batch_norm_plain": F.batch_norm(x, channel, variance, eps=1e-3),
        "group_norm": F.group_norm(x, 3, channel, channel),
        "group_norm_plain": F.group_norm(x, 2),
        "dropout": F.dropout(x, 0.5, training=False),
    }


@case(
    floats(2, 4, 5, 8),
    floats(2, 4, 7, 8),
    floats(2, 4, 7, 6),
    floats(2, 2, 7, 8),
    booleans(2, 1, 5, 7),
    floats(5, 7),
    floats(2, 4, 5, 8),
)
def attention(q, k, v, shared, mask, bias, other):
    sdpa = F.scaled_dot_product_attention
    hidden = torch.where(torch.arange(5)[:, None] == 1, float("-inf"), bias)
    return {
        "plain": sdpa(q, k, v),
        "mask": sdpa(q, k, v, mask),
        "bias": sdpa(q, k, v, bias),
        "causal": sdpa(q, other, q, is_causal=True),
        "scale": sdpa(q, k, v, scale=0.3),
        "grouped": sdpa(q, shared, shared, enable_gqa=True),
        "rank_3": sdpa(q[0], k[0], v[0]),
        "rank_2": sdpa(q[0, 0], k[0, 0], v[0, 0]),
        "causal_longer": sdpa(q, k, v, is_causal=True),
        "nothing_seen": sdpa(q, k, v, mask & (torch.arange(5)[:, None] != 2)),
        "nothing_seen_bias": sdpa(q, k, v, hidden),
        "one_query_head": sdpa(q[:, :1], k, v),
        "flash": aten._scaled_dot_product_flash_attention_for_cpu(q, k, k)[0],
    }


def pooled_back(x, pool, window):
    """What comes back of overlapping windows."""
    found, places = pool(x, window, [1, 2, 2][-len(window) :])
    back = getattr(aten, f"{pool._qualified_op_name.removeprefix('aten::')}_backward")
    return back(found, x, window, [1, 2, 2][-len(window) :], [0] * len(window), [1] * len(window), False, places)


@case(floats(2, 4, 9, 8), floats(6, 4, 3, 3), floats(6), floats(4, 2, 3, 2), floats(2, 4, 9), floats(6, 4, 3))
def windows(x, w, b, grouped, signal, w1):
    return {
        "conv2d": F.conv2d(x, w, b),
        "conv2d_options": F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2)),
        "grouped": F.conv2d(x, grouped, groups=2),
        "same": F.conv2d(x, w, b, padding="same"),
        "valid": F.conv2d(x, w, b, padding="valid"),
        "unbatched": F.conv2d(x[0], w, b, 2),
        "even": F.conv2d(x, grouped, padding="same", groups=2),
        "conv1d": F.conv1d(signal, w1, b, 2, 1),
        "conv1d_same": F.conv1d(signal, w1, padding="same"),
        "max_pool": F.max_pool2d(x, 3, 2, 1),
        "max_pool_dilated": F.max_pool2d(x, 2, (1, 2), 0, 2),
        "max_pool_ceil": F.max_pool2d(x, 2, ceil_mode=True),
        "max_pool_integers": F.max_pool2d((x * 9).long(), 3, 2, 1),
        "max_pool_back": pooled_back(x, torch.ops.aten.max_pool2d_with_indices, [3, 3]),
        "max_pool_back_3d": pooled_back(x, torch.ops.aten.max_pool3d_with_indices, [2, 3, 3]),
        "max_pool_unbatched": F.max_pool2d(x[0], 2),
        "avg_pool": F.avg_pool2d(x, 2),
        "avg_pool_padded": F.avg_pool2d(x, 3, 2, 1),
        "avg_pool_exclusive": F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        "avg_pool_ceil": F.avg_pool2d(x, (2, 3), ceil_mode=True),
        "adaptive": F.adaptive_avg_pool2d(x, (4, 3)),
        "adaptive_one": F.adaptive_avg_pool2d(x, 1),
        "adaptive_unbatched": F.adaptive_avg_pool2d(x[0], 2),
        "upsample": F.interpolate(x, scale_factor=2, mode="nearest"),
        "upsample_size": F.interpolate(x, size=(18, 24), mode="nearest"),
        "upsample_fraction": F.interpolate(x, size=(13, 12), mode="nearest"),
        "upsample_plain": aten.upsample_nearest2d(x, [18, 8]),
        "upsample_1d": F.interpolate(x[0], size=13),
        "upsample_1d_plain": aten.upsample_nearest1d(x[0], [16]),
        "upsample_3d": F.interpolate(x[None], scale_factor=(1, 2, 1.5)),
        "upsample_3d_plain": aten.upsample_nearest3d(x[None], [3, 5, 7]),
        "exact_1d": F.interpolate(x[0], scale_factor=1.7, mode="nearest-exact"),
        "exact_1d_plain": aten._upsample_nearest_exact1d(x[0], [5]),
        "exact_2d": F.interpolate(x, size=(5, 24), mode="nearest-exact"),
        "exact_2d_plain": aten._upsample_nearest_exact2d(x, [3, 11]),
        "exact_3d": F.interpolate(x[None], size=(5, 3, 19), mode="nearest-exact"),
        "exact_3d_plain": aten._upsample_nearest_exact3d(x[None], [2, 3, 8]),
    }


@case(floats(2, 4, 4), floats(2, 4, 4))
def composites(x, y):
    """Operators that the map does not write and torch decomposes."""
    variance, mean = torch.var_mean(x, dim=(0, 2))
    ends = torch.tensor([-1.0, float("inf"), 0.0])
    return {
        "einsum": torch.einsum("bij,bjk->bik", x, y),
        "glu": F.glu(x, 1),
        "instance_norm": F.instance_norm(x),
        "batch_norm_training": F.batch_norm(x, y[0, 0].clone(), y[0, 1].abs(), training=True, momentum=0.3),
        "pixel_shuffle": F.pixel_shuffle(x[:1].expand(4, 4, 4), 2),
        "eye": torch.eye(4) + x,
        "linspace": torch.linspace(0, 1, 4) + x,
        "hamming": torch.hamming_window(4) + torch.hamming_window(4, False) + torch.hamming_window(4, True, 0.6) * x,
        "hamming_beta": torch.hamming_window(4, False, 0.6, 0.3) + x,
        "blackman": torch.blackman_window(4) + torch.blackman_window(4, False) * x,
        "bartlett": torch.bartlett_window(4) + torch.bartlett_window(4, False) * x,
        "kaiser": torch.kaiser_window(4) + torch.kaiser_window(4, False) * x + torch.kaiser_window(4, True, 7.0),
        "variance": variance,
        "mean": mean,
        "feature_dropout": torch.feature_dropout(x, 0.5, False),
        "alpha_dropout": F.alpha_dropout(x, 0.5, False),
        "hardsigmoid": F.hardsigmoid(x),
        "mish": F.mish(x),
        "selu": F.selu(x),
        "tensor": ends,
        "log1p_ends": ends.log1p(),
        "take_row": x[0][torch.tensor([0, 2])],
        "celu": F.celu(x, 0.7),
        "addcmul": torch.addcmul(x, x, y, value=0.5),
        "lerp": torch.lerp(x, y, 0.3),
        "rot90": x.rot90(),
        "cross_entropy": F.log_softmax(x, -1)[..., 0],
        "nan_to_num": (x / 0).nan_to_num(1.0, 2.0, -3.0),
        "threshold": F.threshold(x, 0.1, 5.0),
        "softsign": F.softsign(x),
        "atleast": torch.atleast_3d(x[0]),
        "index_copy": x.index_copy(1, torch.tensor([3, 0]), x[:, 1:3]),
        "index_fill": x.index_fill(1, torch.tensor([3, -4]), 2.5),
        "index_fill_tensor": x.index_fill(-1, torch.tensor(0), x.sum()),
        "hstack": torch.hstack([x, y]),
        "heaviside": torch.heaviside(x, y),
        "norm": x.norm(dim=1),
        "pad_reflect": F.pad(x, (1, 2), mode="reflect"),
        "upsample_by_half": F.interpolate(x[None], scale_factor=1.5, mode="nearest"),
        "logaddexp": torch.logaddexp(x, y),
        "count": torch.count_nonzero(x > 0, dim=1),
        "cosine": F.cosine_similarity(x, y),
        "huber": F.huber_loss(x, y),
        "tile": x.tile(2),
        "swapaxes": x.swapaxes(0, 1),
        "view_as": x.view_as(y),
        "empty": torch.empty(3).fill_(2.0) * x[0, 0, 0],
        "empty_like": torch.empty_like(x).fill_(1.0),
        "new_empty": x.new_empty(2).fill_(3.0),
    }

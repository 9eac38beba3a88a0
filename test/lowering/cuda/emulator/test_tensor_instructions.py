"""Asynchronous copies, mbarriers, clusters and tensor cores in a few lines of PTX, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relaxir.lowering.cuda.emulator import Finding, Machine, Options, TensorMap
from support.ptx import execute, kernel

X = np.random.default_rng(3).integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
T = np.arange(64, dtype=np.uint32)
SHARED = ".shared .align 128 .b8 buf[4096]; .shared .align 8 .b64 bar[2];"
START = (
    "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0; "
    "mov.b64 %d6, buf; add.s64 %d7, %d6, %d3;"
)
WAIT = "\nW: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n"
TX = "mbarrier::complete_tx::bytes"

CASES = {
    "cp.async": (
        "mov.b64 %d6, buf; shl.b64 %d8, %d3, 2; add.s64 %d7, %d6, %d8; cp.async.ca.shared.global [%d7], [%d4], 4; "
        "cp.async.commit_group; cp.async.wait_group 0; ld.shared.b32 %r3, [%d7];",
        X,
    ),
    "cp.async with zeros": (
        "mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; and.b32 %r5, %r1, 3; "
        "cp.async.ca.shared.global [%d7], [%d4], 4, %r5; "
        "cp.async.wait_all; ld.shared.b32 %r3, [%d7];",
        X & (np.uint32(1) << 8 * (T & 3)) - np.uint32(1),
    ),
    "cp.async that arrives": (
        f"{START} and.b64 %d8, %d3, 127; add.s64 %d9, %d1, %d8; setp.gt.u32 %p3, %r1, 7; "
        f"mov.b32 %r3, 0; @%p3 bra E;"
        "shl.b64 %d8, %d3, 2; add.s64 %d7, %d6, %d8; add.s64 %d9, %d1, %d8;"
        "cp.async.cg.shared.global [%d7], [%d9], 16; cp.async.mbarrier.arrive.shared.b64 [bar]; "
        "@!%p1 bra E;"
        f"mbarrier.arrive.shared.b64 _, [bar]; {WAIT} ld.shared.b32 %r3, [%d7];\n"
        f"E:",
        np.where(T == 0, X, 0),
    ),
    "mbarrier state": (
        "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; "
        "add.s32 %r4, %r1, 7; mov.b64 %d6, buf; "
        "add.s64 %d7, %d6, %d3; st.shared.b32 [%d7], %r4; mbarrier.arrive.shared.b64 %d8, [bar];\n"
        "W: mbarrier.test_wait.shared.b64 %p2, [bar], %d8; @!%p2 bra W; xor.b32 %r5, %r1, 33; "
        "mul.wide.u32 %d9, %r5, 4; "
        "add.s64 %d10, %d6, %d9; ld.shared.b32 %r3, [%d10];",
        (T ^ 33) + 7,
    ),
    "bulk load": (
        f"{START} @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; "
        f"@%p1 cp.async.bulk.shared::cluster.global.{TX} [buf], [%d1], 256, [bar]; "
        f"{WAIT} ld.shared.b32 %r3, [%d7];",
        X,
    ),
    "bulk store": (
        "mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; st.shared.b32 [%d7], %r2; fence.proxy.async.shared::cta; "
        "bar.sync 0; "
        "setp.eq.u32 %p1, %r1, 0; @!%p1 bra E; cp.async.bulk.global.shared::cta.bulk_group [%d2], [buf], 256; "
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nE: bar.sync 0; ld.global.b32 %r3, [%d5];",
        X,
    ),
    "ldmatrix": (
        "mov.b64 %d6, buf; add.s64 %d7, %d6, %d3; st.shared.b32 [%d7], %r2; bar.sync 0; and.b32 %r5, %r1, 7; "
        "mul.wide.u32 %d8, %r5, 16; "
        "add.s64 %d9, %d6, %d8; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r3}, [%d9];",
        np.tile(np.ascontiguousarray(X[:32].view(np.uint16).reshape(8, 8).T).view(np.uint32).reshape(-1), 2),
    ),
    "stmatrix": (
        "mov.b64 %d6, buf; shr.u32 %r4, %r1, 5; shl.b32 %r4, %r4, 7; and.b32 %r5, %r1, 7; "
        "shl.b32 %r6, %r5, 4; add.u32 %r7, %r4, %r6; "
        "cvt.u64.u32 %d8, %r7; add.s64 %d9, %d6, %d8; "
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%d9], {%r2}; bar.sync 0; "
        "add.s64 %d7, %d6, %d3; ld.shared.b32 %r3, [%d7];",
        np.ascontiguousarray(X.view(np.uint16).reshape(2, 8, 8).swapaxes(1, 2)).view(np.uint32).reshape(-1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_copies_and_barriers(name: str) -> None:
    body, wanted = CASES[name]
    assert (execute(kernel(body, SHARED), X) == wanted).all()


# --------------------------------------------------------------------------------------------------------- tensor copies
TENSOR = """.version 8.6
.target sm_90a
.address_size 64
.entry k(.param .align 64 .b8 from[128], .param .align 64 .b8 into[128]) .reqntid 32, 1, 1 {{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;
  .shared .align 1024 .b8 buf[8192]; .shared .align 8 .b64 bar;
  mov.b64 %d1, from; mov.b64 %d2, into; cvta.param.u64 %d3, %d1; cvta.param.u64 %d4, %d2;
  elect.sync _|%p1, -1;
  @!%p1 bra E;
  mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [%d3, {{{where}}}], [bar];
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  {store}.tensor.{rank}d.global.shared::cta{operation}.tile.bulk_group [%d4, {{{zeros}}}], [buf];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
E: ret;
}}
"""


def copied(
    values: Any,
    box: tuple[int, ...],
    where: tuple[int, ...],
    kind: int,
    swizzle: int = 0,
    fills_nan: bool = False,
    into: Any = None,
) -> Any:
    """A box of a tensor (sizes, box and place from the innermost dimension) by way of shared memory."""
    machine = Machine("sm_90a", Options(steps=10_000), memory=1 << 20)
    width = values.dtype.itemsize

    def tensor(address: int, shape: tuple[int, ...], nan: bool = False) -> bytes:
        strides = [width * int(np.prod(shape[: i + 1])) for i in range(len(shape) - 1)]
        return TensorMap(kind, address, shape, tuple(strides), box, swizzle, nan).packed()

    out = machine.memory.allocate(width * int(np.prod(box))) if into is None else machine.upload(into)
    text = TENSOR.format(
        size=width * int(np.prod(box)), rank=len(box), where=", ".join(map(str, where)), zeros=", ".join("0" for _ in box),
        store="cp.async.bulk" if into is None else "cp.reduce.async.bulk", operation="" if into is None else ".add",
    )  # fmt: skip
    args = [tensor(machine.upload(values), values.shape[::-1], fills_nan), tensor(out, box)]
    machine.run(machine.load(text), "k", [1], [32], args)
    return machine.download(out, box[::-1], values.dtype)


def test_boxes_of_tensors() -> None:
    """One to five dimensions, boxes that reach beyond every side, each swizzle there and back."""
    rng = np.random.default_rng(0)
    assert (copied(values := rng.standard_normal(64).astype(np.float32), (16,), (8,), 7) == values[8:24]).all()
    values = rng.standard_normal((3, 2, 5, 6, 8)).astype(np.float16)
    got = copied(values, (8, 2, 3, 2, 2), (0, 2, 1, 0, 1), 6)
    assert (got == values[1:3, 0:2, 1:4, 2:4]).all()
    values = rng.standard_normal((20, 40)).astype(np.float32)
    padded = np.pad(values, ((8, 8), (8, 8)))
    for where in ((-4, -3), (36, 15), (0, 0), (-8, 12)):
        for swizzle in (0, 1, 2, 3) if where[0] % 4 == 0 else (0,):
            got = copied(values, (8, 8), where, 7, swizzle)
            assert (got == padded[where[1] + 8 : where[1] + 16, where[0] + 8 : where[0] + 16]).all()


def test_box_outside_is_nan_where_asked() -> None:
    values = np.ones((4, 16), np.float32)
    got = copied(values, (8, 8), (12, 0), 7, fills_nan=True)
    assert np.isnan(got[:, 4:]).all()
    assert np.isnan(got[4:]).all()
    assert (got[:4, :4] == 1).all()


def test_reductions_of_boxes() -> None:
    values, old = np.arange(64, dtype=np.float32).reshape(8, 8), np.full((8, 8), 5, np.float32)
    assert (copied(values, (8, 8), (0, 0), 7, into=old) == values + 5).all()


@pytest.mark.parametrize(("message", "fields"), {
    "in steps of 16 bytes, got 0x104": dict(address=260),
    "boxes of 1 to 256": dict(box=(8, 300)),
    "rows of the box in steps of 16 bytes, got 12": dict(box=(3, 8)),
    "at most 32 bytes for the swizzle, got 64": dict(box=(16, 8), swizzle=1),
    "1 to 5 dimensions": dict(strides=()),
    "a data type below 13": dict(kind=14),
}.items())  # fmt: skip
def test_tensor_maps_that_are_refused(message: str, fields: Any) -> None:
    with pytest.raises(Finding, match=message):
        TensorMap(**{"kind": 7, "address": 256, "sizes": (64, 64), "strides": (256,), "box": (8, 8), "swizzle": 0, **fields})


# -------------------------------------------------------------------------------------------------------------- clusters
CLUSTER = """.version 8.6
.target sm_90a
.address_size 64
.entry k(.param .u64 source, .param .u64 target) .reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1 {{
  .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<19>; .reg .b64 %d<19>;
  .shared .align 128 .b8 buf[256]; .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [source]; ld.param.u64 %d2, [target];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r9, %ctaid.x; xor.b32 %r3, %r2, 1;
  shl.b32 %r4, %r9, 5; add.u32 %r4, %r4, %r1; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
  ld.global.b32 %r5, [%d4];
  mov.u32 %r6, buf; shl.b32 %r7, %r1, 2; add.u32 %r6, %r6, %r7; mapa.shared::cluster.u32 %r8, %r6, %r3;
  setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  {sync}
  {body}
  st.global.b32 [%d5], %r10;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}}
"""
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
FAR = "st.shared::cluster.b32 [%r8], %r5; {sync} ld.shared.b32 %r10, [%r6];"
MULTICAST = (
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; setp.eq.u32 %p2, %r2, 0; and.pred %p3, %p1, %p2; mov.b16 %h1, 3;"
    "cvta.to.global.u64 %d6, %d1; mul.wide.u32 %d7, %r9, 128; add.s64 %d6, %d6, %d7;"
    f"@%p3 cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [buf], [%d6], 128, [bar], %h1;"
    "\nW: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\nld.shared.b32 %r10, [%r6];"
)


def run_cluster(body: str, sync: str = SYNC, **options: Any) -> Any:
    machine = Machine("sm_90a", Options(steps=20_000, **options), memory=1 << 20)
    out = machine.memory.allocate(4 * 128)
    words = np.arange(128, dtype=np.uint32)
    machine.run(machine.load(CLUSTER.format(body=body, sync=sync)), "k", [4], [32], [machine.upload(words), out])
    return machine.download(out, (2, 2, 32), np.uint32)


def test_clusters() -> None:
    """Stores to the other block, and a load for both."""
    words = np.arange(128, dtype=np.uint32).reshape(2, 2, 32)
    assert (run_cluster(FAR.format(sync=SYNC)) == words[:, ::-1]).all()
    assert (run_cluster(MULTICAST) == words[:, :1]).all()
    assert (run_cluster("getctarank.shared::cluster.u32 %r10, %r8;") == np.array([1, 0])[:, None]).all()


def test_clusters_without_order() -> None:
    with pytest.raises(Finding, match=r"race in k: read after write of buf\+0"):
        run_cluster(FAR.format(sync=""))
    with pytest.raises(Finding, match=r"barrier\.cluster\.wait without arrive"):
        run_cluster(FAR.format(sync="barrier.cluster.wait.aligned;"))
    machine = Machine(memory=1 << 20)
    program = machine.load(CLUSTER.format(body="mov.b32 %r10, 0;", sync=SYNC))
    with pytest.raises(Finding, match="expected a grid in clusters"):
        machine.run(program, "k", [3], [32], [0, 0])


# ---------------------------------------------------------------------------------------------------------- tensor cores
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
TYPES = {"bf16": BF16, "f16": np.float16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8, "e4m3": E4M3, "e5m2": E5M2}


def numbers(kind: str, *shape: int, seed: int = 0) -> Any:
    """Numbers of a type whose products and sums are exact in every accumulator here: small integers and halves."""
    low = 0 if kind == "u8" else -4
    values = np.random.default_rng(seed).integers(low, 5, shape)
    return (values if kind in ("s8", "u8") else values / 2).astype(TYPES[kind])


def words_of(values: Any) -> Any:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4).view(np.uint32).reshape(-1)


def fragment(matrix: Any, width: int) -> Any:
    """Registers of a matrix whose rows are 8 or 16 and K-major, as the ISA's figures have them: [register, lane]."""
    rows, columns = matrix.shape[0], matrix.shape[1] * width // 4
    table = words_of(matrix).reshape(rows, columns)
    return np.stack(
        [
            table[8 * half : 8 * half + 8, 4 * k : 4 * k + 4].reshape(-1)
            for k in range(columns // 4)
            for half in range(rows // 8)
        ]
    )


MMA = [
    (8, "f32", "f16", "f16"), (16, "f32", "f16", "f16"), (16, "f16", "f16", "f16"), (8, "f32", "bf16", "bf16"),
    (16, "f32", "bf16", "bf16"), (4, "f32", "tf32", "tf32"), (8, "f32", "tf32", "tf32"), (16, "s32", "s8", "s8"),
    (32, "s32", "s8", "u8"), (32, "s32", "u8", "s8"), (32, "f32", "e4m3", "e5m2"), (32, "f32", "e5m2", "e4m3"),
]  # fmt: skip


@pytest.mark.parametrize(("depth", "d", "a", "b"), MMA)
def test_mma(depth: int, d: str, a: str, b: str) -> None:
    left, right = numbers(a, 16, depth), numbers(b, 8, depth, seed=1)
    width = left.dtype.itemsize
    regs = [*fragment(left, width), *fragment(right, width)]
    n_a, n_b, n_d = 16 * depth * width // 128, 8 * depth * width // 128, 2 if d == "f16" else 4
    assert len(regs) == n_a + n_b
    load = "".join(f"ld.global.b32 %r{20 + i}, [%d4+{128 * i}];" for i in range(len(regs)))
    names = [f"%r{20 + i}" for i in range(len(regs))]
    zero, out = ("{" + ", ".join(f"%r{base + i}" for i in range(n_d)) + "}" for base in (40, 50))
    first = "0f3F800000" if d == "f32" else "0x3C003C00" if d == "f16" else "1"
    body = load + "".join(f"mov.b32 %r{40 + i}, {first};" for i in range(n_d))
    left_names, right_names = (", ".join(part) for part in (names[:n_a], names[n_a:]))
    body += f"mma.sync.aligned.m16n8k{depth}.row.col.{d}.{a}.{b}.{d} {out}, {{{left_names}}}, {{{right_names}}}, {zero};"
    stores = "".join(f"st.global.b32 [%d5+{128 * i}], %r{50 + i};" for i in range(n_d))
    text = kernel(body + stores, threads=32).replace("st.global.b32 [%d5], %r3;", "")
    got = launch_words(text, np.concatenate(regs), n_d * 32)
    wanted = left.astype(np.float64) @ right.astype(np.float64).T + 1
    if d == "f16":
        assert (got.reshape(2, 32) == fragment(wanted.astype(np.float16), 2)).all()
        return
    wanted = wanted.reshape(2, 8, 4, 2).transpose(0, 3, 1, 2).reshape(4, 32)  # rows of 8, two neighbours of a row
    assert (got.reshape(4, 32) == words_of(wanted.astype(np.int32 if d == "s32" else np.float32)).reshape(4, 32)).all()


def launch_words(text: str, words: Any, number: int) -> Any:
    machine = Machine("sm_90a", Options(steps=10_000), memory=1 << 20)
    out = machine.memory.allocate(4 * number)
    machine.run(machine.load(text), "k", [1], [32], [machine.upload(words), out])
    return machine.download(out, number, np.uint32)


# ----------------------------------------------------------------------------------------------------------------- wgmma
PRODUCT = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd) .reqntid 128, 1, 1 {{
  .reg .pred %p<4>; .reg .b32 %r<40>; .reg .b64 %d<60>; .reg .b32 %a<{n}>;
  mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 16;
  ld.param.u64 %d2, [pa]; ld.param.u64 %d3, [pb]; ld.param.u64 %d4, [pd];
  add.s64 %d5, %d2, %d1; add.s64 %d6, %d3, %d1; mov.b64 %d7, sm; add.s64 %d8, %d7, %d1;
  mov.b32 %r2, 0;
L: ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d5]; st.shared.v4.b32 [%d8], {{%r4, %r5, %r6, %r7}};
  ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d6]; st.shared.v4.b32 [%d8+16384], {{%r4, %r5, %r6, %r7}};
  add.s64 %d5, %d5, 2048; add.s64 %d6, %d6, 2048; add.s64 %d8, %d8, 2048;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra L;
  {loads}
  fence.proxy.async.shared::cta; bar.sync 0;
  shr.u64 %d9, %d7, 4; or.b64 %d10, %d9, {a}; add.s64 %d11, %d9, 1024; or.b64 %d12, %d11, {b};
  {zero}
  wgmma.fence.sync.aligned;
  {steps}
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mul.wide.u32 %d13, %r1, 4; add.s64 %d14, %d4, %d13;
  {stores}
  ret;
}}
"""


def in_shared_memory(matrix: Any, mode: int) -> tuple[Any, int]:
    """16 KB with K-major rows under a swizzle (0 none, 1 32, 2 64, 3 128 bytes), and the descriptor without its address.

    From the ISA's description of canonical layouts: groups of 8 rows; within a swizzled group chunks of 16 bytes change
    places by row, without a swizzle chunks of 8 rows are together.
    """
    rows, size = matrix.shape[0], matrix.shape[1] * matrix.dtype.itemsize
    data, out = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, size // 16, 16), np.zeros(16384, np.uint8)
    stride = 8 * (16 << mode) if mode else 8 * size
    for row in range(rows):
        for chunk in range(size // 16):
            if mode:
                place = row * (16 << mode) + 16 * chunk
                place ^= (place >> 7 & (1, 3, 7)[mode - 1]) << 4
            else:
                place = row // 8 * stride + chunk * 128 + row % 8 * 16
            out[place : place + 16] = data[row, chunk]
    return out, (0, 3, 2, 1)[mode] << 62 | stride >> 4 << 32 | (128 >> 4 if mode == 0 else 1) << 16


def transposed_in_shared_memory(matrix: Any) -> tuple[Any, int]:
    """The same for 16-bit elements of which rows are K (MN-major), 64 columns a time under the swizzle of 128 bytes."""
    depth, columns = matrix.shape
    out = np.zeros(16384, np.uint8)
    data = np.ascontiguousarray(matrix).view(np.uint8).reshape(depth, columns // 8, 16)
    for k in range(depth):
        for chunk in range(columns // 8):
            place = chunk // 8 * depth * 128 + k * 128 + chunk % 8 * 16
            place ^= (place >> 7 & 7) << 4
            out[place : place + 16] = data[k, chunk]
    return out, 1 << 62 | 1024 >> 4 << 32 | depth * 128 >> 4 << 16


def product(
    form: str,
    n: int,
    a: tuple[Any, int],
    b: tuple[Any, int],
    flags: str,
    kind: Any,
    registers: Any = None,
    steps: int = 1,
    step: tuple[int, int] = (2, 2),
    edit: tuple[str, str] = ("", ""),
) -> Any:
    """Runs products into one accumulator, which begins with ones; rows of D."""
    number = n // (4 if kind is np.float16 else 2)
    accumulators = "{" + ", ".join(f"%a{i}" for i in range(number)) + "}"
    one = {np.float32: "0f3F800000", np.float16: "0x3C003C00", np.int32: "1"}[kind]
    left = "%d10" if registers is None else "{%r20, %r21, %r22, %r23}"
    lines = [
        f"add.s64 %d10, %d10, {step[0] if i else 0}; add.s64 %d12, %d12, {step[1] if i else 0}; "
        f"wgmma.mma_async.sync.aligned.m64n{n}{form} {accumulators}, {left}, %d12, 1{flags};"
        for i in range(steps)
    ]
    loads = "" if registers is None else "".join(
        f"ld.param.u64 %d20, [pa]; mul.wide.u32 %d21, %r1, 4; add.s64 %d20, %d20, %d21; "
            f"ld.global.b32 %r{20 + i}, [%d20+{16384 + 512 * i}];" for i in range(4)
    )  # fmt: skip
    text = PRODUCT.replace(*edit).format(
        n=max(number, 1), a=a[1], b=b[1], loads=loads, steps="\n".join(lines),
        zero="".join(f"mov.b32 %a{i}, {one};" for i in range(number)),
        stores="".join(f"st.global.b32 [%d14+{512 * i}], %a{i};" for i in range(number)),
    )  # fmt: skip
    machine = Machine("sm_90a", Options(steps=100_000), memory=1 << 20)
    out = machine.memory.allocate(512 * number)
    source = a[0] if registers is None else np.concatenate([a[0], registers.view(np.uint8).reshape(-1)])
    machine.run(machine.load(text), "k", [1], [128], [machine.upload(source), machine.upload(b[0]), out], 32768)
    got = machine.download(out, (number, 128), np.uint32)
    if kind is np.float16:  # register 2j + h of lane 4g + t of warp w: row 16w + 8h + g, columns 8j + 2t and the next
        return got.view(np.float16).reshape(n // 8, 2, 4, 8, 4, 2).transpose(2, 1, 3, 0, 4, 5).reshape(64, n)
    return got.view(kind).reshape(n // 8, 2, 2, 4, 8, 4).transpose(3, 1, 4, 0, 5, 2).reshape(64, n)


WGMMA = [
    ("k16.f32.bf16.bf16", "bf16", "bf16", 3), ("k16.f32.f16.f16", "f16", "f16", 2), ("k16.f16.f16.f16", "f16", "f16", 1),
    ("k8.f32.tf32.tf32", "tf32", "tf32", 3), ("k32.s32.s8.u8", "s8", "u8", 3), ("k32.f32.e4m3.e5m2", "e4m3", "e5m2", 3),
    ("k16.f32.bf16.bf16", "bf16", "bf16", 0),
]  # fmt: skip


@pytest.mark.parametrize(("form", "a", "b", "mode"), WGMMA)
@pytest.mark.parametrize("n", [8, 96])
def test_wgmma(form: str, a: str, b: str, mode: int, n: int) -> None:
    """Two steps of K, operands in shared memory under each swizzle."""
    width = np.dtype(TYPES[a]).itemsize
    columns = 64 // width if mode > 1 else 32 // width if mode else 64 // width
    left, right = numbers(a, 64, columns), numbers(b, n, columns, seed=1)
    kind = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.split(".")[1]]
    flags = "" if kind is np.int32 else ", 1, 1" + (", 0, 0" if width == 2 else "")
    steps, step = columns * width // 32, 2 if mode else 16
    got = product(
        form, n, in_shared_memory(left, mode), in_shared_memory(right, mode), flags, kind, steps=steps, step=(step, step)
    )
    assert (got == left.astype(np.float64) @ right.astype(np.float64).T + 1).all()


def test_wgmma_with_signs_and_rows_of_k() -> None:
    """-A, B MN-major with two columns of 64, two steps of 16 rows of K."""
    left, right = numbers("bf16", 64, 32), numbers("bf16", 32, 128, seed=1)
    got = product(
        "k16.f32.bf16.bf16",
        128,
        in_shared_memory(left, 2),
        transposed_in_shared_memory(right),
        ", -1, 1, 0, 1",
        np.float32,
        steps=2,
        step=(2, 128),
    )
    assert (got == 1 - left.astype(np.float32) @ right.astype(np.float32)).all()


def test_wgmma_with_a_in_registers() -> None:
    left, right = numbers("f16", 64, 16), numbers("f16", 32, 16, seed=1)
    registers = np.stack([fragment(left[16 * warp : 16 * warp + 16], 2) for warp in range(4)], 1)  # [register, warp, lane]
    nothing = np.zeros(16384, np.uint8), 0
    got = product(
        "k16.f32.f16.f16",
        32,
        nothing,
        in_shared_memory(right, 1),
        ", 1, 1, 0",
        np.float32,
        registers=np.ascontiguousarray(registers),
    )
    assert (got == left.astype(np.float32) @ right.astype(np.float32).T + 1).all()


def test_wgmma_accumulators_that_are_touched() -> None:
    """Written behind the fence, read before the wait, and left behind."""
    left, right = numbers("bf16", 64, 32), numbers("bf16", 8, 32, seed=1)

    def run(old: str, new: str) -> None:
        operands = in_shared_memory(left, 2), in_shared_memory(right, 2)
        assert old in PRODUCT
        product("k16.f32.bf16.bf16", 8, *operands, ", 1, 1, 0, 0", np.float32, edit=(old, new))

    with pytest.raises(Finding, match=r"written between wgmma\.fence and wgmma\.mma_async"):
        run("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; mov.b32 %a1, 0;")
    with pytest.raises(Finding, match=r"a register of a product under way is read without wgmma\.wait_group"):
        run("wgmma.wait_group.sync.aligned 0;", "")
    with pytest.raises(Finding, match="adds to an accumulator that was never written"):
        run("{zero}", "")
    with pytest.raises(Finding, match="products that nothing waits for"):
        run("wgmma.wait_group.sync.aligned 0;", "ret;")
    with pytest.raises(Finding, match=r"asynchronous read of dynamic shared memory\+0, which threads wrote"):
        run("fence.proxy.async.shared::cta;", "")

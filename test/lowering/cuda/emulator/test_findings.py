"""One kernel of a few lines for each thing that the emulator finds, and for what it must not find."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.lowering.cuda.emulator import KINDS, Finding, Machine, Options, PtxError
from support.ptx import execute, kernel

X = np.arange(64, dtype=np.uint32)
SHARED = ".shared .align 128 .b8 buf[2048]; .shared .align 8 .b64 bar[2];"
OWN = "mov.b64 %d6, buf; add.s64 %d7, %d6, %d3;"
FIRST = "setp.eq.u32 %p1, %r1, 0; @%p1"
COPY = "shl.b64 %d8, %d3, 2; add.s64 %d7, %d6, %d8; and.b64 %d8, %d8, 127; add.s64 %d9, %d1, %d8;"

FOUND = {
    "null pointer": ("bounds", "mov.b64 %d6, 0; ld.global.b32 %r3, [%d6];", "in no memory|no device memory"),
    "behind the buffer": (
        "bounds",
        "ld.global.b32 %r3, [%d4+256];",
        r"byte 256 of a buffer of 256 bytes at 0x\w+, by block \(0, 0, 0\) thread \(0, 0, 0\) and 63 more",
    ),
    "behind the shared variable": ("bounds", "ld.shared.b32 %r3, [bar+16];", "shared load of 4 bytes"),
    "far behind shared memory": ("bounds", "mov.b64 %d6, 900000; ld.shared.b32 %r3, [%d6];", "the block's ends at"),
    "behind local memory": ("bounds", "mov.b64 %d6, loc; st.local.b32 [%d6+16], 1; mov.b32 %r3, 0;", "a thread has 16 bytes"),
    "misaligned": ("alignment", "ld.global.v2.b32 {%r3, %r4}, [%d4];", "global load of 8 bytes at .* and 31 more"),
    "shared memory never written": ("uninitialised", "ld.shared.b32 %r3, [buf];", r"never written at buf\+0"),
    "global memory never written": ("uninitialised", "ld.global.b32 %r3, [%d5];", "never written"),
    "atomic on memory never written": ("uninitialised", "atom.shared.add.u32 %r3, [buf], 1;", "never written"),
    "register never written": ("uninitialised", "add.s32 %r3, %r30, 1;", "register %r30 is read and never written"),
    "register written by some": (
        "uninitialised",
        "setp.lt.u32 %p1, %r1, 9; @%p1 mov.b32 %r30, 1;\nadd.s32 %r3, %r30, 1;",
        "register %r30 is read before it is written, .* and 54 more",
    ),
    "race of a warp": (
        "race",
        f"{OWN} st.shared.b32 [%d7], %r2; xor.b32 %r5, %r1, 1; mul.wide.u32 %d8, %r5, 4; "
        f"add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
        "read after write of buf",
    ),
    "race of two warps": (
        "race",
        f"{OWN} st.shared.b32 [%d7], %r2; bar.warp.sync -1; xor.b32 %r5, %r1, 32; "
        f"mul.wide.u32 %d8, %r5, 4; add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
        "a thread of warp",
    ),
    "write after read": (
        "race",
        f"{OWN} st.shared.b32 [%d7], 0; bar.sync 0; ld.shared.b32 %r3, [buf]; {FIRST} st.shared.b32 [buf], 7;",
        "write after read of buf",
    ),
    "two values in one place": ("race", "st.shared.b32 [buf], %r2; mov.b32 %r3, 0;", "different values to one place"),
    "barrier in a branch": (
        "divergence",
        "setp.lt.u32 %p1, %r1, 5; mov.b32 %r3, 0; @%p1 bra P; bar.sync 0; bra E;\nP: bar.sync 0;\nE:",
        "wait at line",
    ),
    "shuffle from a lane that is not there": (
        "divergence",
        "mov.b32 %r3, 0; setp.gt.u32 %p1, %r1, 7; @%p1 bra E; shfl.sync.bfly.b32 %r3, %r2, 8, 31, 255;\nE:",
        "reads a lane",
    ),
    "lane not in its mask": ("divergence", "shfl.sync.bfly.b32 %r3, %r2, 8, 31, 255;", "does not name it"),
    "barrier with two counts": (
        "barrier",
        "mov.b32 %r3, 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra P; bar.sync 1, 96; bra E;\nP: bar.sync 1, 64;\nE:",
        "is used with",
    ),
    "barrier that nobody comes to": (
        "deadlock",
        "mov.b32 %r3, 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra E; bar.sync 1, 64;\nE:",
        "32 of 64 threads are at barrier 1",
    ),
    "endless loop": ("timeout", "mov.b32 %r3, 0;\nL: bra L;", "more than 50000 instructions"),
    "trap": ("trap", "mov.b32 %r3, 0; setp.eq.u32 %p1, %r1, 9; @%p1 trap;", r"thread \(9, 0, 0\)"),
    "mbarrier not initialised": (
        "mbarrier",
        "mbarrier.arrive.shared.b64 %d8, [bar]; mov.b32 %r3, 0;",
        r"no initialised mbarrier at bar\+0",
    ),
    "mbarrier with too many arrivals": (
        "mbarrier",
        f"{FIRST} mbarrier.init.shared.b64 [bar], 63; bar.sync 0; "
        f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;"
        "mbarrier.arrive.shared.b64 %d8, [bar]; mov.b32 %r3, 0;",
        "more arrivals at bar",
    ),
    "mbarrier used too early": (
        "race",
        f"{FIRST} mbarrier.init.shared.b64 [bar], 64; mbarrier.arrive.shared.b64 %d8, [bar]; mov.b32 %r3, 0;",
        "without an order after its initialisation",
    ),
    "mbarrier nobody arrives at": (
        "deadlock",
        f"{FIRST} mbarrier.init.shared.b64 [bar], 64; bar.sync 0; "
        f"mov.b32 %r3, 0;\nW: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;",
        "64 threads of block 0 wait for bar",
    ),
    "phase nobody waits for": (
        "mbarrier",
        f"{FIRST} mbarrier.init.shared.b64 [bar], 64; bar.sync 0; "
        f"mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar]; mov.b32 %r3, 0;",
        "completes two phases",
    ),
    "cp.async not committed": (
        "async",
        f"{OWN} {COPY} cp.async.ca.shared.global [%d7], [%d9], 16; bar.sync 0; mov.b32 %r3, 0;",
        "nothing commits",
    ),
    "cp.async not waited for": (
        "async",
        f"{OWN} {COPY} cp.async.ca.shared.global [%d7], [%d9], 16; cp.async.commit_group; mov.b32 %r3, 0;",
        "nothing waits for",
    ),
    "cp.async read too early": (
        "race",
        f"{OWN} {COPY} cp.async.ca.shared.global [%d7], [%d9], 16; "
        f"cp.async.commit_group; ld.shared.b32 %r3, [%d7]; cp.async.wait_group 0;",
        "a cp.async of warp",
    ),
    "bulk store not fenced": (
        "proxy",
        f"{OWN} st.shared.b32 [%d7], %r2; bar.sync 0; mov.b32 %r3, 0; "
        f"{FIRST} cp.async.bulk.global.shared::cta.bulk_group [%d2], [buf], 256;",
        r"asynchronous read of buf\+0",
    ),
    "bulk store not committed": (
        "async",
        f"{OWN} st.shared.b32 [%d7], %r2; fence.proxy.async.shared::cta; "
        f"bar.sync 0; mov.b32 %r3, 0;"
        f"{FIRST} cp.async.bulk.global.shared::cta.bulk_group [%d2], [buf], 256;",
        "nothing commits",
    ),
    "setmaxnreg": ("registers", "setmaxnreg.inc.sync.aligned.u32 100; mov.b32 %r3, 0;", "multiple of 8, got 100"),
    "tensor map that is none": (
        "tensor map",
        f"{FIRST} mbarrier.init.shared.b64 [bar], 1; bar.sync 0; mov.b32 %r3, 0;"
        "@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%d1, {0}], [bar];",
        "no encoded tensor map",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    kind, body, message = FOUND[name]
    variables = SHARED + (" .local .align 16 .b8 loc[16];" if "loc" in body else "")
    with pytest.raises(Finding, match=message) as found:
        execute(kernel(body, variables), X)
    assert found.value.kind == kind
    assert found.value.kernel == "k"


def test_every_kind_is_documented() -> None:
    assert {kind for kind, _, _ in FOUND.values()} | {"launch", "wgmma"} == KINDS.keys()


def test_line_and_source_location() -> None:
    """The line of the PTX text, and of the source when .loc names it."""
    text = kernel("\n.loc 1 42 3\nmov.b64 %d6, 0; ld.global.b32 %r3, [%d6];").replace(
        ".visible", '.file 1 "model.py"\n.visible'
    )
    with pytest.raises(Finding, match=r"ld\.global\.b32 %r3, \[%d6\] \(model\.py:42\)") as found:
        execute(text, X)
    assert "ld.global.b32 %r3, [%d6]" in text.splitlines()[found.value.line - 1]


FINE = {
    "barrier between": f"{OWN} st.shared.b32 [%d7], %r2; bar.sync 0; xor.b32 %r5, %r1, 33; mul.wide.u32 %d8, %r5, 4; "
    f"add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
    "warp barrier between": f"{OWN} st.shared.b32 [%d7], %r2; bar.warp.sync -1; xor.b32 %r5, %r1, 1; "
    f"mul.wide.u32 %d8, %r5, 4; add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
    "shuffle between": f"{OWN} st.shared.b32 [%d7], %r2; shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; xor.b32 %r5, %r1, 1; "
    f"mul.wide.u32 %d8, %r5, 4; add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
    "one value in one place": "st.shared.b32 [buf], 7; bar.sync 0; ld.shared.b32 %r3, [buf];",
    "threads that have ended": "setp.gt.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0; mov.b32 %r3, 1;",
    "undefined on purpose": "setp.lt.u32 %p1, %r1, 9; @%p1 mov.b32 %r30, 1; mov.b32 %r31, %r30; mov.b32 %r3, 2;",
    "LLVM's undefined register": "// implicit-def: %r30\nadd.s32 %r31, %r30, 1; mov.b32 %r3, 2;",
    "copies of cp.async": f"{OWN} {COPY} cp.async.ca.shared.global [%d7], [%d9], 16; cp.async.commit_group; "
    f"cp.async.wait_group 0; ld.shared.b32 %r3, [%d7];",
    "empty groups at the end": f"{OWN} {COPY} cp.async.ca.shared.global [%d7], [%d9], 16; cp.async.commit_group; "
    f"cp.async.wait_group 0; cp.async.commit_group; mov.b32 %r3, 1;",
}


@pytest.mark.parametrize("name", FINE)
def test_not_found(name: str) -> None:
    text = kernel(FINE[name], SHARED)
    if "ended" in name:
        with pytest.raises(Finding, match="never written"):  # nothing but the host's read of what they did not store
            execute(text.replace("@%p1 exit;", "@%p1 exit; ld.global.b32 %r9, [%d5];"), X)
    execute(text, X)


def test_checks_can_be_switched_off() -> None:
    race = kernel(
        f"{OWN} st.shared.b32 [%d7], %r2; xor.b32 %r5, %r1, 1; mul.wide.u32 %d8, %r5, 4; "
        f"add.s64 %d9, %d6, %d8; ld.shared.b32 %r3, [%d9];",
        SHARED,
    )
    assert (execute(race, X, Options(races=False)) == X ^ 1).all()
    execute(kernel("ld.shared.b32 %r3, [buf];", SHARED), X, Options(initialised=False))


BLOCKS = """.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 p) {{
  .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
  ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;
  {body}
  ret;
}}
"""


def run_blocks(body: str) -> None:
    machine = Machine("sm_80", Options(), memory=1 << 20)
    machine.run(machine.load(BLOCKS.format(body=body)), "k", [4], [1], [machine.upload(np.zeros(8, np.uint32))])


def test_races_of_blocks() -> None:
    """Two blocks at one place are a race, also in waves of their own; not by atomics, nor where blocks order themselves."""
    run_blocks("st.global.b32 [%d3], %r1;")
    run_blocks("red.global.add.u32 [%d1], 1;")
    with pytest.raises(Finding, match=r"race in k: two blocks access .* one of them writes"):
        run_blocks("st.global.b32 [%d1], 7;")
    with pytest.raises(Finding, match="two blocks access"):
        run_blocks("ld.global.b32 %r2, [%d3+4]; st.global.b32 [%d3], %r1;")
    with pytest.raises(Finding, match="two blocks access"):
        run_blocks("ld.global.b32 %r2, [%d1+16]; setp.eq.u32 %p1, %r1, 3; @%p1 st.global.b32 [%d1+16], 7;")
    run_blocks("membar.gl; st.global.b32 [%d1], 7;")


def test_use_of_freed_memory() -> None:
    machine = Machine("sm_80", Options(), memory=1 << 20)
    address = machine.upload(np.zeros(8, np.uint32))
    program = machine.load(BLOCKS.format(body="ld.global.b32 %r2, [%d3];"))
    machine.run(program, "k", [4], [1], [address])
    machine.memory.free(address)
    with pytest.raises(Finding, match="of a freed buffer of 32 bytes"):
        machine.run(program, "k", [4], [1], [address])


LAUNCHES = {
    "expected 1 to 1024 threads": dict(block=[1025]),
    "expected a grid of 1 to": dict(grid=[0]),
    "expected at most 166912 bytes of shared memory": dict(shared=200_000),
    "expected 1 arguments, got 2": dict(args=[1, 2]),
    "expected at most 64 threads": dict(block=[128], limits=".maxntid 64"),
    r"expected blocks of \(32, 1, 1\)": dict(block=[64], limits=".reqntid 32"),
}


@pytest.mark.parametrize("message", LAUNCHES)
def test_launches(message: str) -> None:
    case = {"grid": [1], "block": [32], "args": [1], "shared": 0, "limits": ""} | LAUNCHES[message]
    machine = Machine("sm_80", Options(), memory=1 << 20)
    text = BLOCKS.format(body="").replace("(.param .u64 p) {", f"(.param .u64 p) {case['limits']} {{")
    with pytest.raises(Finding, match=f"launch in k: {message}"):
        machine.run(machine.load(text), "k", case["grid"], case["block"], case["args"], case["shared"])


TEXTS = {
    "unknown instruction 'frobnicate'": "frobnicate.b32 %r3, %r2;",
    r"unknown modifier '\.warm' of 'add'": "add.warm.u32 %r3, %r2, 1;",
    r"expected a form of 'add', got 'add\.sat\.u32'": "add.sat.u32 %r3, %r2, 1;",
    "expected an operand u64, got %r2": "add.u64 %d6, %r2, 1;",
    "expected 3 operands, got 2": "add.u32 %r3, %r2;",
    "unknown operand 'nowhere'": "mov.b64 %d6, nowhere;",
    "unknown label": "bra NOWHERE;",
    "expected a register as the result": "add.u32 7, %r2, 1;",
    "expected 2 results, got 1": "ld.global.v2.b32 {%r3}, [%d4];",
    "expected at most 16 bytes, got 32": "ld.global.v4.b64 {%d6, %d7, %d8, %d9}, [%d4];",
    "expected 4, 8 or 16 bytes, got 12": "cp.async.ca.shared.global [buf], [%d4], 12;",
    "expected 4 registers of a, got 2": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
    "{%r3, %r4, %r5, %r6}, {%r2, %r2}, {%r2, %r2}, {%r2, %r2, %r2, %r2};",
    "expected a call of a function with a body, got 'vprintf'": "{ .param .b32 a; .param .b32 c; call.uni (c), vprintf, (a); }",
}


@pytest.mark.parametrize("message", TEXTS)
def test_refused_texts(message: str) -> None:
    with pytest.raises(PtxError, match=message):
        execute(kernel(TEXTS[message], SHARED), X)


def test_newer_targets_and_versions_are_refused() -> None:
    with pytest.raises(PtxError, match=r"expected target sm_90 or newer, got sm_80: elect\.sync"):
        execute(kernel("mov.b32 %r3, 0; elect.sync _|%p1, -1;", target="sm_80"), X)
    with pytest.raises(PtxError, match="expected target sm_90a or newer, got sm_90"):
        execute(kernel("setmaxnreg.inc.sync.aligned.u32 96; mov.b32 %r3, 0;", target="sm_90"), X)
    with pytest.raises(PtxError, match=r"expected ptx version 8\.0 or newer, got 7\.8"):
        execute(kernel("mov.b32 %r3, 0; elect.sync _|%p1, -1;").replace(".version 8.6", ".version 7.8"), X)
    with pytest.raises(PtxError, match=r"expected ptx version 8\.\d or older, got 9\.9"):
        execute(kernel("mov.b32 %r3, 0;").replace(".version 8.6", ".version 9.9"), X)
    for arch, target in (("sm_80", "sm_90"), ("sm_90a", "sm_100"), ("sm_100", "sm_90a"), ("sm_90", "sm_90a")):
        with pytest.raises(PtxError, match=f"expected code for {arch} or older, got {target}"):
            Machine(arch, memory=1 << 20).load(kernel("mov.b32 %r3, 0;", target=target))
    with pytest.raises(PtxError, match="expected a target like 'sm_90a', got 'hopper'"):
        Machine("hopper")

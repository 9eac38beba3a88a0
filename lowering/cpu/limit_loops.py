"""Loops that do what a CPU can do most of: ``@relaxir_multiply`` multiplies and adds, ``@relaxir_read`` reads memory."""

from __future__ import annotations

__all__ = ["CHAINS", "limit_loops"]

#: Independent multiplications of a round: 4 cycles of latency, two at once.
CHAINS = 10


def limit_loops(lanes: int) -> str:
    """LLVM IR of both, for vectors of so many f32, with the ABI of entries: the last argument is how many rounds, or bytes."""
    floats, words, step = f"<{lanes} x float>", f"<{lanes} x i32>", 4 * lanes
    chains, loads = range(CHAINS), range(8)
    half = f"{floats} splat (float 0.5)"
    return "\n".join([
        f"declare {floats} @llvm.fma.v{lanes}f32({floats}, {floats}, {floats})",
        "define i64 @relaxir_multiply(ptr %into, ptr %a, ptr %b, i64 %rounds) {",
        "entry:\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %s{k} = phi {floats} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in chains),
        *(f"  %t{k} = call {floats} @llvm.fma.v{lanes}f32({floats} %s{k}, {half}, {half})" for k in chains),
        "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %rounds\n  br i1 %more, label %loop, label %end\nend:",
        *(f"  %u{k} = fadd {floats} {f'%u{k - 1}' if k else 'zeroinitializer'}, %t{k}" for k in chains),
        f"  store {floats} %u{CHAINS - 1}, ptr %into, align 4\n  ret i64 0\n}}",
        "define i64 @relaxir_read(ptr %data, ptr %into, ptr %b, i64 %bytes) {",
        "entry:\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %s{k} = phi {words} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in loads),
        *(f"  %o{k} = add i64 %i, {k * step}\n  %p{k} = getelementptr i8, ptr %data, i64 %o{k}" for k in loads),
        *(f"  %l{k} = load {words}, ptr %p{k}, align 4\n  %t{k} = add {words} %s{k}, %l{k}" for k in loads),
        f"  %next = add i64 %i, {8 * step}\n  %last = add i64 %next, {8 * step}",
        "  %more = icmp ule i64 %last, %bytes\n  br i1 %more, label %loop, label %end\nend:",
        *(f"  %u{k} = add {words} {f'%u{k - 1}' if k else 'zeroinitializer'}, %t{k}" for k in loads),
        f"  store {words} %u7, ptr %into, align 4\n  ret i64 0\n}}\n",
    ])  # fmt: skip

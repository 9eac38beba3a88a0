"""Executables made by hand, to test the runtime without the compiler: LLVM IR text with the entry ABI, and a manifest."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from relaxir.lowering.manifest_digest import llvm_constant
from relaxir.runtime.executable import Executable

#: main: y[n, 4] = x[n, 4] * w[4] through an arena of 64 bytes per row, check 0 fails for n == 13; copy: one 16-bit value;
#: greedy: never content with its arena; step: 4 floats, doubled.
IR = """
define i64 @relaxir_main(ptr %tensors, ptr %symbols, ptr %arena, i64 %arena_bytes) {
  %n = load i64, ptr %symbols
  %bad = icmp eq i64 %n, 13
  br i1 %bad, label %failed, label %start
failed:
  ret i64 -1
start:
  %need = mul i64 %n, 64
  %enough = icmp sge i64 %arena_bytes, %need
  br i1 %enough, label %run, label %grow
grow:
  ret i64 %need
run:
  %x = load ptr, ptr %tensors
  %pw = getelementptr ptr, ptr %tensors, i64 1
  %w = load ptr, ptr %pw
  %py = getelementptr ptr, ptr %tensors, i64 2
  %y = load ptr, ptr %py
  %count = mul i64 %n, 4
  br label %head
head:
  %i = phi i64 [ 0, %run ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %column = and i64 %i, 3
  %ax = getelementptr float, ptr %x, i64 %i
  %aw = getelementptr float, ptr %w, i64 %column
  %as = getelementptr float, ptr %arena, i64 %i
  %ay = getelementptr float, ptr %y, i64 %i
  %vx = load float, ptr %ax
  %vw = load float, ptr %aw
  %v = fmul float %vx, %vw
  store float %v, ptr %as
  %again = load float, ptr %as
  store float %again, ptr %ay
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 0
}

define i64 @relaxir_copy(ptr %tensors, ptr %symbols, ptr %arena, i64 %arena_bytes) {
  %x = load ptr, ptr %tensors
  %py = getelementptr ptr, ptr %tensors, i64 1
  %y = load ptr, ptr %py
  %v = load i16, ptr %x
  store i16 %v, ptr %y
  ret i64 0
}

define i64 @relaxir_greedy(ptr %tensors, ptr %symbols, ptr %arena, i64 %arena_bytes) {
  %more = add i64 %arena_bytes, 64
  ret i64 %more
}

define i64 @relaxir_step(ptr %tensors, ptr %symbols, ptr %arena, i64 %arena_bytes) {
  %enough = icmp sge i64 %arena_bytes, 64
  br i1 %enough, label %run, label %grow
grow:
  ret i64 64
run:
  %x = load ptr, ptr %tensors
  %py = getelementptr ptr, ptr %tensors, i64 1
  %y = load ptr, ptr %py
  br label %body
body:
  %i = phi i64 [ 0, %run ], [ %next, %body ]
  %ax = getelementptr float, ptr %x, i64 %i
  %ay = getelementptr float, ptr %y, i64 %i
  %vx = load float, ptr %ax
  %v = fadd float %vx, %vx
  store float %v, ptr %ay
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 4
  br i1 %more, label %body, label %done
done:
  ret i64 0
}
"""


@functools.cache
def object_code(text: str = IR) -> bytes:
    """Position-independent object code of this machine; without a manifest's digest, no executable takes it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(reloc="pic", codemodel="default")
    return machine.emit_object(llvm.parse_assembly(text))


def executable_of(data: dict[str, Any], text: str = IR, module_text: str = "") -> Executable:
    """The executable of a manifest and LLVM IR text."""
    return Executable(data, object_code=object_code(text + llvm_constant(data)), module_text=module_text)


def tensor(name: str, shape: list[int | str], dtype: str = "f32", **more: Any) -> dict[str, Any]:
    """A tensor record of a manifest."""
    return {"name": name, "shape": shape, "dtype": dtype, **more}


def entry(name: str, symbol: str, **fields: Any) -> dict[str, Any]:
    """An entry record of a manifest."""
    return {"name": name, "symbol": symbol, "symbols": [], "inputs": [], "weights": [], "outputs": [], "checks": []} | fields


def manifest(**fields: Any) -> dict[str, Any]:
    """A manifest without entries or weights for this machine."""
    target = {"triple": llvm.get_process_triple(), "cpu": "", "features": ""}
    return {
        "format": "relaxir", "version": 1, "relaxir": "0.1.0", "fingerprint": "f00d" * 16, "target": target, "entries": [],
        "raw_weights": [], "prepared_weights": [], "steps": [], "peak_bytes": 96,
    } | fields  # fmt: skip


def scaled_manifest(**fields: Any) -> dict[str, Any]:
    """``main(x[n, 4])`` times the weight ``w``, whose prepared value is twice its raw value: same name, shape and dtype."""
    main = entry(
        "main", "relaxir_main",
        symbols=[{"name": "n", "min": 1, "max": 512}],
        inputs=[tensor("x", ["n", 4])], weights=[tensor("w", [4])], outputs=[tensor("y", ["n", 4])],
        checks=["expected n other than 13"],
    )  # fmt: skip
    return (
        manifest(
            entries=[main],
            raw_weights=[tensor("w", [4]), tensor("bias", [3], "i8")],
            prepared_weights=[tensor("w", [4], sources=["w"]), tensor("bias", [3], "i8", sources=["bias"])],
            steps=[
                {"symbol": "relaxir_step", "gets": ["w"], "sets": ["w"], "arena_bytes": 64},
                {"symbol": None, "gets": ["bias"], "sets": ["bias"], "arena_bytes": 0},
            ],
        )
        | fields
    )


def scaled_executable(**fields: Any) -> Executable:
    """The executable of :func:`scaled_manifest`."""
    return executable_of(scaled_manifest(**fields), module_text="module {}\n")


def doubling(count: int, elements: int) -> Executable:
    """An executable that only prepares: ``count`` weights ``w<i>`` of f32[elements], each doubled into ``p<i>``."""
    text = IR[IR.index("define i64 @relaxir_step") :].replace("%next, 4", f"%next, {elements}")
    return executable_of(
        manifest(
            raw_weights=[tensor(f"w{i}", [elements]) for i in range(count)],
            prepared_weights=[tensor(f"p{i}", [elements], sources=[f"w{i}"]) for i in range(count)],
            steps=[{"symbol": "relaxir_step", "gets": [f"w{i}"], "sets": [f"p{i}"], "arena_bytes": 64} for i in range(count)],
            peak_bytes=4 * elements + 64 + -(-4 * elements // 64) * 64,
        ),
        text,
    )

"""Modules as units: what is compiled apart, under which name, with what it needs; and by several processes."""

from __future__ import annotations

import os
import sys
import threading
import traceback

import llvmlite.binding as llvm
import pytest

from relaxir import RelaxError
from relaxir.lowering.archive import members
from relaxir.lowering.cpu import codegen, llvm_worker
from relaxir.lowering.cpu.llvm_units import MAIN, Unit, has_loop, units_of
from relaxir.lowering.target import Target
from relaxir.lowering.worker_process import WorkerDeathError
from relaxir.runtime.library import Library
from support.object_files import undefined_symbols

HEAD = """%struct.ident = type { i32, ptr }
@text = private unnamed_addr constant [2 x i8] c"a\\00"
@place = private unnamed_addr constant %struct.ident { i32 7, ptr @text }
@count = internal global i64 0
@seen = weak constant i64 5
declare double @sqrt(double) #1
"""
KERNEL = """define internal i64 @NAME(i64 %x) #0 {
  %p = getelementptr %struct.ident, ptr @place, i64 0, i32 0
  %c = load i32, ptr %p
  %d = zext i32 %c to i64
  %f = sitofp i64 %d to double
  %r = call double @sqrt(double %f) #1
  %y = call i64 @NAME..omp_par(i64 %x)
  ret i64 %y
}
define internal i64 @NAME..omp_par(i64 %x) #0 {
  %y = MATH i64 %x, 3
  ret i64 %y
}
"""
COUNTS = """define internal i64 @counts(i64 %x) {
  %c = load i64, ptr @count
  %y = add i64 %c, %x
  store i64 %y, ptr @count
  ret i64 %y
}
"""
LINKED = "kernel.0123"
MAIN_BEGIN = "define i64 @main(ptr %a, ptr %b, ptr %c, i64 %d) {"
TAIL = """attributes #0 = { noinline nounwind }
attributes #1 = { nounwind }
"""


def module(*kernels: tuple[str, str], more: str = "", calls: str = "") -> str:
    body = [KERNEL.replace("NAME", name).replace("MATH", math) for name, math in kernels]
    lines = [f"  %r{i} = call i64 @{name}(i64 %d)" for i, (name, _) in enumerate(kernels)]
    total = [f"  %s{i} = add i64 %r{i}, {f'%s{i - 1}' if i else 0}" for i in range(len(kernels))]
    main = "\n".join([MAIN_BEGIN, *lines, *total, calls, f"  ret i64 %s{len(kernels) - 1}", "}", ""])
    return str(llvm.parse_assembly(HEAD + "".join(body) + more + main + TAIL, llvm.create_context()))


def kernels(text: str) -> dict[str, Unit]:
    found = units_of(text)
    assert [u.name == MAIN for u in found] == [True] + [False] * (len(found) - 1)
    for unit in found:
        llvm.parse_assembly(unit.text, llvm.create_context()).verify()
    return {u.name: u for u in found if u.is_kernel}


def test_a_kernel_has_one_name_in_every_module() -> None:
    one = kernels(module(("kernel_1", "mul"), ("kernel_2", "add")))
    other = kernels(
        module(("kernel_4", "sub"), ("kernel_7", "mul"), more="define internal void @unused() #1 {\n ret void\n}\n")
    )
    assert len(one) == 2
    assert len(other) == 3
    (both,) = one.keys() & other.keys()
    assert one[both].text == other[both].text
    assert (one[both].functions, other[both].functions) == (("kernel_1",), ("kernel_7",))
    assert "mul i64" in one[both].text


def test_what_a_kernel_reads_is_in_one_order_in_every_module() -> None:
    """Constants without names are counted, and declarations come, as modules have them, which is by other kernels."""
    kernel = """define internal double @kernel_1(double %x) #0 {
      %p = load i64, ptr @FIRST
      %q = load i64, ptr @SECOND
      %y = call double @sqrt(double %x)
      %z = call double @cos(double %y)
      ret double %z
    }
    define double @main(double %x) {
      %y = call double @kernel_1(double %x)
      ret double %y
    }
    attributes #0 = { noinline }
    """
    declared = ["declare double @sqrt(double)\n", "declare double @cos(double)\n"]
    constants = "@0 = private unnamed_addr constant i64 %d\n@1 = private unnamed_addr constant i64 %d\n"
    one = constants % (3, 4) + "".join(declared) + kernel.replace("FIRST", "0").replace("SECOND", "1")
    other = constants % (4, 3) + "".join(declared[::-1]) + kernel.replace("FIRST", "1").replace("SECOND", "0")
    texts = [str(llvm.parse_assembly(text, llvm.create_context())) for text in (one, other)]
    assert texts[0] != texts[1]
    assert kernels(texts[0]).keys() == kernels(texts[1]).keys()


def test_equal_kernels_are_one() -> None:
    text = module(("kernel_1", "mul"), ("kernel_2", "mul"))
    (kernel,) = kernels(text).values()
    main = units_of(text)[0].text
    assert main.count(f"call i64 @{kernel.name}(") == 2
    assert main.count(f"@{kernel.name}(i64") - 2 == 1  # declared once


def test_the_loops_of_what_is_no_kernel_are_units() -> None:
    """Threads run them by their address; one that needs its module's functions stays there."""
    fork = "declare void @fork(ptr)\n"
    text = "".join(
        f"define internal void @entry..omp_par{n}(ptr %p) {{\n {line}\n ret void\n}}\n"
        for n, line in (("", "store i64 1, ptr %p"), (".1", "store i64 2, ptr %p"), (".2", "call void @other(ptr %p)"))
    )
    calls = "".join(f" call void @fork(ptr @entry..omp_par{n})\n" for n in ("", ".1", ".2"))
    entry = f"define void @entry() {{\n{calls} ret void\n}}\ndefine void @other(ptr %p) {{\n ret void\n}}\n"
    module_ = str(llvm.parse_assembly(fork + text + entry, llvm.create_context()))
    found = kernels(module_)
    assert {u.functions for u in found.values()} == {("entry..omp_par",), ("entry..omp_par.1",)}
    main = units_of(module_)[0].text
    assert "define internal void @entry..omp_par.2(" in main
    assert all(f"call void @fork(ptr @{name})" in main for name in found)


LOOP = """define i64 @f(i64 %n) {
  br label %again
again:
  %i = phi i64 [ 0, %0 ], [ %j, %again ]
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %again, label %end
end:
  ret i64 %j
}
"""
BRANCHES = """define i64 @f(i64 %n) {
  %c = icmp slt i64 0, %n
  br i1 %c, label %later, label %end
end:
  ret i64 %n
later:
  br label %end
}
"""


@pytest.mark.parametrize(("text", "found"), [
    (BRANCHES, False), (LOOP, True), (BRANCHES + LOOP.replace("@f", "@g"), True),
    (LOOP.replace("label %again, label %end", "label %end, label %end"), False),
    (BRANCHES + BRANCHES.replace("@f", "@g").replace("br label %end", "br label %later"), True),
])  # fmt: skip
def test_loops_are_found(text: str, found: bool) -> None:
    assert has_loop(str(llvm.parse_assembly(text, llvm.create_context()))) == found


def test_what_calls_a_kernel_of_another_module_is_no_kernel() -> None:
    part = f"define internal void @part(ptr %x) {{\n call void @{LINKED}(ptr %x)\n ret void\n}}\n"
    more = f"declare hidden void @{LINKED}(ptr)\n{part}"
    text = module(("kernel_1", "mul"), more=more, calls="  call void @part(ptr %a)")
    main, _ = units_of(text)
    assert "define internal void @part" in main.text
    assert main.text.count(f"declare hidden void @{LINKED}(ptr)") == 1


def test_a_kernel_that_is_linked_is_declared_once() -> None:
    """One that the module has as well, whose code is the same."""
    (name,) = kernels(module(("kernel_1", "mul")))
    linked = f"declare hidden i64 @{name}(i64)\n"
    main, _ = units_of(module(("kernel_1", "mul"), more=linked, calls=f"  %n = call i64 @{name}(i64 1)"))
    assert main.text.count(linked) == 1


def test_what_a_module_has_once_stays_in_one_place() -> None:
    text = module(("kernel_1", "mul"), more=COUNTS, calls="  %n = call i64 @counts(i64 1)")
    main, kernel = units_of(text)
    assert "@count = internal global" in main.text
    assert "@seen = weak constant" in main.text
    assert "define internal i64 @counts" in main.text
    assert "@count" not in kernel.text
    assert "@seen" not in kernel.text
    assert "@text = private" in kernel.text


def test_a_module_that_is_not_understood_is_one_unit() -> None:
    text = module(("kernel_1", "mul")) + "$other = comdat any\n"
    assert [u.name for u in units_of(text)] == [MAIN]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_units_are_linked(monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """Also when most are compiled by another process; objects are the same wherever they come from."""
    text = module(("kernel_1", "mul"), ("kernel_2", "add"), ("kernel_3", "sub"), more=COUNTS)
    here = codegen.object_code(text, Target.host()).archive()
    if elsewhere:
        monkeypatch.setattr(codegen, "_SHARE", 1)
        monkeypatch.setattr(codegen, "_processors", lambda: 3)
    code = codegen.object_code(text, Target.host()).archive()
    assert code == here
    found = members(code)
    assert len(found) == 4
    assert Library.from_object(code, ["main"]).function("main")(None, None, None, 2) == 2 * 3 + (2 + 3) + (2 - 3)
    assert len([s for s in undefined_symbols(found["0.o"]) if s.startswith("kernel.")]) == 3


def test_what_llvm_refuses_elsewhere_is_an_error() -> None:
    process = codegen._PROCESSES.first(1)[0]
    with pytest.raises(RuntimeError, match="value doesn't match function result type"):
        codegen._elsewhere(process, Target.host(), "define i64 @f() { ret i32 0 }")
    assert codegen._elsewhere(process, Target.host(), "define i64 @f() {\n ret i64 0\n}\n")


def test_a_process_that_ends_is_an_error_and_another_one_starts() -> None:
    process, text = codegen._PROCESSES.first(1)[0], "define i64 @f() {\n ret i64 0\n}\n"
    before = codegen._elsewhere(process, Target.host(), text)
    assert process._process is not None
    os.kill(process._process.pid, 9)
    with pytest.raises(WorkerDeathError, match="its process ended with -9"):
        codegen._elsewhere(process, Target.host(), text)
    assert codegen._elsewhere(process, Target.host(), text) == before


def test_an_error_in_one_unit_is_one_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: codegen.Units, text: str) -> bytes:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(codegen.Units, "object", refuse)
    with pytest.raises(RelaxError, match=r"LLVM cannot compile for .*: no such instruction"):
        codegen.object_code(module(("kernel_1", "mul")), Target.host()).archive()


def test_an_error_elsewhere_is_one_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    def refuse(*rest: object) -> bytes:
        refused.set()
        raise WorkerDeathError("no such instruction")

    monkeypatch.setattr(codegen, "_SHARE", 1)
    monkeypatch.setattr(codegen, "_processors", lambda: 2)
    monkeypatch.setattr(codegen, "_elsewhere", refuse)
    monkeypatch.setattr(
        codegen.Units, "object", lambda self, text: b"" if refused.wait(60) else pytest.fail("nothing elsewhere")
    )
    with pytest.raises(RelaxError, match=r"LLVM cannot compile for .*: no such instruction"):
        codegen.object_code(module(("kernel_1", "mul"), ("kernel_2", "add")), Target.host()).archive()


def test_where_no_process_can_be_started_this_one_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(("kernel_1", "mul"), ("kernel_2", "add"))
    expected = codegen.object_code(text, Target.host()).archive()

    def refuse(*rest: object) -> bytes:
        raise PermissionError("not here")

    monkeypatch.setattr(codegen, "_SHARE", 1)
    monkeypatch.setattr(codegen, "_elsewhere", refuse)
    monkeypatch.setattr(codegen, "_processors", lambda: 3)
    assert codegen.object_code(text, Target.host()).archive() == expected
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "")
    assert codegen._processors() == 1


def test_bytes_of_constants_stay_what_they_are() -> None:
    """A GPU's code, say, in which bytes look like metadata, attributes, names and types."""
    bytes_ = 'c"!5 #7 @count @sqrt %struct.ident \\00"'
    text = f"@code = constant [36 x i8] {bytes_}\ndefine i64 @main(i64 %x) {{\n  ret i64 %x\n}}\n"
    (unit,) = units_of(text)
    assert bytes_ in unit.text
    assert "@count =" not in unit.text


@pytest.mark.parametrize("function", ["object_of_calls", "object"])
def test_an_error_that_is_kept_keeps_no_module(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may end a module's context before the module, where both are in a cycle; LLVM then ends the process."""

    def refuse(self: llvm_worker.Units, text: str) -> bytes:
        raise RuntimeError("refused")

    monkeypatch.setattr(llvm_worker.Units, function, refuse)
    target = Target.host()
    with pytest.raises(RelaxError, match="refused") as caught:
        codegen.object_code(BRANCHES if function == "object_of_calls" else LOOP, target, early=codegen.UnitQueue(target, 0))
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__context__.__traceback__)]
    held = [value for frame in frames for value in frame.f_locals.values()]
    assert len(frames) > 1
    assert not any(isinstance(value, llvm.ModuleRef) for value in held)

"""Device code: what a ``gpu.module`` becomes, and what is refused."""

import os
import re
import subprocess
import sys

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda import ptx
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.ptx import device_code
from relaxir.lowering.device import llvm_process
from relaxir.lowering.device.llvm_process import LlvmTarget, device_code_of

_SM80 = LlvmTarget("nvptx64-nvidia-cuda", "sm_80", "+ptx80")
_F32 = "memref<1xf32>"
_SHARED = "#gpu.address_space<workgroup>"


def _code(body: str, arguments: str = f"%p: {_F32}, %n: i64, %x: f32", target: str = "cuda:sm_90a") -> str:
    """PTX of a kernel ``@k`` whose body is this."""
    return _module_code(f"gpu.func @k({arguments}) kernel {{ {body}\n gpu.return }}", target)


def _module_code(functions: str, target: str = "cuda:sm_90a") -> str:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(f"gpu.module @device {{ {functions} }}")
        before = str(module)
        code = device_code(module.body.operations[0].operation, CudaTarget.parse(target))
        assert str(module) == before
        return code


def _computed(expression: str, target: str = "cuda:sm_90a") -> str:
    """PTX of a kernel that stores ``%y``."""
    return _code(f"{expression}\n %c0 = arith.constant 0 : index\n memref.store %y, %p[%c0] : {_F32}", target=target)


@pytest.mark.parametrize(("target", "version"), [("cuda:sm_80", "8.0"), ("cuda:sm_90a", "8.6"), ("cuda:sm_120a", "8.7")])
def test_code_is_for_its_architecture(target: str, version: str):
    code = _computed("%y = arith.addf %x, %x : f32", target)
    assert f".version {version}\n.target {target[5:]}\n" in code
    assert re.search(r"\.visible \.entry k\(\s*\.param \.u64 [^,]*k_param_0,\s*\.param \.u64 k_param_1,\s*\.param \.f32", code)


@pytest.mark.parametrize(
    ("expression", "instruction"),
    [
        ("%y = math.sqrt %x : f32", "sqrt.rn.f32"),
        ("%y = arith.divf %x, %x : f32", "div.rn.f32"),
        ("%y = arith.maximumf %x, %x : f32", "max.NaN.f32"),
        ("%y = math.floor %x : f32", "cvt.rmi.f32.f32"),
        ("%y = math.roundeven %x : f32", "cvt.rni.f32.f32"),
        ("%y = math.copysign %x, %x : f32", "copysign.f32"),
        ("%b = arith.truncf %x : f32 to bf16\n %y = arith.extf %b : bf16 to f32", "cvt.rn.bf16.f32"),
        ("%b = arith.truncf %x : f32 to f16\n %y = arith.extf %b : f16 to f32", "cvt.rn.f16.f32"),
    ],
)
def test_instructions_are_used_where_there_are_some(expression: str, instruction: str):
    two = "%i = arith.trunci %n : i64 to i32\n %two = arith.sitofp %i : i32 to f32\n"
    assert instruction in _computed(two + expression.replace("%x, %x", "%x, %two"))


def test_sums_and_products_are_not_contracted():
    code = _computed("%m = arith.mulf %x, %x : f32\n %y = arith.addf %m, %x : f32")
    assert "mul.rn.f32" in code
    assert "add.rn.f32" in code
    assert "fma" not in code


@pytest.mark.parametrize("function", ["exp", "tanh", "erf", "log", "atan", "log1p"])
def test_functions_of_f32_are_the_cpus_expansions(monkeypatch: pytest.MonkeyPatch, function: str):
    monkeypatch.setattr(ptx, "libdevice", lambda: None)
    assert "fma.rn.f32" in _computed(f"%y = math.{function} %x : f32")


def test_other_functions_are_of_the_device_library():
    code = _computed("%d = arith.extf %x : f32 to f64\n %e = math.exp %d : f64\n %y = arith.truncf %e : f64 to f32")
    assert "fma.rn.f64" in code
    assert "__nv_exp" not in code


def test_the_device_library_may_be_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ptx, "libdevice", lambda: None)
    message = r"^expected NVIDIA's device library, which has '__nv_powf' \(pip install relaxir\[cuda\]\), got none$"
    with pytest.raises(RelaxError, match=message):
        _computed("%y = math.powf %x, %x : f32")


def test_dynamic_shared_memory_is_that_of_the_launch():
    body = f"""
      %c0 = arith.constant 0 : index
      %t = gpu.thread_id x
      %all = gpu.dynamic_shared_memory : memref<?xi8, {_SHARED}>
      %row = memref.view %all[%c0][] : memref<?xi8, {_SHARED}> to memref<64xf32, {_SHARED}>
      memref.store %x, %row[%t] : memref<64xf32, {_SHARED}>
      gpu.barrier
      %y = memref.load %row[%c0] : memref<64xf32, {_SHARED}>
      memref.store %y, %p[%t] : {_F32}"""
    code = _code(body)
    assert re.search(r"^\.extern \.shared \.align 1024 \.b8 \w+\[\];$", code, re.M)
    assert "bar.sync \t0;" in code
    assert "st.shared.b32" in code


def test_aligned_vectors_are_one_access():
    body = f"""
      %t = gpu.thread_id x
      %view = memref.reinterpret_cast %p to offset: [0], sizes: [64], strides: [1] : {_F32} to memref<64xf32>
      %v = vector.load %view[%t] {{alignment = 16 : i64}} : memref<64xf32>, vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      vector.store %w, %view[%t] {{alignment = 16 : i64}} : memref<64xf32>, vector<4xf32>"""
    code = _code(body)
    assert "ld.global.v4.b32" in code
    assert "st.global.v4.b32" in code


def test_an_op_that_cannot_be_lowered_is_named_with_its_place():
    power = '%q = math.ipowi %n, %n : i64 loc("model.mlir":5:6)\n %y = arith.sitofp %q : i64 to f32'
    with pytest.raises(RelaxError, match=r"^model\.mlir:5:6: 'math\.ipowi' op cannot be lowered to PTX$"):
        _computed(power)


_TMA_LOAD = """llvm.func @{0}(%b: !llvm.ptr<3>, %d: !llvm.ptr<3>, %t: !llvm.ptr, %i: i32) attributes {{nvvm.kernel}} {{
  nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %t, %b, box[%i, %i] {{isCTAOnly = true}} : !llvm.ptr<3>, !llvm.ptr
  llvm.return
}}"""
_EMPTY = "llvm.func @{0}() attributes {{nvvm.kernel}} {{ llvm.return }}"


def test_what_llvm_cannot_select_is_an_error_that_names_the_kernel():
    functions = "\n".join((_EMPTY.format("first"), _TMA_LOAD.format("second")))
    message = r"^LLVM cannot compile kernel '@second' for sm_80: Cannot select: intrinsic %llvm\.nvvm\.cp\.async\.bulk\.tensor"
    with pytest.raises(RelaxError, match=message):
        _module_code(functions, "cuda:sm_80")
    assert "cp.async.bulk.tensor.2d" in _module_code(functions)  # another process goes on


def test_a_text_that_llvm_cannot_read_is_an_error():
    with pytest.raises(RelaxError, match=r"^LLVM cannot compile device code for sm_80: LLVM IR parsing error"):
        device_code_of("define nothing", _SM80)


def test_equal_texts_are_compiled_once(monkeypatch: pytest.MonkeyPatch):
    code = _computed("%y = arith.subf %x, %x : f32")
    monkeypatch.setattr(llvm_process, "_answer", lambda request: pytest.fail("compiled again"))
    assert _computed("%y = arith.subf %x, %x : f32") == code


def test_a_fork_starts_a_process_of_its_own():
    _computed("%y = arith.mulf %x, %x : f32")
    child = os.fork()
    if child == 0:
        right = b"add.rn.f32" in device_code_of(_ADD, _SM80)
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"add.rn.f32" in device_code_of(_ADD, _SM80)


_ADD = """define ptx_kernel void @k(ptr %p, float %x) {
  %y = fadd float %x, 1.0
  store float %y, ptr %p
  ret void
}
"""


def test_the_process_ends_with_its_parent():
    start = "from relaxir.lowering.device.llvm_process import LlvmTarget, device_code_of"
    script = f"{start}; device_code_of({_ADD!r}, {_SM80!r}); print('done')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "done\n"
    assert done.stderr == ""

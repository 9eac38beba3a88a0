"""Cubins from PTX, what the assembler says of kernels, and their instructions."""

import dataclasses
import re
from pathlib import Path

import pytest

from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda import assemble as assembling
from relaxir.lowering.cuda import sass, toolkit
from relaxir.lowering.cuda.assemble import Resources, assemble, assembler
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.sass import Instruction, disassemble, loops
from support.device_kernels import DeviceKernel, device_kernels

_TARGET = CudaTarget.parse("cuda:sm_90a")
_HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
_SUM = """.visible .entry sum(.param .u64 p, .param .u32 n) .maxntid 128
{
  .shared .align 16 .b8 row[512];
  .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %d1, %d1;
  mov.u32 %r2, 0; mov.f32 %f5, 0f00000000;
again:
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d1];
  add.f32 %f5, %f5, %f1; add.f32 %f5, %f5, %f2; add.f32 %f5, %f5, %f3; add.f32 %f5, %f5, %f4;
  add.s64 %d1, %d1, 16; add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1;
  .pragma "nounroll";
  @%p bra again;
  st.shared.f32 [row], %f5; bar.sync 0; ld.shared.f32 %f5, [row+4]; st.global.f32 [%d1], %f5;
  ret;
}
"""
_EMPTY = ".visible .entry empty() { ret; }\n"


def _spilling(values: int) -> str:
    """A kernel that needs more registers than it may have: all values are loaded before the first is stored."""
    lines = [f"ld.volatile.global.f32 %f{i}, [%d0+{4 * i}];" for i in range(values)]
    lines += [f"st.volatile.global.f32 [%d0+{4 * i}], %f{values - 1 - i};" for i in range(values)]
    body = "\n".join(lines)
    return f""".visible .entry spilling(.param .u64 p) .maxnreg 16
{{ .reg .f32 %f<{values}>; .reg .b64 %d<1>; ld.param.u64 %d0, [p];
{body} ret; }}
"""


def test_resources_are_those_of_each_kernel():
    kernels = assemble(_HEAD + _EMPTY + _SUM, _TARGET).kernels
    assert set(kernels) == {"empty", "sum"}
    assert (kernels["sum"].shared, kernels["sum"].barriers, kernels["empty"].shared) == (512, 1, 0)
    assert 8 <= kernels["sum"].registers <= 24
    assert not kernels["sum"].spills


def test_spills_are_told():
    found = assemble(_HEAD + _spilling(32), _TARGET).kernels["spilling"]
    assert found.spills
    assert found.stack >= 4
    assert found.registers <= 24


def test_warnings_of_performance_are_those_of_their_kernel():
    said = """ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async are serialized in the function 'b'
ptxas info    : Compiling entry function 'a' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_90a'
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 16384 bytes smem
"""
    found = assembling._kernels(said)
    assert found["a"] == Resources(8)
    assert dataclasses.replace(found["b"], warnings=()) == Resources(168, 16, 4, 8, 16384, 2)
    (warning,) = found["b"].warnings
    assert warning.startswith("(C7510) Potential Performance Loss")


def test_a_text_that_the_assembler_refuses_is_an_error():
    with pytest.raises(RelaxError, match=r"^ptxas cannot assemble code for sm_90a: .*device\.ptx, line 4; fatal .*nonsense"):
        assemble(_HEAD + "nonsense;", _TARGET)


def test_an_image_that_the_disassembler_refuses_is_an_error():
    with pytest.raises(RelaxError, match=r"^nvdisasm cannot read the image: nvdisasm"):
        disassemble(b"no image")


def test_tools_may_be_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(assembling, "tool", lambda _: None)
    monkeypatch.setattr(sass, "tool", lambda _: None)
    assembler.cache_clear()
    assert assembler() is None
    assembler.cache_clear()
    with pytest.raises(RelaxError, match=r"^expected NVIDIA's assembler, ptxas \(pip install relaxir\[cuda\]\), got none$"):
        assemble(_HEAD + "// without", _TARGET)
    with pytest.raises(RelaxError, match=r"^expected NVIDIA's disassembler, nvdisasm \(pip install nvidia-cuda-nvdisasm\)"):
        disassemble(b"without")


def test_the_pinned_assembler_is_the_one_that_is_used():
    assert re.fullmatch(r"ptxas V12\.9\.86", assembler() or "")
    library = toolkit.libdevice()
    assert library is not None
    assert "cuda_nvcc" in library.parts


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_a_toolkit_is_found_where_its_users_say(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither pip's packages nor PATH have what is looked for."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(toolkit, "_locations", lambda package: [])
    wanted = [tmp_path / "bin" / "relaxir-ptxas", tmp_path / "nvvm" / "libdevice" / "libdevice.10.bc"]
    for path in wanted:
        path.parent.mkdir(parents=True)
        path.touch()
    assert [toolkit.tool.__wrapped__("relaxir-ptxas"), toolkit.libdevice.__wrapped__()] == wanted


@pytest.mark.parametrize("program", ["nvcc", "ptxas"])
def test_a_toolkit_is_found_around_its_programs(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PATH there may be a link to them alone."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolkit, "_locations", lambda package: [])
    home, linked = tmp_path / "toolkit", tmp_path / "linked"
    files = [home / "bin" / program, home / "bin" / "relaxir-nvdisasm", home / "nvvm" / "libdevice" / "libdevice.10.bc"]
    for path in (*files, linked / "none"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    (linked / program).symlink_to(files[0])
    monkeypatch.setenv("PATH", str(linked))
    assert [toolkit.tool.__wrapped__("relaxir-nvdisasm"), toolkit.libdevice.__wrapped__()] == files[1:]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolkit.libdevice.__wrapped__() is None


def test_instructions_are_those_of_the_machine_and_loops_are_found():
    kernel = device_kernels(_HEAD + _SUM, "cuda:sm_90a")["sum"]
    ((first, last),) = loops(kernel.instructions)
    names = [i.opcode for i in kernel.instructions[first : last + 1]]
    assert names.count("FADD") == 4
    assert "LDG.E.128" in names
    assert kernel.instructions[-1].name in ("EXIT", "BRA")
    kernel.check(has=["LDG.E.128", "BAR.SYNC"], has_not=["HMMA"])


def test_checks_of_kernels_can_fail():
    kernel = DeviceKernel("k", Resources(8), (Instruction("LDG.E.64", "R0,[R2]"), Instruction("EXIT", "")))
    kernel.check(has=["LDG.E", "EXIT"])
    with pytest.raises(AssertionError, match=r"k has no \['LDG.E.128'\]"):
        kernel.check(has=["LDG.E.128"])
    with pytest.raises(AssertionError, match=r"k has \['LDG'\]"):
        kernel.check(has_not=["LDG"])
    for worse in (Resources(8, spill_loads=4), Resources(8, stack=8), Resources(8, warnings=("(C7510)",))):
        with pytest.raises(AssertionError):
            dataclasses.replace(kernel, resources=worse).check()
    with pytest.raises(AssertionError, match=r"k has \['STL'\]"):
        dataclasses.replace(kernel, instructions=(Instruction("STL", "[R1],R0"),)).check()


def test_padding_is_no_instruction_but_a_loop_at_the_end_is():
    jump, pad = Instruction("BRA", "0x10"), Instruction("NOP", "")
    start = (Instruction("EXIT", ""),)
    assert sass._without_padding([*start, jump, pad, pad]) == start
    assert sass._without_padding([*start, start[0], jump, Instruction("BRA", "0x30"), pad]) == (*start, start[0], jump)

"""Kernels for AMD's GPUs: objects that their assembler would make, and what is refused."""

import shutil
import struct

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.rocm import link
from relaxir.lowering.rocm.code_object import code_object

_AMDGPU, _RELOCATABLE, _SHARED_OBJECT = 224, 1, 3
# The chip in an ELF header's flags.
_FLAGS = {"gfx90a": 0x3F, "gfx942": 0x4C}
_SHARED = "#gpu.address_space<workgroup>"
_ROWS = f"""gpu.func @rows(%p: memref<1xbf16>, %n: i64) workgroup(%part: memref<4xf32, {_SHARED}>) kernel
    attributes {{known_block_size = array<i32: 256, 1, 1>}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %length = arith.index_cast %n : i64 to index
  %row = memref.reinterpret_cast %p to offset: [0], sizes: [%length], strides: [1]
    : memref<1xbf16> to memref<?xbf16, strided<[1]>>
  %at = arith.muli %t, %c8 : index
  %v = vector.load %row[%at] {{alignment = 16 : i64}} : memref<?xbf16, strided<[1]>>, vector<8xbf16>
  %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
  %e = math.exp %f : vector<8xf32>
  %s = vector.reduction <add>, %e : vector<8xf32> into f32
  %one = arith.constant 1 : i32
  %width = arith.constant 64 : i32
  %other, %valid = gpu.shuffle xor %s, %one, %width : f32
  %sum = arith.addf %s, %other : f32
  %wave = arith.divui %t, %c64 : index
  memref.store %sum, %part[%wave] : memref<4xf32, {_SHARED}>
  gpu.barrier
  %all = memref.load %part[%c0] : memref<4xf32, {_SHARED}>
  %root = math.sqrt %all : f32
  %r = vector.broadcast %root : f32 to vector<8xf32>
  %q = arith.divf %e, %r : vector<8xf32>
  %narrow = arith.truncf %q : vector<8xf32> to vector<8xbf16>
  vector.store %narrow, %row[%at] {{alignment = 16 : i64}} : memref<?xbf16, strided<[1]>>, vector<8xbf16>
  gpu.return
}}"""


def _object(functions: str, chip: str = "gfx942") -> bytes:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(f"gpu.module @device {{ {functions} }}")
        return code_object(module.body.operations[0].operation, chip)


@pytest.mark.parametrize("chip", _FLAGS)
def test_portable_kernels_become_objects(chip: str):
    found = _object(_ROWS, chip)
    kind, machine = struct.unpack_from("<HH", found, 16)
    (flags,) = struct.unpack_from("<I", found, 48)
    assert (found[:4], kind, machine, flags & 0xFF) == (b"\x7fELF", _RELOCATABLE, _AMDGPU, _FLAGS[chip])
    assert b"rows.kd\0" in found  # the descriptor that a queue's packet names
    assert b"amdhsa.kernels" in found
    assert f"amdgcn-amd-amdhsa--{chip}".encode() in found


@pytest.mark.skipif(link.find_linker() is None, reason="no ld.lld, and no ziglang, is installed")
@pytest.mark.parametrize("chip", _FLAGS)
def test_objects_are_linked_to_what_is_loaded(chip: str):
    found = link.link_code_object(_object(_ROWS, chip))
    kind, machine = struct.unpack_from("<HH", found, 16)
    (flags,) = struct.unpack_from("<I", found, 48)
    assert (found[:4], kind, machine, flags & 0xFF) == (b"\x7fELF", _SHARED_OBJECT, _AMDGPU, _FLAGS[chip])
    assert b"rows.kd\0" in found
    assert b"amdhsa.kernels" in found


@pytest.mark.skipif(link.find_linker() is None, reason="no ld.lld, and no ziglang, is installed")
def test_what_is_no_object_is_not_linked():
    with pytest.raises(RelaxError, match=r"^expected code objects that .*ld\.lld links, got: .*kernels\.o"):
        link.link_code_object(b"no object")


def test_without_a_linker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    with pytest.raises(RelaxError, match=r"^expected a linker for AMD's code objects: .*, got neither$"):
        link.link_code_object(b"")


def test_another_chip_is_refused():
    with pytest.raises(RelaxError, match=r"^expected one of gfx90a, gfx942, got 'gfx1100'$"):
        _object(_ROWS, "gfx1100")


def test_instructions_of_nvidias_are_refused_with_their_place():
    copy = 'nvvm.cp.async.wait.group 0 loc("model.mlir":7:8)'
    with pytest.raises(
        RelaxError, match=r"^model\.mlir:7:8: 'nvvm\.cp\.async\.wait\.group' op cannot be lowered to code for AMD"
    ):
        _object(f"gpu.func @k() kernel {{ {copy}\n gpu.return }}")


def test_functions_of_amds_library_are_refused():
    body = "%y = math.powf %x, %x : f32\n %c0 = arith.constant 0 : index\n memref.store %y, %p[%c0] : memref<1xf32>"
    with pytest.raises(
        RelaxError, match=r"^expected functions that are expanded, got '__ocml_pow_f32' of AMD's device library$"
    ):
        _object(f"gpu.func @k(%p: memref<1xf32>, %x: f32) kernel {{ {body}\n gpu.return }}")

"""The attributes that lowering writes for itself: every name, what it says, who writes and who reads it. Nothing else is one.

What a kernel learns of the computation that it builds it reads from the IR: iterators, index maps and the body, which is code
to emit. What these do not say is a mark.
"""

from __future__ import annotations

__all__ = [
    "ACCESSES",
    "ARENA",
    "ARGUMENTS",
    "ATTENTION",
    "CHECKS",
    "COLLECTIVE",
    "CONTRACTION",
    "CUDA_TARGET",
    "DEFERRABLE",
    "DEVICE",
    "DEVICE_ACCESSES",
    "DEVICE_CHECKS",
    "DEVICE_CODE",
    "DEVICE_CONSTANTS",
    "DEVICE_GRAPHS",
    "DEVICE_HOSTS",
    "DEVICE_KERNELS",
    "ENTRY",
    "EXTERN",
    "EXTERNS",
    "HOST",
    "INTEGER_SUMS",
    "INTEGRAL",
    "KERNEL",
    "KERNEL_TEXT",
    "LAYOUT",
    "LOOPS_ALLOCATE",
    "LOWERED",
    "MULTIPLES",
    "NOT_POSITIVE",
    "NUMBER_FIRST",
    "ON_HOST",
    "OPS",
    "PLAN",
    "PREPARATION",
    "ROWS",
    "ROW_GROUPS",
    "SHARED",
    "SORT",
    "STACK",
    "TARGET",
    "TILE_ACCESS",
    "TRANSFER",
    "TRUSTED",
    "VANISHING",
    "WINOGRAD",
    "WORD",
    "WRITABLE",
]

#: On a module, a dictionary: what code is for, field by field.
#: Written by set_target; read by set_target.
TARGET = "relax.target"

#: On a module, a dictionary: how weights are prepared.
#: Written by entries; read by entries, partition_transforms.
PREPARATION = "relax.preparation"

#: On a function that is called from outside, a dictionary: what it is to its callers.
#: Written by entries; read by entries.
ENTRY = "relax.entry"

#: On such a function, a dictionary: the scratch memory that it needs of its callers.
#: Written by arena; read by arena, cpu/use_arena.
ARENA = "relax.arena"

#: On a module some of whose loops go on with other buffers than they start with; a unit.
#: Written by cpu/carry_in_place; read by cpu/bufferize.
LOOPS_ALLOCATE = "relax.loops_allocate"

#: On a function of checked code, strings: the relax ops that it computes.
#: Written by fusion/note_ops; read by cpu/check_accesses, cuda/check_device_accesses, cuda/kernels/host_code.
OPS = "relax.ops"

#: On a module of checked code, strings: its accesses by number.
#: Written by cpu/check_accesses; read by make_manifest.
ACCESSES = "relax.accesses"

#: On a module, strings: what its run-time checks say when they fail, by number.
#: Written by linalg/to_linalg; read by linalg/to_linalg, make_manifest.
CHECKS = "relax.checks"

#: On a call of ``relax_check`` after which no access leaves its buffer, whatever the values: it may be found to have failed
#: later; a unit.
#: Written by linalg/builder; read by cuda/defer_checks.
DEFERRABLE = "relax.deferrable"

#: On a function that is one kernel; a unit. Those who make kernels are linalg/kernel, fusion/outline_kernels, cpu/share_copies.
#: Written by kernel_function; read by fusion/flatten_epilogues, fusion/report_kernels, fusion/outline_kernels,
#: fusion/repeat_producers, fusion/restore_destinations, cpu/share_copies, cpu/share_frames, cpu/lend_memory,
#: cpu/carry_in_place, cpu/known_kernels, cpu/merge_kernels, cpu/compiler, cpu/kernels/nest/plan_loops,
#: cpu/kernels/lower_kernels, cpu/set_linkage,
#: cpu/sink_frames, cuda/kernels/plan_cuda_kernels, cuda/kernels/lower_cuda_kernels, cuda/kernels/general.
KERNEL = "relax.kernel"

#: On a kernel that is kept for other modules once it is compiled, a string: the digest of what determines it, and how many
#: arguments it has in LLVM's dialect.
#: Written by cpu/known_kernels; read by cpu/known_kernels, cpu/early_kernels.
KERNEL_TEXT = "relax.kernel_text"

#: On a kernel of LLVM's dialect, and on a declaration of one that was compiled before, integers: how many arguments it had with
#: all of the descriptors of its buffers, then the positions of those that it takes.
#: Written by cpu/kernel_arguments; read by cpu/kernel_arguments.
ARGUMENTS = "relax.arguments"

#: On a kernel whose buffers of constant size are on the stack; a unit.
#: Written by linalg/kernel; read by fusion/report_kernels, cpu/share_loops.
STACK = "relax.stack"

#: On a kernel whose operations share their first loops: how many.
#: Written by fusion/row_groups; read by fusion/report_kernels, cpu/kernels/contraction/plan_contractions,
#: cpu/kernels/nest/plan_loops, cpu/kernels/lower_kernels, cpu/merge_kernels, cuda/kernels/rows,
#: cpu/sink_frames, cuda/kernels/elementwise, cuda/kernels/outer_sums, cuda/kernels/transpose.
ROWS = "relax.rows"

#: On a loop of a kernel with independent iterations, which threads may share: pairs of an argument and one of its dimensions,
#: whose product is the work of all iterations together, in multiplications.
#: Written by linalg/kernel; read by cpu/share_loops, cuda/kernels/general.
SHARED = "relax.shared"

#: On a kernel of attention, a dictionary: where the elements of its operands are, and how scores are made.
#: Written by attention_mark; read by attention_mark.
ATTENTION = "relax.attention_kernel"

#: On a kernel of argsort, a dictionary: along which axis, of which dtype, whether descending. Its first argument is sorted, and
#: its last one gets positions.
#: Written by linalg/sorting; read by cuda/kernels/sort.
SORT = "relax.sort"

#: On two ``linalg.generic`` of one kernel, a string: ``products`` of transformed tiles and filters, and ``results`` of these.
#: Written by linalg/winograd; read by cpu/kernels/winograd/group, kernels/structure/nest.
WINOGRAD = "relax.winograd"

#: On a ``linalg.generic``, the sum of products inside of a kernel; a unit.
#: Written by linalg/contraction; read by fusion/flatten_epilogues, fusion/report_kernels, fusion/outline_kernels,
#: fusion/weight_prologue, cpu/early_kernels, cpu/kernels/contraction/plan_contractions, cpu/kernels/nest/plan_loops,
#: cpu/kernels/lower_kernels, cpu/kernels/windows/shape, kernels/structure/nest, cpu/merge_kernels, cpu/product_sizes,
#: cuda/kernels/plan_cuda_kernels, cuda/kernels/product_group, cuda/kernels/reduction, cuda/kernels/rows,
#: cuda/kernels/elementwise, cuda/kernels/outer_sums, cuda/kernels/transpose.
CONTRACTION = "relax.contraction"

#: On a contraction whose right-hand side is packed: how, ``tile 32, rows 2``.
#: Written by linalg/contraction; read by kernels/structure/packed_pairs, cpu/kernels/winograd/group.
LAYOUT = "relax.layout"

#: On a contraction whose sizes its kernel takes as arguments, integers: what its columns, the steps of its sum and, where they
#: are told, its rows are multiples of.
#: Written by cpu/product_sizes; read by cpu/kernels/contraction/shape.
MULTIPLES = "relax.multiples"

#: On a call of an intrinsic that reads or writes a tile register, two integers: its rows, and the bytes of a row.
#: Written by cpu/kernels/contraction/tile_registers; read by access_ranges.
TILE_ACCESS = "relax.tile_access"

#: On a contraction of quantized integers, who its inputs are and how the weight is packed: linalg/quantize says so, and
#: fusion/weight_prologue again, when several inputs take the place of one.
#: Written by integer_product; read by integer_product, kernels/structure/match.
INTEGER_SUMS = "relax.integer_sums"

#: On a contraction whose left factor is masked by groups of rows: a row has the terms of one step of the first reduction, whose
#: last row the third input says; a unit.
#: Written by linalg/grouped_products; read by kernels/structure/row_groups.
ROW_GROUPS = "relax.row_groups"

#: On the operation of a body that takes an integer out of a word: how the word is, ``u4x8``. Of a word that is read at
#: ``i floordiv 8`` it is number ``i mod 8`` from the lowest bits on, of ``rows 4, u4x8`` that of ``Word.places(4)``. Of high
#: bits in a word beside that, ``u4x8+u2x16``, which is read at ``i floordiv 16``, it is that of ``Word.places(8)``.
#: Written by linalg/quantize; read by kernels/structure/packed_words.
WORD = "relax.word"

#: On a ``math.exp`` of what is at most 0, or NaN; a unit.
#: Written by linalg/scalar; read by kernels/expand/exponentials.
NOT_POSITIVE = "relax.not_positive"

#: On a ``math.exp`` of what is at most 0, or NaN, which may be 0 where it is less than ``e ** -80``; a unit.
#: Written by linalg/scalar; read by kernels/expand/exponentials.
VANISHING = "relax.vanishing"

#: On an ``arith.maxnumf`` or ``arith.minnumf`` whose first operand is no NaN; a unit.
#: Written by linalg/scalar; read by kernels/expand/expand_math.
NUMBER_FIRST = "relax.number_first"

#: On an ``arith.fptoui`` or ``arith.fptosi`` whose operand is an integer that the result holds, and no negative zero; a unit.
#: Written by linalg/quantize; read by kernels/expand/integral.
INTEGRAL = "relax.integral"

#: MLIR's own, on a tensor argument that bufferization may overwrite, or may not: of kernels, and of entries.
#: Written by kernel_function; read by cpu/add_destinations, MLIR.
WRITABLE = "bufferization.writable"

#: On an operation on buffers, a string: the plan of its kernel, which may be edited. For CPUs two write it, one on contractions
#: and one on others, as lines of different fields (``contraction_plan``, ``nest_plan``, ``windows/plan``, ``winograd/plan``),
#: for GPUs one on products (``cuda/kernels/products/plan``, ``cuda/kernels/products/warpgroup_plan``,
#: ``cuda/kernels/matvec/plan``).
#: Written by cpu/kernels/contraction/plan_contractions, cpu/kernels/nest/plan_loops, cuda/kernels/plan_cuda_kernels; read by
#: cpu/kernels/contraction/plan_contractions, cpu/kernels/nest/plan_loops, cpu/kernels/windows/plan, cpu/kernels/winograd/plan,
#: cpu/product_sizes, cuda/kernels/products/template, cuda/kernels/matvec/template.
PLAN = "relax.plan"

#: On a module, a string: the GPU that its entries run on, ``cuda:sm_80``.
#: Written by cuda/set_cuda_target; read by cuda/set_cuda_target, fusion/outline_kernels, linalg/vdevice, linalg/collective,
#: linalg/extern.
CUDA_TARGET = "relax.cuda_target"

#: On a function whose buffers are in the memory of a GPU; a unit.
#: Written by cuda/separate_devices; read by cuda/kernels/plan_cuda_kernels, cuda/kernels/lower_cuda_kernels,
#: cuda/defer_checks, cuda/launch_kernels, cpu/check_accesses.
DEVICE = "relax.device"

#: On an entry of a module that uses a GPU and the host, integers: which of its tensors, arguments before results, the host has.
#: Written by cuda/note_host_tensors; read by cuda/host_places, cuda/launch_kernels.
ON_HOST = "relax.host_tensors"

#: On an operation of a device function, a unit: what it reads and writes is in the host's memory.
#: Written by cuda/host_operations; read by cpu/ownership, cuda/defer_checks, cuda/kernels/general,
#: cuda/launch_kernels, cuda/separate_devices.
HOST = "relax.on_host"

#: On a function that stands for a collective, a string: which one. Its calls become calls of the run time of.
#: Written by linalg/collective; read by fusion/report_kernels, cpu/call_collectives.
COLLECTIVE = "relax.collective"

#: On a function that stands for one of another library, a dictionary: which one, what it gets, the number of the check that an
#: error is.
#: Written by extern_calls; read by extern_calls.
EXTERN = "relax.extern"

#: On a module, a dictionary: the functions of other libraries that entries take, and how they are called.
#: Written by extern_calls; read by extern_calls.
EXTERNS = "relax.externs"

#: On a kernel that copies from one memory to the other, a string: the kind of device it copies to, ``cpu`` or ``cuda``.
#: Written by linalg/vdevice; read by cuda/host_places.
TRANSFER = "relax.transfer"

#: On a module, a string: the ``gpu.module`` of its kernels.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_CODE = "relax.device_code"

#: On a module, a dictionary per kernel, by number: its name, how many threads a block has, bytes of dynamic shared memory.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_KERNELS = "relax.device_kernels"

#: On a module, strings: the symbols of entries that do nothing but launch kernels, so that a launch of all can be recorded.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_GRAPHS = "relax.device_graphs"

#: On a module of checked code, strings: the accesses of kernels, by number.
#: Written by cuda/check_device_accesses; read by cuda/compiler.
DEVICE_ACCESSES = "relax.device_accesses"

#: On a module, strings: the symbols of entries with checks that kernels make, whose calls end with a look at what was found.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_CHECKS = "relax.device_checks"

#: On a module, a dictionary per entry that the host has tensors of: its symbol, the positions of these.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_HOSTS = "relax.device_hosts"

#: On a module, a dictionary per constant that kernels read, by number: its symbol and bytes.
#: Written by cuda/launch_kernels; read by cuda/compiler.
DEVICE_CONSTANTS = "relax.device_constants"

#: All of these: a module that is compiled from the beginning has none. Code is made by what they say without another look.
LOWERED = frozenset(value for name, value in globals().copy().items() if name in __all__ and isinstance(value, str))

#: Dialects whose attributes on operations, functions and arguments MLIR's passes take at their word: where a function writes,
#: what does not alias, how wide an index is.
TRUSTED = frozenset(("bufferization", "dlti", "gpu", "llvm", "nvvm", "rocdl"))

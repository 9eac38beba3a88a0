"""Kernel templates: linalg operations on buffers become loops over vectors.

``lower_kernels`` reads each linalg.generic into plain data (:mod:`relaxir.lowering.kernels.structure.nest`, its offsets in
:mod:`relaxir.lowering.kernels.emit.linear_index`) and hands it to a template:

- :mod:`.contraction`: a marked contraction with its fill and epilogue (``structure.match``) is described without IR
  (``shape``), planned (``plan``, with the constants of ``tuning``), and built as the plan says. ``kernel`` puts tiles in
  loops, ``blocks`` those of a long sum. ``microkernel`` builds a tile: it sums by ``fma_sums``, ``grouped_sums``,
  ``dot_sums`` or ``integer_sums``, reads by ``operand_loads``, ``word_loads``, ``group_loads`` or what ``staging`` left, and
  stores through ``epilogue``.
- :mod:`.nest`: the operations of a kernel over rows go to ``row_kernels``; anything else, by the cheapest plan
  (``vector_plan``), to ``generic_loops`` or ``transposed_loops``. What no template takes becomes MLIR's ``plain_loops``.
- Templates of other packages (``relaxir.kernels``, lowering/README.md) are asked before these.
- :mod:`relaxir.lowering.kernels.emit`: templates build code with ``emitter``, read and write memory through ``memory``,
  evaluate the operation's scalar body over vectors with ``scalar_body``, where indices stay symbolic (``lane_math``).
- :mod:`relaxir.lowering.kernels.expand`: what has no instruction, as functions, narrow floats and fused multiply-adds, in
  operations that have one.
"""

from .lower_kernels import lower_kernels

__all__ = ["lower_kernels"]

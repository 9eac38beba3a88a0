"""Kernel templates: linalg operations on buffers become loops over vectors.

``lower_kernels`` reads each linalg.generic into plain data (:mod:`.nest`, its offsets in :mod:`.index_math`) and hands it to
a template: a marked contraction with its fill and epilogue (:mod:`.contraction`) to :mod:`.register_tile`, which puts tiles
(:mod:`.tiles`, :mod:`.microkernel`: :mod:`.factors` in, :mod:`.results` out) in loops, a long sum in :mod:`.blocks`; the
operations of a kernel over rows to :mod:`.rows`; anything else, by the cheapest plan (:mod:`.plan`), to :mod:`.loops` or
:mod:`.transposition`. Templates build code with :mod:`.emitter`, read and write memory through :mod:`.access`, and evaluate
the operation's scalar body over vectors with :mod:`.body`, where indices stay symbolic (:mod:`.lane_math`, :mod:`.guards`).
What no template takes (:mod:`.general`) becomes MLIR's plain loops, one element at a time.
:mod:`.vector_math`, :mod:`.narrow_floats` and :mod:`.missing_fma` expand what has no instruction.
"""

from .lower import lower_kernels, lower_operations

__all__ = ["lower_kernels", "lower_operations"]

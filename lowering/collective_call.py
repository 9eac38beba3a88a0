"""What compiled code and the run time say to each other about collectives: numbers, and a table in C. Imports no MLIR.

An entry of a module for several ranks takes a fifth argument, the address of::

    struct relaxir_ranks {
      int64_t (*call)(void *context, int64_t kind, const void *in, void *out, int64_t elements, int64_t element_type);
      void *context;
    };

``kind`` and ``element_type`` are positions in :data:`KINDS` and :data:`ELEMENTS`; ``elements`` is how many ``in`` has. What the
call gives is 0, or ends the entry with the status -(1 + :data:`LOST`).
"""

from __future__ import annotations

__all__ = ["ELEMENTS", "KINDS", "LOST"]

#: ``all_reduce`` writes as many elements, ``all_gather`` as many for each rank, ``rank`` one of i64, and reads nothing.
KINDS = ("all_reduce", "all_gather", "rank")
ELEMENTS = ("f64", "f32", "f16", "bf16", "i1", "i8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2")

#: The number of the check that a collective ends: beyond those of checks and of sizes, and not of a GPU's driver.
LOST = 1 << 50

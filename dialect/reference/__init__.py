"""What every op means: one pure NumPy function per op, in the family's file, and an interpreter that runs functions with them.

The families import no MLIR; only :mod:`.interpreter` and :mod:`.scalars` do.
"""

"""What every op means: one pure NumPy function per op in its family's file, and an interpreter that runs functions with them.

The families import no MLIR. ``apply`` runs one op, ``interpreter`` a function.
"""

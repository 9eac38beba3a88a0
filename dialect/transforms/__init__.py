"""Passes from relax to relax, one module per pass; their names are in :mod:`relaxir.dialect.passes.registry`."""

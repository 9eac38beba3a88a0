"""Lifting: what weights alone determine moves into a transform function."""

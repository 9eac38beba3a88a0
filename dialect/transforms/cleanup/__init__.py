"""Canonical form, inlining, and what functions take and return."""

"""Modules for several ranks, each with a part of the weights."""

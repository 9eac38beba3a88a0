"""Lowers what a function repeats once: the layers of a model that differ in their weights alone."""

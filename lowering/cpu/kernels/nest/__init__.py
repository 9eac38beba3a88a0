"""Loop nests over any linalg operation: elementwise, reductions, rows, data movement."""

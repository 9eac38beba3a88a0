"""Lazy IO: weights are read and results handed over one by one, in an order that needs little memory."""

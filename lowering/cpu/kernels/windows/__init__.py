"""Sums over the windows of an image of bytes, one filter per channel."""

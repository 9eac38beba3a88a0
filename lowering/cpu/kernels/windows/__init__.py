"""Sums over the windows of an image, one filter per channel."""

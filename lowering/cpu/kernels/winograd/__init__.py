"""Convolutions by Winograd's minimal filtering: products of transformed tiles, tile by tile."""

"""The order of an image's dimensions."""

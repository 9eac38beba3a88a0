"""Checkpoints that are elsewhere: a URL in (:func:`.tensors.open_remote`), a source out that reads ranges of it."""

"""Tests compile for themselves: what they leave in a cache, or find there, would be of another state of the sources."""

import os

os.environ["RELAXIR_CACHE_DIR"] = "off"

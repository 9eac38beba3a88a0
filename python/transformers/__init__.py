"""Models of transformers, compiled: ``relaxir.transformers.load(folder)`` gives one with transformers' own ``generate()``."""

from ..dialect.errors import RelaxError
from ..frontend.torch_warnings import without_logs

try:
    with without_logs():
        from .loading import load
except ModuleNotFoundError as error:
    if error.name not in ("torch", "transformers"):
        raise
    raise RelaxError(f"expected {error.name} to be installed; pip install relaxir[transformers]") from error

__all__ = ["load"]

"""What finds out why a module does not do what it should: where it begins to differ, and the least module that does."""

from .comparing import compare
from .comparison import ComparedValue, Comparison
from .differences import Difference, difference
from .isolated import Ending, ended
from .predicates import command, dies, differs, fails
from .reduction import Progress, reduced

__all__ = [
    "ComparedValue", "Comparison", "Difference", "Ending", "Progress", "command", "compare", "dies", "difference", "differs",
    "ended", "fails", "reduced",
]  # fmt: skip

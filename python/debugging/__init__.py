"""What finds out why a module does not do what it should: made small by a predicate (``relaxir reduce``)."""

from .isolated import Ending, ended
from .predicates import command, dies, differs, fails
from .reduction import Progress, reduced

__all__ = ["Ending", "Progress", "command", "dies", "differs", "ended", "fails", "reduced"]

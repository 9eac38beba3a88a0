"""Where the time of calls goes (``relaxir profile``): kernel by kernel, beside what the machine can do."""

from .profiler import profile
from .report_page import report_page
from .result import KernelProfile, Profile

__all__ = ["KernelProfile", "Profile", "profile", "report_page"]

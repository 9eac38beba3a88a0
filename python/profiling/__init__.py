"""Where the time of calls goes (``relaxir profile``): kernel by kernel, beside what the machine can do."""

from .profiler import KernelProfile, Profile, profile

__all__ = ["KernelProfile", "Profile", "profile"]

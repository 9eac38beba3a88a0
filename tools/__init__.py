"""What people type: ``relax-opt`` and ``relaxir``."""

"""Code for AMD GPUs, compiled but not run: there is no run time for it."""

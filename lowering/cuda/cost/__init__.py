"""How long kernels take by calculation, where there is no GPU to measure on: what they move, compute, and how many fit."""

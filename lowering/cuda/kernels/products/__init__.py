"""Sums of products from tiles in shared memory: matrix products and convolutions, with what is fused with them.

``template`` recognises one (:mod:`relaxir.lowering.kernels.structure.match`) and launches it. ``shape`` says what a plan is
made from, without IR; ``plan`` and ``warpgroup_plan`` are every choice as data and as a line of text, ``tile_plan`` what they
share, ``make_plan`` makes one.
``split`` cuts k where tiles are few. ``tile_order`` says which block computes which tile.

``kernel`` builds it for Ampere and later: ``copies`` bring tiles to shared memory, laid out as ``shared_tile`` says, and
``fragments`` take them from there to the instructions of ``instructions``. ``warpgroup_kernel`` builds it for Hopper:
descriptors (``tensor_maps``) say what one thread asks for, and warpgroups multiply from shared memory. ``results`` of both
puts sums through the group's scalar body.

Quantized weights (``narrow``) are multiplied as the integers that they are, and sums of their groups are scaled
(``scaled_products``). What is f32 and may not be rounded, or is computed, threads multiply (``fused_products``).
"""

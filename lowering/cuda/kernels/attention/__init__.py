"""Attention on tensor cores: scores, their softmax and its products with values in one kernel, none of which is in memory.

``template`` recognises a kernel by its mark (:mod:`relaxir.lowering.attention_mark`) and launches it. ``shape`` says what a
plan is made from, without IR; ``plan`` is every choice as data and as a line of text, ``make_plan`` makes one.

``kernel`` builds it: ``tiles`` bring rows to shared memory, ``factors`` multiply from there, ``softmax`` keeps what a row has
seen so far, ``mask`` says what it sees, ``places`` where elements are, ``results`` writes. Of few rows, blocks share the keys,
and ``merge`` builds a second kernel, which puts together what they found.

On Hopper ``warpgroup_kernel`` builds it for 16-bit floats without masks, by ``warpgroup_plan``: keys and values come by tensor
maps (``key_maps``), and warpgroups multiply. What it does not take is ``kernel``'s.
"""

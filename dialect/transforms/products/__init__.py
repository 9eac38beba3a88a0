"""Matrix products and convolutions rewritten so that more can be computed ahead, or less is computed."""

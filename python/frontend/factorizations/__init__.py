"""Factors of matrices ``[..., m, n]`` as loops of relax ops, by LAPACK's algorithms: a round is a step of all of them."""

"""Products of up to four rows with a matrix whose columns lie along k: the matrix is read once, at the speed of memory.

Before, as ``y[n] += x[k] * w[n, k]``; after, a warp has some columns, its lanes 16 bytes of each at a time::

    for k = 32 * steps * part + steps * lane; k < K; k += 32 * steps * parts {
      for each column: read w[n, k .. k + steps]              // 16 bytes, of all columns before they are used
      for each column: sum[n] += x[k .. k + steps] * those    // of small integers: times their scale, once a step
    }
    y[n] = what lanes have by shuffles, then parts of k in order, through shared memory
"""

"""Everything compiled. Kernels check nothing; the public functions that call them check everything.

Arrays are (streams, time), float64 and C-contiguous; a kernel works in place and carries its state in an array
(streams, states), so that a signal may be fed in chunks: the results are the same to the bit. Stream i depends on
(seed, i) alone, whatever the other streams, the chunks and the threads.

=============  ==========================================================
``_jit``       the one place with Numba's options
``random``     a generator for each (seed, stream, purpose); levels, normals
``linear``     FIR, second-order sections, direct-form recursion
``feedback``   the FIR decision-feedback equaliser and its decisions
``chain``      stages with state; one block of streams of a Monte Carlo run
=============  ==========================================================
"""

"""Operators: the matrices of a matrix mechanism, which know their columns, for the sensitivity, and their rows.

Others use the classes; each has a ``kind``, its name in files, and refuses contents that would lie about its norms.

========================  ================================================================
``operator_protocol``     what an ``Operator`` answers, and what it may hold
``factorization_checks``  what a strategy and a reconstruction must be to serve together
``convolution``           ``Convolution``: a filter over a horizon
``dense``                 ``Dense``: any entries
``sparse``                ``Sparse``: few entries that are not zero
``buffered_toeplitz``     ``BufferedToeplitz``: a Toeplitz matrix applied with few buffers
``growing_noise``         a running sum without a horizon: its strategy and reconstruction
``trees``                 sums over nodes of binary trees, and estimates from them
``k_ary_trees``           trees with any number of branches, and least squares from them
``sparse_decoder``        ``SparseDecoder``: decoding by sparsity in a basis
``lasso``                 the lasso, which the decoder solves
========================  ================================================================
"""

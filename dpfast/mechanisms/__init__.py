"""What is published, and how an estimate is made of it: a prefilter or a strategy, noise, a receiver; and their errors.

Others use ``Mechanism``, ``MatrixMechanism`` and ``BlockMechanism``, the receivers, and ``save`` and ``load``. Nothing
here designs::

    Mechanism         u ──► prefilter G ──► + noise ──► v ──► receiver ──► estimate, forever
    MatrixMechanism   u ──► strategy C ───► + noise ──► v ──► reconstruction B ──► estimate, over a horizon
    BlockMechanism    u ──► sums of blocks ► + noise ──► v ──► periodic Kalman ──► estimate

=============================  ========================================================
``base``                       what all kinds of mechanisms share
``mechanism_kinds``            which kind a mechanism is: ``AnyMechanism``
``mechanism``                  ``Mechanism``, ``Paths``
``matrix_mechanism``           ``MatrixMechanism``
``compiled_matrix_mechanism``  what a simulation runs of a matrix mechanism
``strategy_sensitivity``       how much one person changes what a strategy publishes
``block_mechanism``            ``BlockMechanism``
``block_dynamics``             signal, target and block sums as one linear system
``block_kalman``               the Kalman filter behind block sums
``block_errors``               the exact errors of such a filter, on any model
``input_noise``                noise other than Gaussian on the inputs
``rounding``                   what rounding of inputs to a lattice adds, and where its prediction may be far off
``constant``                   the baseline that publishes the mean alone: ``Constant``
``linear_channel``             what stands before a linear receiver: ``LinearChannel``
``lags``                       lags, in samples or of a smoother
``steady_error``               the error of a linear receiver, once settled
``transient_error``            the error of its first steps, exactly
``least_squares``              the best linear estimate over a horizon
``guarantee_text``             a mechanism in words
``receivers/``                 from v to an estimate
``operators/``                 strategies and reconstructions
``serialization/``             mechanisms in files
=============================  ========================================================
"""

"""What is published, and how an estimate is made of it: a prefilter or a strategy, noise, a receiver; and their errors.

Others use ``Mechanism``, ``MatrixMechanism`` and ``BlockMechanism``, the receivers, and ``save`` and ``load``. Nothing
here designs::

    Mechanism         u ──► prefilter G ──► + noise ──► v ──► receiver ──► estimate, forever
    MatrixMechanism   u ──► strategy C ───► + noise ──► v ──► reconstruction B ──► estimate, over a horizon
    BlockMechanism    u ──► sums of blocks ► + noise ──► v ──► periodic Kalman ──► estimate
    AdaptiveBlockMechanism  u ─► sums of blocks, of lengths that react to v ► + noise ──► v ──► posterior mean
    UnboundedMechanism  u ──► strategy C ─► + noise ──► v ──► reconstruction B ──► running sum, forever

=============================  ========================================================
``base``                       what all kinds of mechanisms share
``mechanism_kinds``            which kind a mechanism is: ``AnyMechanism``
``mechanism``                  ``Mechanism``, ``Paths``
``matrix_mechanism``           ``MatrixMechanism``
``compiled_matrix_mechanism``  what a simulation runs of a matrix mechanism
``horizon_terms``              words of a guarantee over a horizon
``strategy_sensitivity``       how much one person changes what a strategy publishes
``block_base``                 what all mechanisms of block sums share: how they are simulated
``block_mechanism``            ``BlockMechanism``
``block_channels_mechanism``   ``BlockChannelsMechanism``: block sums of several streams
``adaptive_mechanism``         ``AdaptiveBlockMechanism``: blocks that end when what was published says so
``partition_tables``           what these may have, for every length
``block_noise``                the noise on block sums, of each its own or shared
``noise_covariance``           covariances of noise over a horizon, and errors of them
``group_levels``               integers for each level of groups of blocks
``block_weights``              weights of inputs in the sums of a block
``unbounded_mechanism``        ``UnboundedMechanism``
``channels_base``              what mechanisms of several streams share: how they are simulated and predicted
``channels_mechanism``         ``ChannelsMechanism``: several streams, by matrices of filters
``block_dynamics``             signal, target and block sums as one linear system
``block_kalman``               the Kalman filter behind block sums
``block_errors``               the exact errors of such a filter, on any model
``block_ending``               the last estimates, which wait for releases that never come
``chain_law``                  the law of a chain of levels, which a posterior mean needs
``posterior_tables``           what a block of such a chain tells, for every value that may be released
``posterior_blocks``           block sums with a posterior mean behind them
``posterior_response``         randomised response with a posterior mean behind it
``input_noise``                noise other than Gaussian on the inputs
``rounding``                   what rounding of inputs to a unit adds, and where its prediction may be far off
``bound``                      a lower bound of errors, and for whom it holds: ``Bound``
``matrix_bound_terms``         for which of them a strategy and its reconstruction are
``best_choice``                how the best mechanism was chosen: ``Choice``
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

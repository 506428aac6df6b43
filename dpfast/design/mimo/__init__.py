"""Mechanisms of several streams that one person may reach: of a matrix of filters, by which inputs one event is at.

Others use the design functions ``zero_forcing``, ``lmmse``, ``optimal``, ``input_perturbation``,
``output_perturbation`` and ``block_sums``, which send a ``FilterMatrix`` here::

    FilterMatrix ──► channel_parts, column_gains ──► channel_designs, channels_lmmse ──► ChannelsMechanism
               ├───► correlated_lmmse ──► kalman_receiver ───────────────────────┤
               │         (both of a smoother: channels_smoother)                 │
               ├───► channel_weights ──► gain_norm ──► newton_step ──► joint_channels ──► joint_mechanism
               │               ├───────► slope_bound ──────────────────────┘ └──► joint_smoother ──┘
               │               └───────► mixing_norm, mixing_prefilter ──► mixing_optimum ──► joint_mechanism
               │                         (mixing_bound, mixing_search) (without causality: mixing_smoother)
               ├───► undistorted_bound ──────┴──► mixed_zero_forcing ────────────┘
               └───► channel_blocks ──► epsilon_shares ──► channels_block_sums ──► BlockChannelsMechanism

=======================  ============================================================================
``column_gains``         filters as loud as the columns of a target, of each input all that it reaches
``channel_parts``        which filters each channel serves, and who shares noise
``channel_designs``      zero forcing by a prefilter for each input, and noise on inputs or outputs
``mixed_zero_forcing``   zero forcing by a prefilter that mixes inputs
``channels_lmmse``       LMMSE and joint optimum of independent streams by a prefilter for each input
``correlated_lmmse``     LMMSE of streams that depend on one another, or behind given prefilters
``channels_smoother``    lags behind which waiting longer gains next to nothing
``kalman_receiver``      the best receiver behind any prefilters: a fixed-lag Kalman filter
``limited_changes``      changes that are hidden for next to nothing, or beyond hope
``circle_taps``          from values at the nodes of a circle to taps, and back
``channel_weights``      what noise costs behind H G with a prefilter for each input
``gain_norm``            the norm of that cost, smoothed, with its slope
``gain_curvature``       the curvature of an error with that cost, and what undoes it
``node_transforms``      the same for rows of taps, on several threads
``newton_step``          steps to the least of such an error, by conjugate gradients
``merged_streams``       streams that are multiples of one another, designed as one
``free_past``            what a slope has before now, chosen so that little is beyond limits
``slope_bound``          a lower bound of all errors with such prefilters, from one product H G
``joint_channels``       the joint optimum of dependent streams with such prefilters, with its certificate
``joint_smoother``       the joint optimum without causality of a prefilter for each input: no lag goes below it
``mixing_norm``          what noise costs behind H G with any prefilter: a nuclear norm
``mixing_bound``         a lower bound of all errors with such prefilters, from one product H G
``mixing_prefilter``     the prefilter that mixes inputs of a product H G
``mixing_step``          steps to the least of such an error, by conjugate gradients
``mixing_search``        the search for the least, and its certificate, with one smoothing
``mixing_optimum``       the joint optimum with such a prefilter, smoothed less and less
``mixing_smoother``      what no lag goes below with such a prefilter
``prefilter_states``     prefilters of few states near to one at the nodes of a circle
``error_behind``         what the best receiver errs behind any prefilter, without making it
``joint_mechanism``      mechanisms at all of these: a prefilter of few states, and a Kalman filter
``event_atoms``          what one event may change and when, and mixtures of such events
``event_times``          at which times events change most what a prefilter puts out
``undistorted_bound``    what no mechanism without distortion goes below, whatever its prefilter is
``channel_blocks``       block sums of one input, and what they err for all outputs
``epsilon_shares``       how inputs share ε where one person may reach them all
``channels_block_sums``  block sums of independent streams
``best_channels``        the best of them all, for ``best``
=======================  ============================================================================
"""

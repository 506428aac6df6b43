"""Mechanisms in integers: all that a release computes, fixed before any data are seen.

Others use ``exact``, ``ExactMechanism`` and ``Inputs``::

    prefilter, receiver ──► tap_search ──► integer_taps, live_receiver ──► ExactMechanism ──► exact
    Inputs ──────────────────────────────────────────────────────────────────┘

========================  ======================================================
``exact_forms``           ``exact``: each kind of mechanism has its exact form
``design_words``          a design in the words of people
``exact_base``            what streams and batches ask of all of them
``exact_mechanism``       ``ExactMechanism``: filters with Gaussian noise
``exact_outputs``         what those share that estimate outputs of several streams
``exact_channels``        ``ExactChannels``: several streams that one person may reach
``exact_filters``         what all share that publish a filtered input step by step
``releasable``            which mechanisms are refused
``exact_drawn``           what the following share: JSON and display
``exact_block_sums``      ``ExactBlockSums``: sums of blocks with noise on the integers
``exact_block_channels``  ``ExactBlockChannels``: block sums of several streams
``exact_input_noise``     ``ExactInputNoise``: such noise on every input
``exact_response``        ``ExactResponse``: randomised response to every input
``exact_posterior``       posterior means behind sums, and behind answers
``block_responses``       how the receiver of block sums errs, for estimates of its error
``block_schedule``        which inputs are in which sum, and when it is released
``lattice_noise``         laws on the integers for a privacy, and what they cost
``channel_losses``        what noise on several streams costs who reaches one or all
``last_block``            the last block, which the last step may leave unfinished
``live_blocks``           the receiver behind block sums, piece by piece
``live_block_channels``   those of several streams, added up
``live_posterior``        a posterior mean behind sums or answers, piece by piece
``inputs``                ``Inputs``: what is declared of the data
``tap_search``            which integer taps are fine enough
``integer_taps``          integer prefilters and their exact sensitivity
``matrix_search``         the same for matrices of prefilters
``matrix_taps``           integer matrices of prefilters and their exact sensitivity
``matrix_receiver``       the receiver behind them, piece by piece
``noise_calibration``     the least exact noise for the guarantee
``live_receiver``         receivers behind integers, all at once or piece by piece
``receiver_parts``        a receiver in parts of the streams, stored by turns
``fft_error``             errors on many angles at once
========================  ======================================================
"""

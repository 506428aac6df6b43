"""Targets, and the numerics of linear systems: what should be published, and all that is known of filters.

Others use ``Filter``, ``FilterMatrix`` and ``Toeplitz``, the kinds of targets; designs use the numerics as well::

    toeplitz ──► filter ──┬──► conversion ──► sections ──► roots ◄── spectral_factor
                          ├──► peak_gain                                  ▲
                          └──► quadrature ◄── warped_circle ──────────────┘

==========================  ================================================================================
``filter``                  ``Filter``: made, run, multiplied, divided; its response and norms
``filter_matrix``           ``FilterMatrix``: filters from several inputs to several outputs
``entrywise_system``        such a matrix by its entries, each with states of its own
``state_space_system``      such a matrix in state space, with states that entries share
``input_mixture``           sums of inputs that a system of fewer outputs sees
``undoing``                 what undoes a prefilter, and whether anything stable does
``output_names``            names of its outputs by the inputs that they are of
``array_filter``            which kernel filters an array, and how the array gets there
``filter_stream``           ``FilterStream``: a filter that keeps its state, pushed a step or more at a time
``toeplitz``                ``Toeplitz``: targets over a horizon; power series
``endless_sum``             ``EndlessSum``: the running sum without a horizon, as a target
``column_products``         how impulses at several inputs meet at all outputs, at any times
``half_integrator``         the square root of a running sum, by poles and zeros for any number of steps
``impulse_response``        the impulse response of factors, stable or not
``conversion``              other forms of a filter: roots, systems of other packages, state space
``sections``                second-order sections: how they are made, their roots and values
``pairing``                 which poles and zeros make a section
``roots``                   all zeros of a function at once
``peak_gain``               the H-infinity norm of any gain
``quadrature``              integrals over the unit circle, graded around poles and zeros
``fft_grid``                uniform grids on the circle for FFTs, and responses there
``spectral_factor``         minimum-phase factors of spectra, on the circle and as polynomials
``matrix_spectral_factor``  minimum-phase factors of matrix spectra
``warped_circle``           frequency warping: causal parts and factors in few steps near slow poles
``few_states``              systems and minimum-phase factors of spectra in few states; quotients
``riccati``                 Riccati equations by doubling, and the stationary Kalman predictor
``one_noise``               a filter of one white noise in the place of a system of several
``state_space``             responses, Gramians and balanced coordinates
==========================  ================================================================================
"""

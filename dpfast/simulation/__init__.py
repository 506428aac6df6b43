"""Simulations of mechanisms: their errors, with confidence intervals.

Others use ``monte_carlo`` and ``evaluate_log``, and ``sweep`` for grids of cases. No private data are published here::

    mechanisms, model ──► monte_carlo ──┬──► prepared_study ──► mixed_study ──► squared errors of streams
                                        └──► study ◄── intervals, least_error

========================  =======================================================
``monte_carlo``           ``monte_carlo``: how long, how many, in which precision
``prepared_study``        what no seed changes, kept for the next call
``prepared_channels``     the same of mechanisms of several streams, with results for each output
``study``                 what was found: ``Study``, ``Result``, ``Comparison``
``least_error``           who errs least, in sentences
``intervals``             confidence intervals of errors
``mixed_study``           filters and matrices on one input
``rare_error_sizes``      how large the errors are that wrong decisions make
``best_mechanism``        ``best``: the mechanism of the least error of all families
``best_simulated``        paired comparisons for what only simulation tells
``evaluation``            every mechanism on a historical log
``channels_evaluation``   the same for several streams together, the inputs of one target
``recorded_streams``      ``evaluate``: mechanisms of several streams on recorded data
``paper_example``         the example of Le Ny 2013
``sweep/``                grids of cases, on any number of workers
========================  =======================================================
"""

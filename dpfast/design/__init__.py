"""From a target, a privacy, a signal and a lag to a mechanism: one file for each way to design one.

Others use the design functions, ``catalogue`` with the one list of families, and ``comparison`` of all of them::

    target, privacy, model, lag ──► arguments ──► lmmse, optimal, zero_forcing, ... ──► Mechanism
                                                     └──► prefilter/  programs/  horizon/

==========================  =====================================================
``catalogue``               the families: names, labels, designs, colours
``comparison``              all families side by side
``best_demand``             what the best mechanism is asked for
``best_candidates``         what can serve a task, and why others cannot
``best_blocks``             lengths of two levels, and for the worst step
``best_ranking``            all of them designed, by predicted error
``best_reactions``          guarantees for inputs that react
``best_conclusion``         the choice: table, bounds, a sentence
``left_out_summary``        what is not in a table, in short
``argument_checks``         what every design function is given, checked
``target_and_model_specs``  targets and models from text
``channel_target_specs``    targets and models of several streams from text
``zero_forcing``            ``zero_forcing``
``lmmse``                   ``lmmse``
``optimal``                 ``optimal``: prefilter and receiver together
``decision_feedback``       ``decision_feedback``, ``ideal_feedback``
``perturbation``            ``input_perturbation``, ``output_perturbation``
``block_sums``              ``block_sums``: sums of blocks with integer noise
``block_arguments``         what these are asked for, checked
``block_problem``           which lengths, signs and lag of block sums err least, and the Kalman filter behind them
``block_plan``              what block sums sum, and how many blocks share noise
``block_redesign``          the receiver of given block sums, for other noise or another model
``block_signs``             the signs of inputs in block sums
``adaptive_blocks``         ``adaptive_blocks``: block sums whose partition reacts to what was published
``randomized_response``     ``randomized_response`` to two levels
``unbounded_sum``           ``unbounded_sum``: running sums without a horizon
``robust``                  ``robust``: for every input of a mean square
``wiener``                  Wiener receivers behind a given prefilter
``causal_part``             causal parts of two-sided responses, and their energy
``low_accuracy_warning``    what would help where little is explained
``prefilter/``              optimal prefilters: spectra, bounds, realisations
``programs/``               convex programs, for further constraints
``horizon/``                matrix mechanisms over a horizon
``mimo/``                   several streams that one person may reach
``adaptive/``               receivers fitted to what was published
``bounds/``                 what no mechanism of a class goes below
==========================  =====================================================
"""

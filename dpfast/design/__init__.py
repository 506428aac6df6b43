"""From a target, a privacy, a signal and a lag to a mechanism: one file for each way to design one.

Others use the design functions, ``catalogue`` with the one list of families, and ``comparison`` of all of them::

    target, privacy, model, lag ──► arguments ──► lmmse, optimal, zero_forcing, ... ──► Mechanism
                                                     └──► prefilter/  programs/  horizon/

==========================  =====================================================
``catalogue``               the families: names, labels, designs, colours
``comparison``              all families side by side
``argument_checks``         what every design function is given, checked
``target_and_model_specs``  targets and models from text
``zero_forcing``            ``zero_forcing``
``lmmse``                   ``lmmse``
``optimal``                 ``optimal``: prefilter and receiver together
``decision_feedback``       ``decision_feedback``, ``ideal_feedback``
``perturbation``            ``input_perturbation``, ``output_perturbation``
``block_sums``              ``block_sums``: sums of blocks with integer noise
``randomized_response``     ``randomized_response`` to two levels
``robust``                  ``robust``: for every input of a mean square
``wiener``                  Wiener receivers behind a given prefilter
``causal_part``             causal parts of two-sided responses, and their energy
``low_accuracy_warning``    what would help where little is explained
``prefilter/``              optimal prefilters: spectra, bounds, realisations
``programs/``               convex programs, for further constraints
``horizon/``                matrix mechanisms over a horizon
``adaptive/``               receivers fitted to what was published
==========================  =====================================================
"""

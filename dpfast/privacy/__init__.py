"""Differential privacy: what is promised, what one person can change, and how much noise that takes.

Others use ``Privacy``, which has the promise and finds the noise; releases use the accounting in integers::

    ε, δ, adjacency ──► Privacy ──┬──► sensitivity    how much one person changes what is filtered
                                  ├──► gaussian       how much noise that takes
                                  └──► lattice ──► integer_noise

================================  ===========================================================
``privacy``                       ``Privacy``: from (ε, δ) and adjacency to the noise
``gaussian``                      Gaussian noise: the least for a guarantee, and back
``discrete_gaussian_accounting``  discrete Gaussian noise: proven bounds of its guarantee
``geometric_rate``                exact geometric noise: its rate, and its guarantee
``composition``                   ``Loss``: what releases of any noise cost one person together
``loss_distribution``             its exact bound: sums of privacy losses
``zcdp``                          its concentrated bound: from ρ to (ε, δ)
``table_law``                     laws of few values, with probabilities that are fractions
``canonical_table``               canonical noise for releases, and its proven δ
``response_table``                randomised response for releases, and its proven δ
``exponential_bounds``            e^ε between two fractions
``sensitivity``                   how much several events of one person change
``sensitivity_of_matrix``         how much an event that reaches several inputs changes
``placed_events``                 at which times events at several inputs change most
``integer_noise/``                laws of noise on the integers, and what each guarantees
``least_noise``                   the least noise of any law, from which lower bounds start
``lattice``                       the unit that inputs are multiples of, or are rounded to, for such noise
``randomized_response``           the law of what is published for each of two levels
``provenance``                    where inputs of a design come from: public, assumed, fitted
================================  ===========================================================
"""

"""Attacks on mechanisms: what an attacker could do at least, to be compared with what is promised at most.

Others use ``audit`` and the ``Audit`` that it returns::

    attack ──┬──► canary, confidence_bounds         how often can a test be right?
             ├──► known_zeros, noise_statistics     is the noise what it should be?
             └──► floating_point_grid               does a value betray its input?

=======================  ========================================
"""Attacks on mechanisms: what an attacker could do at least, to be compared with what is promised at most.

Others use ``audit`` and the ``Audit`` that it returns::

    all_attacks ──┬──► canary, draw_attacks, confidence_bounds     how often can a test be right?
                  ├──► noise_findings                              is the noise what it should be?
                  └──► floating_point_grid                         does a value betray its input?

=======================  ===============================================
``all_attacks``          ``audit``: all attacks on a mechanism
``canary``               a person's events, as large as they may be
``planned_attacks``      canaries alone, and opposite ones twice
``draw_attacks``         those on noise that is drawn once for each value
``draw_canary``          a person's events there: likelihood ratios
``confidence_bounds``    from rates of being right to a bound of privacy
``findings``             ``Audit``: what was found
``noise_findings``       what is found in the noise itself
``known_zeros``          releases of known zeros
``noise_statistics``     is the noise what the guarantee takes?
``expected_laws``        the laws that it is compared with
``floating_point_grid``  the attack on floating-point noise
=======================  ===============================================
"""

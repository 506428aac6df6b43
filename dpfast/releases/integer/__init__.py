"""Mechanisms in integers: all that a release computes, fixed before any data are seen.

Others use ``exact``, ``ExactMechanism`` and ``Inputs``::

    prefilter, receiver ──► rounding ──► taps, live_receiver ──► ExactMechanism
    Inputs ────────────────────────────────────────────────────────┘

===================  =================================================
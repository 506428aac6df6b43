"""Real data, published: exact integers, exact noise, each step once, whatever interrupts.

Others use ``exact``, ``release``, ``open_stream``, ``read_release`` and ``audit``, and their results::

    Mechanism ──► integer/ ──► ExactMechanism ──┬──► batch     a whole signal at once
                               noise ───────────┤
                               store/ ──────────┴──► stream    step by step, for years
                                                       └──► feed/    events as they come

========================  =====================================================
``batch``                 ``release``: a whole signal at once
``stream``                ``Stream``: what is pushed is published once
``stream_opening``        ``open_stream``: it begins, or goes on
``reading``               ``read_release``: what a store has published
``noise``                 exact discrete Gaussians from the system's randomness
``guarantee``             ``Guarantee``: what a release promises
``joint_guarantee``       what several releases promise together
``private_counts``        what the operator alone may see
``batch_estimates_file``  what a run of the command publishes of a file
``integer/``              mechanisms in integers
``store/``                what was published, kept
``feed/``                 events from a pipe, on the clock
``audit/``                attacks, and what they find
========================  =====================================================
"""

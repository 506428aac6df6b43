"""Real data, published: exact integers, exact noise, each step once, whatever interrupts.

Others use ``exact``, ``release``, ``open_stream``, ``read_release`` and ``audit``, and their results::

    Mechanism ──► integer/ ──► ExactMechanism ──┬──► batch     a whole signal at once
                               noise ───────────┤
                               store/ ──────────┴──► stream    step by step, for years
                                                       └──► feed/    events as they come

==================  ==============================================
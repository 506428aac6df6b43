"""Real data, published: exact integers, exact noise, each step once, whatever interrupts.

Others use ``exact``, ``release``, ``open_stream``, ``read_release`` and ``audit``, and their results::

    Mechanism ──► integer/ ──► ExactMechanism ──┬──► batch     a whole signal at once
                               noise ───────────┤
                               store/ ──────────┴──► stream    step by step, for years
                                                       └──► feed/    events as they come

========================  =====================================================
``batch``                 ``release``: a whole signal at once
``batch_run``             a signal goes through a mechanism, in pieces where it is long
``stream``                ``Stream``: what is pushed is published once
``stream_opening``        ``open_stream``: it begins, or goes on
``published_steps``       what a stream has published, as far as it is kept
``replayed_steps``        what is pushed again: compared, or read back
``reading``               ``read_release``: what a store has published
``noise``                 exact integers from the system's randomness
``guarantee``             ``Guarantee``: what a release promises
``guarantee_words``       its words and letters, explained
``odds``                  what epsilon and delta mean for odds
``rounded_numbers``       its numbers, rounded up
``contributions``         what one person may have in it, in words
``guarantee_terms``       what a kind of mechanism says in it
``uncovered_risks``       what it compares, and what it does not cover
``composed_releases``     what several releases promise together
``private_counts``        what the operator alone may see
``requested_release``     a release that a command asks for happens once
``estimates_layout``      rows and columns of all files of estimates
``batch_estimates_file``  the file of estimates of a batch
``estimates_table``       ``write_table``: estimates in a table of a database
``model_check_files``     files of what v tells of the model
``stderr_messages``       messages while a release runs
``integer/``              mechanisms in integers
``model_check/``          does v agree with the model, and what is the error
``store/``                what was published, kept
``arbiters/``             the databases of stores
``engines/``              shards of streams, and engines that carry their inputs
``persons/``              how much of one person reaches a release
``ledger/``               what all releases have cost together
``feed/``                 events from a pipe, on the clock
``audit/``                attacks, and what they find
========================  =====================================================
"""

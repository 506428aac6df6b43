"""Events as they come: read from a pipe, counted on the clock, published bin by bin.

For the command line, which runs them around a ``Stream``::

    standard input ──► event_lines ──► clock ──► Stream ──► live_estimates_file
                                         └──► missed_bins, status, health

=======================  =======================================
``event_lines``          each line is an event or nothing
``clock``                counts, handed over on the clock
``missed_bins``          bins that ended while nothing ran
``status``               how far the release is
``health``               a public file that tells whether it is alive
``live_estimates_file``  the file that estimates are appended to
=======================  =======================================
"""

"""Events as they come: read from a pipe, counted on the clock, published bin by bin.

For the command line, which runs them around a ``Stream``::

    standard input ──► event_lines ──► clock ──► Stream ──► estimates_file
                                         └──► missed_bins, status

==================  ==========================
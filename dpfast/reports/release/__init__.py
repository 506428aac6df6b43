"""The page of a release, for whoever answers for it: made from what was published alone, again whenever it is wanted.

Others use ``release_page``, and ``write_report`` and ``check_report_free`` of ``report_file``::

    report_file ──► release_page ──┬──► release_sentences
                                   ├──► guarantee_sections ──► odds
                                   └──► published_sections ──► estimate_chart ──► chart_axes, chart_points

======================  ==================================================
``report_file``         where it is written, whole, and over nothing else
``release_page``        the page, top to bottom
``release_sentences``   what the reader wants to know first
``guarantee_sections``  what is promised, declared and not covered
``published_sections``  estimates, their error, and whether the model holds
``durations``           steps with the time that they take
``estimate_chart``      estimates and their band, a panel for each group
``chart_axes``          round numbers and dates along axes
``chart_points``        values of estimates for those who point at them
======================  ==================================================
"""

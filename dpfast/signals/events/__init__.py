"""Logs of events: read, binned and counted; where a release reads them, by declared rules alone.

Others use ``read_events`` for history that one may look at, and ``count_events`` with its ``Span`` for a release::

    CSV file ──► csv_columns ──► time_column ──┬──► historical_counts    span and series are read off the log
                                               └──► declared_counts      span and groups are declared, never read off

=========================  ===========================================================================
``csv_columns``            columns of CSV files, plain or gzip
``periods``                lengths of time: ``"5min"``, read and written
``timestamps``             points in time, from their texts
``time_column``            a column of timestamps: all of one kind, or an error that says which is not
``standard_date_formats``  dates in ISO 8601 and RFC 2822
``declared_time_format``   timestamps of a format that is declared, as ``--time-format`` does
``historical_counts``      ``read_events``, ``EventCounts``: history that one may look at
``declared_span``          ``Span``: the bins of a release
``declared_counts``        ``count_events``, declared groups: for a release
=========================  ===========================================================================
"""

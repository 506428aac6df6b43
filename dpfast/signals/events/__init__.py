"""Logs of events: read, binned and counted; where a release reads them, by declared rules alone.

Others use ``read_events`` for history that one may look at, and ``count_events`` with its ``Span`` for a release::

    CSV file ──► csv_columns ──► timestamps ──┬──► historical_counts    span and series are read off the log
                                              └──► declared_counts      span and groups are declared, never read off

=========================  ============================================
``csv_columns``            columns of CSV files, plain or gzip
``timestamps``             points and lengths of time, from their texts
``standard_date_formats``  dates in ISO 8601 and RFC 2822
``declared_time_format``   timestamps of a declared format
``historical_counts``      ``read_events``, ``EventCounts``
``declared_counts``        ``count_events``, ``Span``, declared groups
=========================  ============================================
"""

"""Logs of events: read, binned and counted; where a release reads them, by declared rules alone.

Others use ``read_events`` for history that one may look at, and ``count_events`` with its ``Span`` for a release::

    CSV file ──► csv_columns ──► timestamps ──┬──► historical    span and series are read off the log
                                              └──► declared      span and groups are declared, never read off

================  ============================================
``csv_columns``   columns of CSV files, plain or gzip
``timestamps``    points and lengths of time, from their texts
``dates``         dates in ISO 8601 and RFC 2822
``time_formats``  timestamps of a declared format
``historical``    ``read_events``, ``EventCounts``
``declared``      ``count_events``, ``Span``, declared groups
================  ============================================
"""

"""Logs of events: read, binned and counted; where a release reads them, by declared rules alone.

Others use ``read_events`` for history that one may look at, and ``count_events`` with its ``Span`` for a release::

    file, data frame, query ──► logs ──► columns ──► time_column ──┬──► historical_counts    read off the log
                                                                   └──► declared_counts      declared, never read off

=========================  ===========================================================================
``logs``                   a log as a source of named columns, whatever it comes as
``packed_files``           files that may be packed by gzip, bzip2, zstd
``csv_columns``            columns of CSV files
``arrow_columns``          columns of Parquet files and of what has Arrow's interface, as polars
``pandas_columns``         columns of data frames of pandas
``query_columns``          ``Query``: columns of what an SQL query gives
``columns``                ``Column``: distinct texts, and which of them each row holds
``cell_texts``             values of data frames and databases as texts
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

"""Everything that knows nothing of privacy or signals: checks, words, tables, files.

All rooms may use all of it. Nothing here imports another room.

==================  =============================================================
``validation``      checks of arguments, in one wording; ``Array``
``thread_count``    how many threads a call may use
``errors``          exceptions and warnings; ``warn``
``dataframes``      signals with labels, in and out: ``unwrap``
``text_table``      tables for a terminal, Markdown and CSV: ``Table``
``table_layout``    the lines of a table for a terminal, which are never too wide
``wrapped_text``    lines of a text for a terminal
``csv_cells``       cells of CSV files that a spreadsheet reads as they are
``html_fragments``  HTML from plain text
``plotting``        pictures of objects, which reports draw
``atomic_files``    files that are there as a whole or not at all
``output_folder``   a folder that gets all of its files or none: ``OutputFolder``
``canonical_json``  JSON with one spelling, and its digest
``settings_file``   settings in TOML files
``sqlite``          files of SQLite: connections, transactions
``postgres``        databases of PostgreSQL: connections, and why they refuse
``checksums``       of rows and contents of databases
``progress``        bars for what takes long
``design_calls``    what every public design does beside designing
``exact_numbers``   the numbers that floats stand for, as people write them
``safe_rounding``   rounding to the safe side of what a guarantee rests on
``first_steps``     the mean over steps that become alike
``root_finding``    the root of a function between two points
``weak_cache``      the last results of functions of objects, which may go
``lazy_names``      public names that are imported when they are first used
``version``         the version of dpfast
==================  =============================================================
"""

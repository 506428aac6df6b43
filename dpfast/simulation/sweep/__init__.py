"""Sweeps: grids of cases, designed once and simulated in blocks until a rule says that it is enough.

Others use ``sweep``, ``Sweep`` and its rows; a sweep can be interrupted and resumed, with bit-identical results::

    axes, parameters ──► grid ──► sweep_stages ──┬──► design_cache ──► executors ──► worker_processes
                                        ▲        └──► stream_blocks ──────┘
                                  stopping_rule ◄──── sweep_store

===========================  ==================================================
``sweep``                    ``sweep``: the whole run
``grid``                     from lists of values to points and cases
``axes``                     axes: lists, labelled values, ranges of numbers
``parameters``               what families take; values with labels and digests
``block_levels``             lengths and shares of nested blocks
``several_streams``          what grids of several streams have besides
``labelled_values``          values with labels that tell them apart
``labels``                   names of what nobody named
``sweep_stages``             designs that are lacking, then blocks
``stopping_rule``            how many blocks each case gets
``design_cache``             designs, made once
``design_task``              a design as a task for a worker
``compiled_mechanism_json``  what a simulation runs, as JSON
``stream_blocks``            blocks of streams: what is simulated at once
``executors``                where tasks run
``worker_processes``         processes of our own
``sent_arrays``              large arrays, sent to a worker once
``sweep_store``              finished blocks and designs
``sweep_connection``         connections to its file
``sweep_schema``             the tables of its file
``sweep_store_errors``       what its errors say
``progress``                 what a sweep says while it runs
``result``                   ``Sweep``: what was found
``rows``                     ``Row``, ``Cell``
``tables``                   tidy tables, and Parquet files
``winner_sentences``         who errs least, in sentences
===========================  ==================================================
"""

"""The databases of stores: each decides what a store has published, for one writer at a time.

Others use ``Arbiter``::

    store/ ──► arbiter ◄── sqlite_arbiter ──► private_connection ──► private_files
                           └──► rollback_mark

======================  ==============================================================
``arbiter``             ``Arbiter``: one writer, all or nothing, and its epoch
``sqlite_arbiter``      a file in a private folder, which one process has to itself
``place``               where a store is
``private_connection``  connections of SQLite that have the database alone
``rollback_mark``       a file that every publication makes anew: older copies lack it
``private_files``       folders and files for their owner alone
``store_errors``        what errors say
======================  ==============================================================
"""

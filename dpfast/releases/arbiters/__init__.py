"""The databases of stores: each decides what a store has published, for one writer at a time.

Others use ``Postgres``; and the store ``Arbiter``::

    store/ ──► opened_arbiter ──┬──► sqlite_arbiter ──► private_connection, rollback_mark ──► private_files
                                └──► postgres_arbiter ──► postgres_session     both are an ``arbiter``

======================  ==============================================================
``arbiter``             ``Arbiter``: one writer, all or nothing, and its epoch
``sqlite_arbiter``      a file in a private folder, which one process has to itself
``postgres_arbiter``    a schema of a database, which any machine may take over
``postgres_session``    sessions with a server that does not forget
``opened_arbiter``      the arbiter of a place
``place``               ``Postgres``: where a store is, if not in a folder
``private_connection``  connections of SQLite that have the database alone
``rollback_mark``       a file that every publication makes anew: older copies lack it
``private_files``       folders and files for their owner alone
``patience``            how long one waits for what another process is about to do
``store_errors``        what errors say
======================  ==============================================================
"""

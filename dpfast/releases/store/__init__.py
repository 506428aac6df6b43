"""The store of a release: a private folder with a database and a chain over all that was published, and its witness.

Others use ``ReleaseStore``; it knows nothing of mechanisms::

    Stream ──► release_store ──► store_transactions ──► release_rows ──► private_connection ──► private_files
                 └──► opening_checks ──► rollback_mark, witness: is it whole, private, and the newest?

========================  ==============================================================
``release_store``         ``ReleaseStore``: no step twice
``store_transactions``    what a transaction ends with
``opening_checks``        what is checked when a store is opened
``declaration``           what a store declares for all its releases
``release_rows``          rows of the database, and the chain over them
``packed_integers``       integers in as few bytes as they take
``earlier_releases``      the releases that a store has already
``guarantee_files``       what all of them promise, for people and for machines
``private_connection``    connections that have the database alone
``release_schema``        the tables, and how a new database begins
``release_store_errors``  what errors say
``witness``               a public file that knows how far the store has come
``rollback_mark``         a file that every publication makes anew: older copies lack it
``spent_entries``         what the store remembers of its ledger
``store_folders``         where stores of a command are
``push_limits``           how much can be published at once
``private_files``         folders and files for their owner alone
``migration``             stores of earlier versions
========================  ==============================================================
"""

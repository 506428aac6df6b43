"""The store of a release: a database with a chain over all that was published, and its witness.

Others use ``ReleaseStore``; it knows nothing of mechanisms::

    Stream ──► release_store ──► store_transactions ──► release_rows ──► arbiters/
                 └──► opening_checks ──► witness: is it whole, and the newest?

========================  ==============================================================
``release_store``         ``ReleaseStore``: no step twice
``store_transactions``    what a transaction ends with
``opening_checks``        what is checked when a store is opened
``declaration``           what a store declares for all its releases
``release_rows``          rows of the database, and the chain over them
``row_counts``              rows of inputs, of what is published, and of estimates
``packed_integers``       integers in as few bytes as they take
``earlier_releases``      the releases that a store has already
``guarantee_files``       what all of them promise, for people and for machines
``release_schema``        the tables, and how a new database begins
``witness``               a public file that knows how far the store has come
``second_witness``        another one, elsewhere
``spent_entries``         what the store remembers of its ledger
``store_folders``         where stores of a command are
``push_limits``           how much can be published at once
``migration``             stores of earlier versions
========================  ==============================================================
"""

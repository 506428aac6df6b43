"""A ledger: what all releases of one population's data have cost, whatever store or program made them.

Others use ``Ledger``, and ``Account``, by which a store enters what it is about to publish::

    store ──► account ──► Ledger ──┬──► ledger_file, ledger_schema ──► ledger_database
                                   ├──► cap           what may be spent
                                   └──► together      entries that one person may be in, and windows

===================  ===========================================================
``ledger``           ``Ledger``: made, opened, entered into, read
``account``          ``Account``: a store and its ledger, each a witness of the other
``entry``            ``Entry``: what one release costs, and whom
``cap``              ``Cap``: sums that no entry may go beyond
``foresight``        what it would say of a release that is not entered
``together``         which entries add up for one person or event
``statement``        what was lost, in all and in windows of time
``ledger_database``  rows of a ledger, and their chain
``ledger_file``      a ledger in a file of SQLite
``ledger_schema``    a ledger in a database of PostgreSQL
``ledger_errors``    what a ledger says where it refuses
===================  ===========================================================
"""

"""The store of a release: a private folder with a database and a chain over all that was published, and its witness.

Others use ``ReleaseStore``; it knows nothing of mechanisms::

    Stream ──► release_store ──► records ──► release_database ──► private_files
                 └──► opening ──► mark, witness: is it whole, private, and the newest?

====================  ============================================
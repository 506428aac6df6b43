"""Persons: how much of one person's events reaches a release is bounded, whoever has how many.

Others use ``Events`` and ``Persons``, which people give, and ``Protection``, which stands before the mechanism::

    Events ──► protection ──► counts of the events that are kept ──► Batch, Stream
                 ├──► bounding ──► person_bounds
                 └──► person_key ──► store/: who has which kept events, under pseudonyms

====================  ==========================================================
``person_bounds``     ``PersonBounds``: m events, b apart, k streams, in a span
``bounding``          which events of a person are kept
``person_events``     ``Events``: a table of events with the ids of persons
``person_key``        the key of the pseudonyms, in a file of its own
``declared_persons``  ``Persons``: what is declared of them in Python
``person_spans``      what a guarantee per span is over several spans
``protection``        the bounding state of a store
====================  ==========================================================
"""

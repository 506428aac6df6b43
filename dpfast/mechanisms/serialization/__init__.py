"""Mechanisms in files: JSON that is checked before anything is made of it.

Others use ``save`` and ``load``, and the parts for files of their own::

    bytes ──► size_limits ──► json_fields ──► parts, channels_content ──► mechanism_file ──► Mechanism

====================  ======================================================
``mechanism_file``    ``save``, ``load``: the whole, with its checksum
``parts``             filters, models, receivers and operators, there and back
``json_fields``       strict fields, each taken once; errors name them
``channels_content``  mechanisms of several streams
``size_limits``       how large a file and its arrays may be
====================  ======================================================
"""

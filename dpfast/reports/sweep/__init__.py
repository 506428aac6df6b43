"""The page of a sweep, its pictures and what they show.

Others use ``report`` of ``page``, and ``pictures``.

==============  =============================================================
``page``        ``report``: what was simulated, found, and how to do it again
``pictures``    all pictures of a sweep
``panels``      which lines and panels there are
``curves``      errors over an axis
``winner_map``  which mechanism errs least, over two axes
==============  =============================================================
"""

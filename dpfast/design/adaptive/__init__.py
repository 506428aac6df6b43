"""Receivers fitted to what was published: they learn the spectrum of the input from v, which costs no privacy.

Others use ``adapt`` and the ``Adaptation`` that it returns.

====================  ===================================================================
``adapt``             ``adapt``: whether a fitted receiver is better, and by how much
``adapt_sums``        the same behind sums of blocks
``adaptation``        ``Adaptation``: what was found, and whether it is taken
``input_spectrum``    the spectrum of the input, estimated from v by Whittle's likelihood
``cross_validation``  errors estimated on parts that receivers were not fitted to
``published_sums``    sums of blocks that were published, with what a fit has to know
``sum_spectrum``      the spectrum of the input, fitted to the periodogram of such sums
``sum_errors``        the error of what estimates from sums, as they tell it
====================  ===================================================================
"""

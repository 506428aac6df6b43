"""Lower bounds of errors: what no mechanism of a class goes below, however it is designed.

Others use the functions of these names, all of which return a ``Bound``::

    privacy ──► least variance ──► least error of linear mechanisms at it ──► Bound, with the words for whom it holds

====================  ==============================================================
``additive``          ``additive_bound``: linear receivers behind any additive noise
``linear_mean``       ``linear_mean_bound``: a linear mean and one covariance
``unbiased``          ``unbiased_bound``: no bias, and no model
``any_receiver``      ``gaussian_bound``: every receiver behind Gaussian noise
``of_mechanism``      ``bounds_of``: all that hold for a mechanism
``genie``             what one who knows all other inputs leaves unknown of one
``least_linear_mse``  the least error of linear mechanisms, from below
====================  ==============================================================
"""

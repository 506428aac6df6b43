"""Receivers: from v to an estimate of the true output. They see v alone; no argument could hand them u.

Others use the three receivers; each answers for itself: its filters, its size, its part in a chain, its file.

=====================  ==============================================================
``base``               what every receiver answers: ``Receiver``, ``CausalReceiver``
``periodic_kalman``    ``PeriodicKalman``: behind block sums, release by release
``linear``             ``LinearReceiver``: a filter of v, late by a lag
``smoother``           ``Smoother``: a filter of v that looks both ways
``decision_feedback``  ``DecisionFeedback``: an equaliser that decides between levels
=====================  ==============================================================
"""

"""Optimal prefilters of linear mechanisms, from the problem to a filter of few states.

For designs alone::

    problem ──► water_filling, objectives ──► ideal ──► realized ──► realization ──► G
                    └──► majorization: receivers of a finite lag

====================  ============================================================
``problem``           what is asked of a design, and where its numbers change fast
``objectives``        errors as functions of |G|², with their slopes
``water_filling``     optimal magnitudes in closed form
``majorization``      the joint optimum of a finite lag, by iteration
``certificate``       a bound from the dual problem
``ideal``             what a family comes to with filters of any order
``realized``          from that ideal to a prefilter
``realization``       from a magnitude to a filter of few states
``rational_fit``      rational filters, fitted
``short_fir``         short FIR filters
``rational_basis``    causal rational functions in real coordinates
``several_events``    users who contribute several events
``least_favourable``  their least favourable times
====================  ============================================================
"""

"""Optimal prefilters of linear mechanisms, from the problem to a filter of few states.

For designs alone::

    design_problem ──► water_filling, objectives ──► ideal_mechanism ──► family_realization ──► order_selection ──► G
                           └──► majorization: receivers of a finite lag

======================  ============================================================
``design_problem``      what is asked of a design, and where its numbers change fast
``canonical_factor``    canonical spectral factors; zeros moved off the circle
``objectives``          errors as functions of |G|², with their slopes
``water_filling``       optimal magnitudes in closed form
``noise_shares``        how inputs that one person may reach together share the noise
``majorization``        the joint optimum of a finite lag, by iteration
``circles_in_a_row``    the circles of several inputs as one
``robust_lower_bound``  a bound from the dual problem
``ideal_mechanism``     what a family comes to with filters of any order
``family_realization``  from that ideal to a prefilter
``order_selection``     from a magnitude to a filter of few states
``rational_fit``        rational filters, fitted
``short_fir``           short FIR filters
``rational_basis``      causal rational functions in real coordinates
``several_events``      users who contribute several events
``least_favourable``    their least favourable times
======================  ============================================================
"""

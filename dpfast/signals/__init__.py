"""Models of the private stream: its spectrum, for designs, and samples of it, for simulations.

Others use ``Model`` and the three models; a model of one's own needs what the protocol ``Model`` lists::

    log of events ──► events ──► counts ──► ARMA.fit ──┐
    MarkovChain, IndependentLevels, ARMA ──────────────┴──► Model ──► mean, levels, shaping filter, source of samples

===========================  ======================================================================
``model``                    ``Model``, and what models share; ``autocovariance``
``arma``                     ``ARMA``: noise that a filter has shaped; fits
``vector_arma``              ``VectorARMA``: several correlated streams
``channel_models``           a model for each of several streams, or one of all of them
``channel_outputs``          what systems make of these over time, and the sources of their samples
``vector_yule_walker``       autoregressions of several streams from their autocovariances
``markov_chain``             ``MarkovChain`` on levels
``independent_levels``       ``IndependentLevels``: draws without memory
``stationary_distribution``  of a Markov chain; chains without one are refused
``markov_spectrum``          the spectrum of a Markov chain, factored
``output_variance``          the variance of the true output, and the share of it that is explained
``events/``                  logs of events, and counts of them
===========================  ======================================================================
"""

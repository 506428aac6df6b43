"""Differential privacy: what is promised, what one person can change, and how much noise that takes.

Others use ``Privacy``, which has the promise and finds the noise; releases use the accounting in integers::

    ε, δ, adjacency ──► Privacy ──┬──► sensitivity    how much one person changes what is filtered
                                  └──► gaussian       how much noise that takes

=====================  ====================================================
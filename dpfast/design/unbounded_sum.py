"""A running sum of a stream that has no end, with no horizon to know beforehand."""

from __future__ import annotations

from dpfast._support.design_calls import public_design
from dpfast.filters.endless_sum import EndlessSum
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism
from dpfast.privacy.privacy import Privacy


@public_design
def unbounded_sum(privacy: Privacy, *, name: str = "unbounded sum") -> UnboundedMechanism:
    r"""Publish the running sum of a stream for ever: the horizon need not be known.

    Take it where nobody knows for how many steps the sum will run. At every n up to 2²⁴ the variance of step n was seen
    to be at most 1.353 times the largest of `square_root` designed for exactly n steps, and the mean over the first n
    below 1.41 times a lower bound for every factorization for n steps. Where the horizon is known,
    `optimal_factorization` and `square_root` are better.

    Model
    -----
    C = diag(a) T diag(1/e) and B = S diag(e) T⁻¹ diag(1/a), S the running sum: B C = S. T is near
    to the square root of S, but has 31 poles and zeros, so that it runs in 31 buffers (Oustaloup et al. 2000);
    a_t² = exp(-4 ((1 + ln(t + 1)/3)^(2/3) - 1)), on intervals of an eighth of an octave, and e_s is the norm of column
    s of diag(a) T over all time, or a little more. So C has no column of a norm above 1, for ever, and the noise has
    the standard deviation κ d. That the variance in units of it is (ln n/π)² (1 + O((ln n)^(-2/3))), whose leading term
    no factorization for one known n beats, is a sketch in docs/explanation/baselines.md, and no proof: beyond 2²⁴ steps
    `mse_at` tells what it is.

    Private counting without a horizon is the problem of Jacobsen and Fawaz (2025, arXiv:2506.15018), who solve it by a
    Toeplitz C of the power series (1 - z)^(-1/2) times powers of logarithms, with one norm for all columns: what is
    published about an input fades with its *age*, and the variance is O(ln^(2 + 2α) n). Here it fades with *time*, a_t,
    and each column is scaled to the norm 1. docs/explanation/baselines.md compares the two.

    Parameters
    ----------
    privacy : Privacy
        With a delta above 0.
    name : str
        What tables and pictures call it.

    Returns
    -------
    UnboundedMechanism
        It has 31 buffers, whatever the number of steps; its error at any step is exact: `mse_at`, `step_mse`.

    Raises
    ------
    ValueError
        Without a delta.

    Notes
    -----
    *Privacy.* For ever, for streams of any length, and where inputs react to what was published. Several events of a
    person cost their number as a factor of the noise, however far apart they are (group privacy).

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dp
    >>> mechanism = dp.unbounded_sum(dp.Privacy(1, 1e-6))
    >>> paths = mechanism.simulate(np.ones(1000), seed=1)
    >>> longer = mechanism.simulate(np.ones(5000), seed=1)
    >>> bool((longer.estimate[:1000] == paths.estimate).all())
    True
    """
    return UnboundedMechanism(name, EndlessSum(), privacy)

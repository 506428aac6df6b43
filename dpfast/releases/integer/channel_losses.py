"""What integer noise on several streams costs one person, who reaches one of them or all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpfast.privacy.composition import Loss
from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.lattice_noise import LatticeLaw, loss_of


def loss_of_channels(laws: Mapping[int, LatticeLaw], privacy: Privacy, inputs: Inputs) -> Loss:
    """Return what a person costs whose events each touch one draw of every stream that they are at.

    Where an event is at one stream, it costs the most that it costs in any of them; where it may be at all, what it
    costs in each is composed, at whatever times it is there. Several events cost as a group, wherever they are.

    Parameters
    ----------
    laws : mapping of int to GeometricRate or CanonicalTable
        Of the noise on each stream that is published, by its number.
    privacy : Privacy
    inputs : Inputs
        Of all streams, `n_streams` of them.
    """
    changes, one_stream = privacy.changes(inputs.n_streams), replace(inputs, n_streams=1)
    each = [
        loss_of((law,), Privacy(privacy.epsilon, privacy.delta, max_change=float(changes[i])), one_stream)
        for i, law in laws.items()
    ]
    one = worst_of(each) if (privacy.adjacency or "one_input") == "one_input" else sum(each, Loss())
    return one.of_group(privacy.max_events)


def worst_of(losses: list[Loss]) -> Loss:
    """Return what bounds each of some losses, of integer noise: the largest ε, and the largest δ where one has any.

    Examples
    --------
    >>> a, b = Loss(pure=(Fraction(1),)), Loss(approximate=((Fraction(1, 2), Fraction(1, 100)),))
    >>> worst_of([a, a]) == a, worst_of([a, b]).approximate
    (True, ((Fraction(1, 1), Fraction(1, 100)),))
    """
    epsilon = max((x.sum_of_epsilons for x in losses), default=Fraction(0))
    deltas = [delta for x in losses for _, delta in x.approximate]
    return Loss(approximate=((epsilon, max(deltas)),)) if deltas else Loss(pure=(epsilon,))

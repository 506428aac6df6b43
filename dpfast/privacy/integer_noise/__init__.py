"""Noise on the integers: laws with a closed form, and what each guarantees for a change of the input.

Others use ``integer_noise``, which makes a family by its name, and the laws themselves::

    Privacy, units ──► choice ──► TwoSidedGeometric | DiscreteCanonical | Staircase

=================  ==================================================================
``law``            ``IntegerNoise``: what every law answers, and how it is drawn
``geometric``      two-sided geometric noise, pure ε for any change
``canonical``      the least variance of integer noises at (ε, δ), for changes of one
``staircase``      for changes of several steps at little privacy
``shared``         ``SharedGeometric``: what the values of a group, or of a tree of
                   groups, share: larger on each, smaller on sums
``group_sums``     its sums over all noises of one group
``tree_sums``      those of a tree, level by level
``choice``         the law by its name, or the best that serves
=================  ==================================================================
"""

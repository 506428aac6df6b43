"""The exact laws of privacy losses of draws that are moved, and the δ that they come to, without the package."""

import itertools
import math

import numpy as np
from scipy import special


def pair_of(law, steps):
    """The law of the loss where a draw is moved so many steps: {loss: probability}, infinity among them."""
    if hasattr(law, "s"):
        rate, reach = law.s / 2**law.j, math.ceil(60 * 2**law.j / law.s)
        p = {n: math.tanh(rate / 2) * math.exp(-rate * abs(n)) for n in range(-reach, reach + 1)}
        return gather((p[n], rate * (abs(n - steps) - abs(n))) for n in p)
    total = sum(law.weights)
    if law.values == (0, 1, 2):  # a response tells the level for certain, truly or falsely, however far it moves
        certain, truly, falsely = (x / total for x in law.weights)
        return gather([(certain, math.inf), (truly, math.log(truly / falsely)), (falsely, math.log(falsely / truly))])
    p = {n: w / total for n, w in zip(law.values, law.weights, strict=True)}
    return gather((x, math.log(x / p[n - steps]) if n - steps in p else math.inf) for n, x in p.items())


def gather(pairs):
    found = {}
    for p, loss in pairs:
        key = round(loss, 9) if math.isfinite(loss) else loss
        found[key] = found.get(key, 0) + p
    return found


def hockey_stick(mu, x):
    """δ of N(0, 1) beside N(μ, 1) at x of either sign."""
    if mu == 0:
        return max(0.0, -math.expm1(x))
    return float(special.ndtr(mu / 2 - x / mu) - np.exp(x + special.log_ndtr(-mu / 2 - x / mu)))


def true_delta(touched, epsilon):
    """δ at ε of draws that are moved, whose laws are those of plans: (plan, steps) of each."""
    square, moved = 0.0, []
    for plan, steps in touched:
        if plan.kind == "filters":
            square += sum((steps * int(g)) ** 2 for g in plan.taps) / plan.sigma.std**2
        else:
            moved.append((plan.laws[0], steps))
    return delta_of(square, moved, epsilon)


def delta_of(square, moved, epsilon):
    """δ at ε of Gaussian noise that is moved by the root of `square` in its σ, and of draws (law, steps)."""
    losses = {0.0: 1.0}
    for law, steps in moved:
        pair = pair_of(law, steps)
        losses = gather((p * q, x + y) for (x, p), (y, q) in itertools.product(losses.items(), pair.items()))
    return sum(p * (1.0 if x == math.inf else hockey_stick(math.sqrt(square), epsilon - x)) for x, p in losses.items())

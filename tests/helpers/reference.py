"""Naive twins of the algorithms in plain Python and NumPy: slow, obvious, and importing nothing from the package."""

import math
from fractions import Fraction

import numpy as np
from scipy import optimize, stats

MASK32, MASK64 = 2**32 - 1, 2**64 - 1


# --- filters --------------------------------------------------------------------------------------


def direct_form(b, a, x):
    """a[0] y[t] = sum_k b[k] x[t-k] - sum_{k>0} a[k] y[t-k], from rest; x is (time,)."""
    y = [0.0] * len(x)
    for t in range(len(x)):
        total = sum(b[k] * x[t - k] for k in range(min(t + 1, len(b))))
        total -= sum(a[k] * y[t - k] for k in range(1, min(t + 1, len(a))))
        y[t] = total / a[0]
    return np.array(y, dtype=float)


def fir(taps, x):
    """y[t] = sum_k taps[k] x[t-k]."""
    return direct_form(taps, [1.0], x)


def cascade(sos, x):
    """Second-order sections b0 b1 b2 a0 a1 a2, one after the other."""
    for row in sos:
        x = direct_form(row[:3], row[3:], x)
    return np.array(x, dtype=float)


def step(b, a, level, delay, n):
    """A constant `level` from time `delay` on, through a filter."""
    return direct_form(b, a, [0.0 if t < delay else level for t in range(n)])


# --- random numbers -------------------------------------------------------------------------------


def xoshiro128pp(state, n):
    """The next n words of xoshiro128++ (Blackman and Vigna 2021); `state`, a list of four, is updated."""

    def rotl(x, k):
        return ((x << k) | (x >> (32 - k))) & MASK32

    words = []
    for _ in range(n):
        words.append((rotl((state[0] + state[3]) & MASK32, 7) + state[0]) & MASK32)
        t = (state[1] << 9) & MASK32
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= t
        state[3] = rotl(state[3], 11)
    return words


def splitmix_finaliser(x):
    """The bijection of 64 bits at the end of splitmix64 (Steele, Lea and Flood 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def generator_state(seed, stream, purpose):
    """Four words: two keys of the seed, hashed with the stream and the purpose, then two steps of splitmix64."""
    key = [int(k) for k in np.random.SeedSequence(seed).generate_state(2, np.uint64)]
    mixed = splitmix_finaliser(((splitmix_finaliser(stream ^ key[0]) + purpose) & MASK64) ^ key[1])
    halves = [splitmix_finaliser((mixed + k * 0x9E3779B97F4A7C15) & MASK64) for k in (1, 2)]
    return [part for half in halves for part in (half & MASK32, half >> 32)]


def box_muller(first, second):
    """Two normals from two words, of which one gives the radius, the other an angle on the right and a sign."""
    u = np.float32(float(np.float32(first)) / 2**32 + 2**-33)  # rounded as there, to 24 bits
    radius = math.sqrt(-2 * math.log(u)) * (-1) ** second
    angle = math.pi * (second - (second >> 31 << 32)) / 2**32
    return radius * math.cos(angle), radius * math.sin(angle)


def normals(seed, stream, purpose, n):
    """The first n normals of a stream."""
    words = xoshiro128pp(generator_state(seed, stream, purpose), n + n % 2)
    return np.array([x for pair in zip(words[::2], words[1::2], strict=True) for x in box_muller(*pair)][:n])


def laplace(seed, stream, purpose, n):
    """The first n Laplace numbers of scale one of a stream: the first of two words gives the size, the other a sign."""
    words = xoshiro128pp(generator_state(seed, stream, purpose), 2 * n)
    uniform = [np.float32(float(np.float32(word)) / 2**32 + 2**-33) for word in words[::2]]
    return np.array([-math.log(u) * (-1) ** word for u, word in zip(uniform, words[1::2], strict=True)])


def integer(tails, step, word):
    """Symmetric noise: the sign is the first bit, and the size the number of tails that the others are below."""
    is_negative, size = word >= 2**31, min(word, 2**32 - 1 - word)
    value = step * sum(size < round(p * 2**32) for p in tails)
    return -value if is_negative else value


def response(told, true, sizes, is_upper, word):
    """What is published for a level: a size, for certain or not, with the sign of the level or of the other."""
    limits = [min(round(p * 2**32), 2**32 - 1) for p in (told, true)]
    size = sizes[0] if word < limits[0] else sizes[1] if word < limits[1] else -sizes[1]
    return size if is_upper else -size


def next_state(probabilities, word):
    """By inversion: a state comes for as many of the 2^32 words as its probability says, none if that is zero."""
    possible, total = [j for j, p in enumerate(probabilities) if p > 0], 0.0
    for j in possible[:-1]:
        total += probabilities[j]
        if word < min(max(round(total * 2**32), 1), 2**32 - 1):
            return j
    return possible[-1]


def markov_path(state, transition, levels, words):
    """Levels of a Markov chain that leaves a state."""
    path = []
    for word in words:
        state = next_state(transition[state], word)
        path.append(levels[state])
    return np.array(path)


def stationary_path(seed, stream, initial, transition, levels, n):
    """The same from time zero; the state before is drawn from `initial` (purposes: input 0, start 2)."""
    uniform = (generator_state(seed, stream, 2)[0] + 0.5) / 2**32
    state = sum(uniform >= bound for bound in np.cumsum(initial)[:-1])
    return markov_path(state, transition, levels, xoshiro128pp(generator_state(seed, stream, 0), n))


# --- signals --------------------------------------------------------------------------------------


def stationary(transition):
    """Stationary probabilities of a chain, by running it for long."""
    return np.linalg.matrix_power(np.asarray(transition, dtype=float), 2**20)[0]


def markov_autocovariances(transition, levels, n):
    """r[k] = sum_{ij} P(u_0 = x_i, u_k = x_j) (x_i - m)(x_j - m), k < n."""
    p, levels = np.asarray(transition, dtype=float), np.asarray(levels, dtype=float)
    pi = stationary(p)
    centred = levels - pi @ levels
    return np.array([(pi * centred) @ np.linalg.matrix_power(p, k) @ centred for k in range(n)])


# --- receivers ------------------------------------------------------------------------------------


def sign(levels):
    """One of two levels, by the side of their middle."""
    low, high = levels
    return lambda value: high if value > (low + high) / 2 else low


def nearest(levels):
    """The nearest of any levels."""
    return lambda value: min(levels, key=lambda level: abs(level - value))


def posterior_mean(levels, probabilities, variance):
    """E[u | u + n] for Gaussian n of a variance, by Bayes's rule."""

    def decide(value):
        weights = [
            p * math.exp(-((value - x) ** 2) / (2 * variance)) for x, p in zip(levels, probabilities, strict=True)
        ]
        return sum(w * x for w, x in zip(weights, levels, strict=True)) / sum(weights)

    return decide


def decision_feedback(forward, feedback, shrinkage, decide, lag, v):
    """u^_t = decide(u~_t / shrinkage), u~_t = sum forward[i] v[t-i] + sum feedback[j-1] u^[t-j]; zero before `lag`."""
    decisions = [0.0] * len(v)
    for t in range(lag, len(v)):
        value = sum(h * v[t - i] for i, h in enumerate(forward) if i <= t)
        value += sum(h * decisions[t - j] for j, h in enumerate(feedback, start=1) if j <= t)
        decisions[t] = decide(value / shrinkage)
    return np.array(decisions)


def periodic_kalman(advance, gains, weights, lengths, phase, lag, offsets, released):
    """Estimates from sums that are released level by level, (levels, time): zero before the lag.

    Each level releases every `length` samples, so many later as `offsets` say; without them the shorter of two lengths
    divides the longer one. Behind every step of time at which anything may be released x = T x, with a T of its own;
    then x += K e for each level that releases, e = v - (its last state), after which these begin from zero. An estimate
    weighs the x behind the last release, and the e that came since.
    """
    n_levels, n_time = len(released), len(released[0])
    offsets = offsets or (0,) * n_levels
    slot = math.gcd(*lengths, *offsets)
    advances = advance if advance.ndim == 3 else [advance]
    n, n_later = advance.shape[-1], -(-lag // slot)
    x, states, innovations = np.zeros(n), [np.zeros(n)], [[0.0] * n_levels]
    estimates = np.zeros(n_time)
    for t in range(n_time):
        passed = t + 1 + phase
        if passed % slot == 0:
            which = (passed // slot - 1) % len(gains)
            x = advances[which % len(advances)] @ x
            due = [level for level in range(n_levels) if (passed - offsets[level]) % lengths[level] == 0]
            innovations.append([0.0] * n_levels)
            for level in due:
                innovations[-1][level] = released[level][t] - x[n - n_levels + level]
                x = x + gains[which][level] * innovations[-1][level]
            for level in due:
                x[n - n_levels + level] = 0.0
            states.append(x.copy())
        if t >= lag:
            wanted = t - lag + 1 + phase
            row, last = weights[wanted % len(weights)], wanted // slot - phase // slot
            estimates[t] = row[:n] @ states[last]
            for level in range(n_levels):
                for k, innovation in enumerate(innovations[last + 1 :]):
                    estimates[t] += row[n + level * n_later + k] * innovation[level]
    return estimates


def convolution_matrix(impulse, n):
    """Lower triangular Toeplitz matrix of a causal filter on n samples."""
    padded = np.zeros(n)
    padded[: min(n, len(impulse))] = impulse[:n]
    return np.array([[padded[t - s] if s <= t else 0.0 for s in range(n)] for t in range(n)])


def dense_smoother(autocovariance, target_impulse, prefilter_impulse, noise_std, n):
    """Matrix of the best linear estimate of F u from v = G u + n on a horizon of n samples, and its MSE at each t."""
    cov = np.array([[autocovariance[abs(t - s)] for s in range(n)] for t in range(n)])
    f, g = convolution_matrix(target_impulse, n), convolution_matrix(prefilter_impulse, n)
    gain = f @ cov @ g.T @ np.linalg.inv(g @ cov @ g.T + noise_std**2 * np.eye(n))
    return gain, np.diag(f @ cov @ f.T - gain @ g @ cov @ f.T)


# --- Monte Carlo ----------------------------------------------------------------------------------


def monte_carlo_mse(u, noise, centre, target, prefilter, noise_std, receive, lag, burn_in, n_samples):
    """Mean squared error of each stream: the estimates at t + lag against y[t], burn_in <= t < burn_in + n_samples.

    target and prefilter are pairs (b, a); `receive` turns v (time,) into estimates (time,).
    """
    result = []
    for x, n in zip(u, noise, strict=True):
        y = direct_form(*target, x)
        v = direct_form(*prefilter, [value - centre for value in x]) + noise_std * n
        estimate = receive(v)
        errors = [estimate[t + lag] - y[t] for t in range(burn_in, burn_in + n_samples)]
        result.append(sum(e * e for e in errors) / n_samples)
    return np.array(result)


# --- releases -------------------------------------------------------------------------------------


def bernoulli_exp(gamma, rng):
    """True with probability exp(-gamma), a Fraction >= 0 (Canonne, Kamath and Steinke 2020, algorithm 1)."""
    while gamma > 1:
        if not bernoulli_exp(Fraction(1), rng):
            return False
        gamma -= 1
    k = 1
    while rng.randrange(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(t, rng, s=1):
    """z with probability proportional to exp(-|z| s / t), s and t integers (algorithm 2 there)."""
    while True:
        u = rng.randrange(t)
        if not bernoulli_exp(Fraction(u, t), rng):
            continue
        v = 0
        while bernoulli_exp(Fraction(1), rng):
            v += 1
        magnitude, negative = (u + t * v) // s, rng.randrange(2)
        if magnitude > 0 or not negative:
            return -magnitude if negative else magnitude


def discrete_gaussian(sigma, rng):
    """z with probability proportional to exp(-z^2 / (2 sigma^2)), sigma a Fraction (algorithm 3 there)."""
    t = math.floor(sigma) + 1
    while True:
        y = discrete_laplace(t, rng)
        if bernoulli_exp((abs(y) - sigma**2 / t) ** 2 / (2 * sigma**2), rng):
            return y


def transformed(t, skewness, n):
    """Hall's transformation of a t value of n values."""
    k = skewness / math.sqrt(n)
    return t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6


def skewed_interval(values, level):
    """Ends for a mean: those of Student's t, or where Hall's transformation is its quantile, if that is farther."""
    n, mean = len(values), math.fsum(values) / len(values)
    moments = [math.fsum((x - mean) ** power for x in values) / n for power in (2, 3)]
    quantile = stats.t.isf(level / 2, n - 1)
    ends = []
    for target in (quantile, -quantile):
        root = optimize.brentq(lambda t, x=target: transformed(t, moments[1] / moments[0] ** 1.5, n) - x, -1e6, 1e6)
        farther = max(root, target) if target > 0 else min(root, target)
        ends.append(mean - farther * math.sqrt(moments[0] / (n - 1)))
    return tuple(ends)

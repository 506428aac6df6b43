"""The cases of the races: the same filter on the same numbers by everybody, and the same laws of noise."""

from typing import NamedTuple

import numpy as np

# jax-privacy's BLT of three buffers for prefix sums of 1024 steps, least in the largest error
BUF_DECAY = [0.9989728513280584, 0.9785596443295776, 0.7432827591483078]
OUTPUT_SCALE = [0.044441114509976176, 0.12054534238940519, 0.31138952388291957]
CHUNK = 100
SIZES = {  # streams, samples of each; at most 80 MB
    "step by step": [(1, 2000), (1000, 200), (100_000, 10)],
    f"in chunks of {CHUNK}": [(1, 20_000), (1000, 1000), (100_000, CHUNK)],
    "as one batch": [(1, 100_000), (1000, 1000), (100_000, 100)],
}
DRAWN = [(1000, 1000), (100_000, 100)]
BANDS = 16
DESIGNS = [  # of prefix sums: which, for how many steps
    ("square root", 1024),
    ("square root", 65_536),
    ("BLT of 3 buffers", 1024),
    ("BLT of 3 buffers", 65_536),
    ("banded Toeplitz", 1024),
    ("dense", 256),
]
DRAW = "noise drawn and shaped"
EXACT = "exact discrete Gaussian"
EXACT_STD, EXACT_BLOCK = 322.5, 4096  # 645/2
CHECKED = 5  # last samples of the first and of the last stream


class Rational(NamedTuple):
    """A difference equation, as in scipy.signal.lfilter."""

    b: np.ndarray
    a: np.ndarray


def strategy():
    """C(z) = 1 + Σ ω z⁻¹/(1 − θ z⁻¹)."""
    a = np.poly(BUF_DECAY)
    b = a.copy()
    for i, scale in enumerate(OUTPUT_SCALE):
        b[1:] += scale * np.poly([x for j, x in enumerate(BUF_DECAY) if j != i])
    return Rational(b, a)


def noising():
    """C⁻¹, which shapes the noise: three poles."""
    b, a = strategy()
    return Rational(a, b)


def chunk_of(mode, n_samples):
    """Samples that a call gets."""
    return {"step by step": 1, "as one batch": n_samples}.get(mode, CHUNK)


def numbers(n_streams, n_samples):
    return np.random.default_rng(1).standard_normal((n_streams, n_samples))


def checked(y):
    """A few of the outputs (streams, samples)."""
    return np.asarray(y)[[0, -1], -CHECKED:].ravel().tolist()

"""The chain of `case` in JAX: `lax.scan` over time, `vmap` over streams, random numbers of its own drawn beforehand."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.harness.case import FEEDBACK, FORWARD, LAG, LEVEL, NOISE_STD, SOS, TARGET_A, TARGET_B

jax.config.update("jax_enable_x64", True)


def simulate(dtype, n_streams, n_samples, seed):
    """Mean squared error."""
    return float(_simulate(jax.random.key(seed), dtype, n_streams, n_samples))


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _simulate(key, dtype, n_streams, n_samples):
    keys = jax.random.split(key, n_streams)
    return jax.vmap(functools.partial(_stream, dtype=dtype, n_samples=n_samples))(keys).mean()


def _stream(key, dtype, n_samples):
    flip_key, noise_key = jax.random.split(key)
    flips = jax.random.bernoulli(flip_key, 0.25, (n_samples,))
    noise = jax.random.normal(noise_key, (n_samples,), dtype) * dtype(NOISE_STD)
    zero = dtype(0)
    start = {
        "sign": dtype(LEVEL),
        "prefilter": ((zero, zero),) * len(SOS),
        "target": zero,
        "u": jnp.zeros(LAG, dtype),
        "v": jnp.zeros(len(FORWARD), dtype),
        "decisions": jnp.zeros(len(FEEDBACK), dtype),
        "error": zero,
    }
    end, _ = lax.scan(_step, start, (flips, noise))
    return end["error"] / n_samples


def _step(state, inputs):
    flip, noise = inputs
    number = noise.dtype.type
    u = jnp.where(flip, -state["sign"], state["sign"])
    x, prefilter = _sections(state["prefilter"], u)
    v = _push(x + noise, state["v"])
    soft = jnp.dot(FORWARD.astype(noise.dtype), v) + jnp.dot(FEEDBACK.astype(noise.dtype), state["decisions"])
    decision = jnp.where(soft >= 0, number(LEVEL), number(-LEVEL))
    error = state["u"][-1] - decision
    y = number(TARGET_B[0]) * error + state["target"]
    return {
        "sign": u,
        "prefilter": prefilter,
        "target": number(TARGET_B[1]) * error - number(TARGET_A[1]) * y,
        "u": _push(u, state["u"]),
        "v": v,
        "decisions": _push(decision, state["decisions"]),
        "error": state["error"] + y * y,
    }, None


def _push(value, past):
    return jnp.concatenate([value[None], past[:-1]])


def _sections(states, x):
    following = []
    for (b0, b1, b2, _, a1, a2), (s, z) in zip(SOS.astype(x.dtype), states, strict=True):
        y = b0 * x + s
        following.append((b1 * x - a1 * y + z, b2 * x - a2 * y))
        x = y
    return x, tuple(following)

"""A filter of several poles in JAX, compiled: `lax.scan` over the steps, streams side by side, its state handed on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)


class JaxFilter:
    """Keeps its state, as the transposed direct form has it, (poles, streams)."""

    def __init__(self, b, a, n_streams):
        self.b, self.a = tuple(map(float, b)), tuple(map(float, a))
        self.state = jnp.zeros((len(a) - 1, n_streams))

    def push(self, x):
        """The outputs (steps, streams) of the next samples, when they are there."""
        self.state, y = _run(self.state, x, self.b, self.a)
        return y.block_until_ready()


@functools.partial(jax.jit, static_argnums=(2, 3), donate_argnums=0)
def _run(state, x, b, a):
    def step(z, value):
        y = b[0] * value + z[0]
        later = [*z[1:], jnp.zeros_like(y)]
        return jnp.stack([b[k] * value - a[k] * y + rest for k, rest in enumerate(later, 1)]), y

    return lax.scan(step, state, x)

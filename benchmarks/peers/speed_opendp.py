"""OpenDP's exact noise: answers the races of `speed`.

python -m benchmarks.peers.speed_opendp
"""

import numpy as np
import opendp.prelude as dp

from benchmarks.peers import cases, turns


def exact_noise():
    """Blocks of integers; checked by their standard deviation."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=cases.EXACT_STD)
    zero = [0] * cases.EXACT_BLOCK
    spread = np.std(measurement(zero)) / cases.EXACT_STD
    return turns.Job(lambda: measurement(zero), cases.EXACT_BLOCK, [float(spread)])


if __name__ == "__main__":
    dp.enable_features("contrib")
    turns.serve(exact_noise, "opendp", "numpy")

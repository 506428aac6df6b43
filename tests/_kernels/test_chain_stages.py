"""Which kernels a chain compiles."""

import numpy as np
import pytest
from helpers.chains import FACTORS

from dpfast._kernels import chain_program, chain_stages
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.simulated_noise import NOISE


@pytest.fixture
def found(monkeypatch):
    """The kernels whose addresses were asked for, in a process that has found none."""
    names, find = [], chain_stages.find_address

    def find_and_note(kernel, *kinds):
        names.append(kernel.__name__)
        return find(kernel, *kinds)

    monkeypatch.setattr(chain_stages, "_FOUND", {})
    monkeypatch.setattr(chain_stages, "find_address", find_and_note)
    return names


def run(chain):
    return execute(chain, 2, 10, out=np.empty((chain.n_outputs, 2, 10), chain.dtype))


def test_every_kind_of_stage_has_a_kernel_of_its_own():
    kinds = {value for name, value in vars(chain_program).items() if name.isupper() and isinstance(value, int)}
    assert set(chain_stages.KERNELS) == kinds
    assert len(set(chain_stages.KERNELS.values())) == len(kinds)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_only_what_a_chain_runs_is_compiled_and_once(found, dtype):
    chain = Chain(dtype)
    chain.filter(FACTORS["section"], chain.filter(FACTORS["Wiener"], chain.normals(NOISE)), square=range(10))
    run(chain)
    assert found == ["draw_normals", "filter_signal"]
    chain.write(chain.step(1.0, 0))
    chain.program = None
    run(chain)
    assert found == ["draw_normals", "filter_signal", "step", "write"]


def test_each_precision_has_kernels_of_its_own(found):
    for dtype in (np.float64, np.float32, np.float64):
        chain = Chain(dtype)
        chain.normals(NOISE)
        run(chain)
    assert found == ["draw_normals"] * 2

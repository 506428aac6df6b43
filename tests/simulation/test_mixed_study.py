import functools

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast._kernels import simulation as kernels
from dpfast.filters.toeplitz import square_root_series
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.simulation import mixed_study

N = 40
PRIVACY = dp.Privacy(1.0, 0.05)
MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0.0, 1.0])
FILTER = dp.Filter([1, 0.5], [1, -0.8])
TARGET = dp.Toeplitz.of(FILTER, N)
ROOT = Convolution(square_root_series(TARGET.coefficients))
MATRIX = dp.MatrixMechanism("root", TARGET, PRIVACY, ROOT, ROOT)
DENSE = dp.MatrixMechanism("dense", TARGET, PRIVACY, Dense(ROOT.matrix()), Dense(ROOT.matrix()), noise="laplace")


@functools.cache
def links():
    compiled = designed(dp.zero_forcing, FILTER, PRIVACY, tolerance=0.1)
    late = designed(dp.lmmse, FILTER, PRIVACY, MODEL, lag=2, tolerance=0.1)
    return MATRIX.compiled(), compiled.compiled(), DENSE.compiled(), late.compiled()


def errors(links_, n_streams=20, seed=3, n_threads=1, **options):
    return mixed_study.MixedStudy(MODEL.compiled(), tuple(links_), 0, N).squared_errors(
        n_streams, seed, n_threads, **options
    )


def test_each_link_has_the_errors_that_it_has_alone():
    together = errors(links())
    for i, link in enumerate(links()):
        np.testing.assert_array_equal(together[:, i], errors([link])[:, 0])


def test_compiled_links_are_those_of_the_kernels():
    alone = kernels.CompiledStudy(MODEL.compiled(), links()[1::2], 0, N)
    np.testing.assert_array_equal(errors(links())[:, [1, 3]], kernels.squared_errors(alone, 20, 3, 1))


def test_matrix_mechanisms_err_as_their_simulation_says():
    u = MODEL.sample(20, N, seed=3)
    for i, mechanism in ((0, MATRIX), (2, DENSE)):
        paths = mechanism.simulate(u, seed=3)
        expected = ((paths.estimate - TARGET.apply(u)) ** 2).mean(axis=1)
        np.testing.assert_allclose(errors(links())[:, i], expected, rtol=1e-10)


def test_the_same_filter_errs_the_same_either_way():
    """Output perturbation, over a horizon and as a filter: the same inputs, the same noise."""
    filter = dp.output_perturbation(FILTER, PRIVACY)
    c, b = Convolution(TARGET.coefficients), Convolution(np.eye(1, N)[0])
    matrix = dp.MatrixMechanism("output", TARGET, dp.Privacy(1.0, 0.05), c, b)
    both = errors([filter.compiled(), matrix.compiled()])
    ratio = (filter.noise_std / matrix.noise_std) ** 2  # the filter's response goes on beyond the horizon
    np.testing.assert_allclose(both[:, 0], both[:, 1] * ratio, rtol=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_and_pieces_change_no_bit(n_threads):
    whole = errors(links())
    np.testing.assert_array_equal(errors(links(), n_threads=n_threads), whole)
    np.testing.assert_array_equal(errors(links(), n_streams=5, n_threads=n_threads), whole[:5])
    np.testing.assert_array_equal(errors(links(), n_streams=4, first=16, n_threads=n_threads), whole[16:])


def test_progress_adds_up_to_the_length():
    study, heard = mixed_study.MixedStudy(MODEL.compiled(), links(), 0, N), []
    study.squared_errors(20, 3, 2, heard.append)
    assert sum(heard) == 20 * study.length
    assert study.length == 2 * N + kernels.CompiledStudy(MODEL.compiled(), links()[1::2], 0, N).build_chain().length

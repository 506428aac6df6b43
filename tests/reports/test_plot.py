import pytest
from helpers.sweeps import run

import dpfast as dp


@pytest.fixture(scope="module")
def sweep():
    return run(width=0.01, budget=3e4)


@pytest.fixture(scope="module")
def study():
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-3))
    return dp.monte_carlo(mechanism, chain, n_streams=16, n_samples=100, seed=1)


def test_kinds(sweep, study):
    assert list(dp.plot(sweep).axes[0].lines[0].get_xdata()) == [0.5, 2]
    assert dp.plot(sweep, "winners", rows="epsilon").axes[0].get_ylabel() == "ε"
    assert len(dp.plot(sweep, "paths", n_samples=20).axes[0].lines[0].get_ydata()) == 20
    assert dp.plot(sweep, "convergence").axes[-1].get_xlabel() == "streams"
    for figure in (dp.plot(study), dp.plot(study, "study")):
        assert [x.get_xlabel() for x in figure.axes] == ["RMSE", "% above what was predicted"]


def test_a_sweep_without_an_axis_of_numbers_is_drawn_by_its_paths(sweep):
    assert dp.plot(sweep.where(epsilon=2)).axes[-1].get_xlabel() == "time (samples)"


def test_all_kinds_of_other_objects():
    figure = dp.plot(dp.Filter([1], [1, -0.9]))
    assert [x.get_title(loc="left") for x in figure.axes] == ["gain", "impulse response"]
    with pytest.raises(ValueError, match="kind must be None for all pictures"):
        dp.plot(dp.Filter([1]), "gain")
    with pytest.raises(ValueError, match="options of 'all' must be none, got 'period'"):
        dp.plot(dp.Filter([1]), period="5min")


def test_what_is_refused(sweep, study):
    with pytest.raises(ValueError, match="x must be a filter, model, mechanism, release, study or sweep, got "):
        dp.plot([1, 2])
    with pytest.raises(ValueError, match="kind must be one of 'epsilon', 'winners', 'paths', 'convergence', got 'lag'"):
        dp.plot(sweep, "lag")
    with pytest.raises(ValueError, match="kind must be one of 'study', got 'paths'"):
        dp.plot(study, "paths")
    with pytest.raises(ValueError, match="options of 'winners' must be rows or columns, got 'n_samples'"):
        dp.plot(sweep, "winners", n_samples=3)
    with pytest.raises(ValueError, match="options of 'epsilon' must be none, got 'rows'"):
        dp.plot(sweep, "epsilon", rows=3)

import numpy as np
import pytest
from helpers.chains import paths
from helpers.markov_chains import CHAINS, LAZY

from dpfast import ARMA, IndependentLevels, MarkovChain
from dpfast._kernels.chain_builder import Chain

OMEGA = np.linspace(0, np.pi, 101)


def test_levels_far_from_zero_keep_their_digits():
    near, far = (MarkovChain(CHAINS["three"][0], np.array([0.0, 1, 5]) + x) for x in (0, 1e15))
    assert far.variance == pytest.approx(near.variance, rel=1e-12)
    assert IndependentLevels([1e15, 1e15 + 1], [0.5, 0.5]).variance == 0.25


models = {
    "chain": MarkovChain(*CHAINS["three"]),
    "independent": IndependentLevels([0, 1], [0.3, 0.7]),
    "arma": ARMA([1, 0.3], [1, -0.9], mean=3),
    "arma on levels": ARMA([1], [1, -0.5], levels=[-2, 0, 2]),
    "long ma": ARMA(np.ones(40)),
}
every_model = pytest.mark.parametrize("model", models.values(), ids=models)


@every_model
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 1), (3, 7)])
def test_samples_have_their_shape(model, shape):
    assert model.sample(*shape, seed=0).shape == shape


@every_model
def test_stream_depends_on_seed_and_index_alone(model):
    many = model.sample(40, 50, seed=9)
    np.testing.assert_array_equal(model.sample(3, 50, seed=9), many[:3])
    np.testing.assert_array_equal(model.sample(40, 20, seed=9), many[:, :20])
    chain = Chain()
    one = paths(chain, [model.compiled().add_to(chain)], 1, 50, seed=9, first=17)
    np.testing.assert_array_equal(one[0, 0], many[17])
    assert len(np.unique(many, axis=0)) == 40
    assert not np.array_equal(model.sample(40, 50, seed=10), many)


@every_model
def test_a_generator_gives_the_seed(model):
    first, again = (model.sample(2, 9, seed=np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("n_streams", "n_samples", "seed", "message"),
    [
        (-1, 1, 0, "n_streams must be"),
        (1, 1.5, 0, "n_samples must be"),
        (1, 1, None, "seed must be"),
        (1, 1, -1, "seed"),
    ],
)
def test_bad_sizes_are_refused(n_streams, n_samples, seed, message):
    with pytest.raises(ValueError, match=message):
        models["chain"].sample(n_streams, n_samples, seed=seed)


@every_model
def test_models_are_frozen(model):
    with pytest.raises(AttributeError):
        model.mean = 0.0
    if model.levels is not None:
        assert not model.levels.flags.writeable
        assert not model.probabilities.flags.writeable


def test_arrays_of_the_caller_are_copied():
    transition, levels = np.array(LAZY), np.array([0.0, 1.0])
    chain = MarkovChain(transition, levels)
    transition[0], levels[0] = [0, 1], 5
    assert chain.transition[0].tolist() == [0.75, 0.25]
    assert chain.levels.tolist() == [0, 1]
    assert transition.flags.writeable

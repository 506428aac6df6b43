"""No array of what was designed can be written to: figures that were computed from it would no longer be true."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from helpers.designs import MadeOnce, designed

import dpfast as dp

TARGET, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
COIN = dp.IndependentLevels([0, 1], [0.75, 0.25])
GAUSSIAN = dp.ARMA([1], [1, -0.5], levels=[-9, 0, 9])
SIGNS = dp.Inputs(-0.5, 0.5, unit=0.5, missing=0)


def feedback():
    options = {"prefilter": "zero-forcing", "n_forward": 8, "n_feedback": 2, "tolerance": 0.3}
    return designed(dp.decision_feedback, TARGET, PRIVACY, CHAIN, **options)


MADE = MadeOnce(
    {
        "chain": lambda: CHAIN,
        "levels": lambda: COIN,
        "ARMA": lambda: GAUSSIAN,
        "linear": lambda: dp.lmmse(TARGET, PRIVACY, GAUSSIAN, lag=0, tolerance=0.3),
        "smoother": lambda: dp.lmmse(TARGET, PRIVACY, COIN, tolerance=0.3),
        "feedback": feedback,
        "receiver": lambda: feedback().receiver,
        "matrices": lambda: dp.square_root(TARGET, PRIVACY, horizon=8).with_receiver(CHAIN),
        "exact": lambda: dp.exact(dp.zero_forcing(TARGET, PRIVACY, tolerance=0.3), dp.Inputs(0, 20)),
        "exact feedback": lambda: dp.exact(feedback(), SIGNS),
    }
)
COPIES = {
    "made": lambda x: x,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "replace": lambda x: x if type(x) in (type(CHAIN), type(COIN), type(GAUSSIAN)) else dataclasses.replace(x),
}
COMPUTED = "guarantee", "shift", "noise_std", "predicted_mse", "levels", "probabilities", "step_mse"


def arrays(value, path, seen):
    """Every array that can be reached from an object, with its name."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name in value._fields:
            yield from arrays(getattr(value, name), f"{path}.{name}", seen)
    elif isinstance(value, tuple | list | dict):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from arrays(inner, f"{path}[{name}]", seen)
    elif type(value).__module__.startswith("dpfast"):
        for name in [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]:
            yield from arrays(getattr(value, name), f"{path}.{name}", seen)


@pytest.mark.parametrize("name", MADE)
def test_no_array_can_be_written_to(name):
    assert {copy: x for copy, copied in COPIES.items() if (x := writeable(MADE[name], copied))} == {}


def writeable(made, copied):
    """The arrays of the copy that can be written to, after all that is kept once it is computed was computed."""
    for name in COMPUTED:  # what is kept once it is computed comes along
        value = getattr(made, name, None)
        if name == "step_mse" and value is not None and isinstance(made, dp.MatrixMechanism):
            value()
    again = copied(made)
    for name in COMPUTED:
        getattr(again, name, None)
    found = dict(arrays(again, type(again).__name__, {}))
    assert found
    return [name for name, array in found.items() if array.flags.writeable]


@pytest.mark.parametrize("how", ["first", "replaced"])
def test_the_taps_of_an_exact_mechanism_are_its_own(how):
    plan = MADE["exact"]
    given = plan.taps.copy()
    parts = {x.name: getattr(plan, x.name) for x in dataclasses.fields(plan)} | {"taps": given}
    made = type(plan)(**parts) if how == "first" else dataclasses.replace(plan, taps=given)
    before = made.guarantee
    given *= 1000
    assert (made.taps == plan.taps).all()
    assert dataclasses.replace(made).guarantee == before == plan.guarantee


def test_the_arrays_of_a_receiver_are_its_own():
    given = feedback().receiver.forward.copy()
    receiver = dataclasses.replace(feedback().receiver, forward=given)
    given[:] = 0
    assert (receiver.forward == feedback().receiver.forward).all()


def test_the_matrices_of_a_mechanism_are_its_own():
    """Those of read-only arrays too: whoever made them may have a view that can be written to."""
    made = dp.square_root(TARGET, PRIVACY, horizon=8)
    given = made.strategy.coefficients.copy()
    view = given[:]
    given.setflags(write=False)
    changed = dataclasses.replace(made, strategy=made.strategy._replace(coefficients=given))
    view *= 1000
    assert (changed.strategy.coefficients == made.strategy.coefficients).all()


def test_a_pickle_keeps_no_guarantee():
    """It is computed anew, from taps that nobody wrote to meanwhile."""
    plan = dp.exact(dp.zero_forcing(TARGET, PRIVACY, tolerance=0.3), dp.Inputs(0, 20))
    plan.__dict__["guarantee"] = "nothing"
    assert pickle.loads(pickle.dumps(plan)).guarantee == MADE["exact"].guarantee


@pytest.mark.parametrize(
    "taps", [np.ones(3), np.ones((1, 3), np.int64), np.ones(0, np.int64), np.ones(70_000, np.int8), [True]]
)
def test_taps_are_integers(taps):
    with pytest.raises(ValueError, match="taps must be an array of 1 to 65,536 integers"):
        dataclasses.replace(MADE["exact"], taps=taps)


def test_taps_are_not_all_zero():
    with pytest.raises(dp.DesignError, match="squares that sum to 1 at least"):
        dataclasses.replace(MADE["exact"], taps=np.zeros(3, np.int64))


def test_products_of_taps_do_not_wrap_around():
    """Modulo 2^64 the taps below have autocorrelations of zero: two events of one person would count as strangers'."""
    privacy = dp.Privacy(1.5, 1e-6, max_events=2)
    plan = dp.exact(dp.input_perturbation(dp.Filter([1]), privacy), dp.Inputs(0, 1))
    sigma = plan.sigma._replace(a=2**36, j=0)
    with pytest.raises(dp.DesignError, match=r"squares that sum to 1 at least, and to less than 2\*\*62"):
        dataclasses.replace(plan, taps=np.array([2**33, 2**33]), sigma=sigma)

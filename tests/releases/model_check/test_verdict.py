"""What a release says about its model, in words and in JSON; looks at a stream; nothing that sees u."""

import dataclasses
import importlib
import inspect
import json
import pickle
import pkgutil
import warnings

import numpy as np
import pytest
from helpers import wrong_models
from helpers.seeded_noise import seed_noise

import dpfast as dp
from dpfast._support.errors import DesignError, ModelWarning
from dpfast.releases import model_check
from dpfast.releases.model_check.verdict import Judgement, check_growing, check_whole, look_steps


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch):
    seed_noise(monkeypatch, 1)


@pytest.fixture(scope="module")
def plan():
    return wrong_models.recipe()


def counts(rng, time=900):
    return rng.poisson(5.9, (1, time))


def test_a_release_warns_and_says_what_is_wrong_and_how_large_the_error_is(plan, tmp_path):
    u = counts(np.random.default_rng(1))
    with pytest.warns(
        ModelWarning,
        match=r"mean of the true values is about 5\.\d+ .* 2 in the model.*RMSE estimated from what was .*: 1\.\d",
    ):
        result = dp.release(plan, u, tmp_path / "store")
    truth = np.sqrt((wrong_models.true_errors(plan, result.privatized, u) ** 2).mean())
    assert result.model_check.estimated_rmse == pytest.approx(truth, rel=0.15)
    assert result.predicted_rmse_if_model_holds == plan.predicted_rmse_if_model_holds  # as it was stated
    low, high = np.sqrt(result.model_check.mse_interval)
    assert low < result.model_check.estimated_rmse < high
    assert result.model_check.band.shape == (1,)
    assert "contradicts the model" in result._repr_html_()
    again = dp.read_release(tmp_path / "store")
    assert again.model_check.content() == result.model_check.content()
    assert again.adapted is None


def test_a_release_that_agrees_says_so_without_a_warning(plan, tmp_path):
    u = np.rint(wrong_models.true_model(np.random.default_rng(2), (1, 900))).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = dp.release(plan, u, tmp_path / "store")
    assert result.model_check.agrees is True
    assert str(result.model_check).startswith("What was published agrees with the model (test of level 0.001). RMSE")
    assert (
        "of its square cannot be seen in what was published and rests on the model's spectrum, whose errors the "
        "interval leaves out." in str(result.model_check)
    )
    assert repr(result.model_check).startswith("<ModelCheck: agrees, estimated RMSE 0.3")


def test_an_adapted_receiver_is_beside_what_was_published(plan, tmp_path):
    u = counts(np.random.default_rng(3), 4000)
    with pytest.warns(ModelWarning) as warned:
        result = dp.release(plan, u, tmp_path / "store", adapt=True)
    assert "adapt=True" not in str(warned[0].message)
    adapted = result.adapted
    assert adapted.taken
    y = np.convolve(u[0], np.ones(12) / 12)[:4000]
    given, new = (((x[0] - y) ** 2).mean() ** 0.5 for x in (result.estimate, adapted.estimate))
    assert new < given / 2
    assert adapted.estimated_rmse == pytest.approx(new, rel=0.15)
    assert (np.abs(adapted.estimate - y) <= adapted.band[:, np.newaxis]).mean() > 0.9
    np.testing.assert_array_equal(plan.estimate(result.privatized)[:, 5:], result.estimate)  # as without
    again = dp.read_release(tmp_path / "store", adapt=True)
    np.testing.assert_array_equal(again.adapted.estimate, adapted.estimate)
    assert again.adapted.content() == adapted.content()
    assert str(adapted).startswith("The adapted receiver is taken.")


def test_a_receiver_that_is_right_stays(plan, tmp_path):
    u = np.rint(wrong_models.true_model(np.random.default_rng(4), (1, 900))).astype(int)
    result = dp.release(plan, u, tmp_path / "store", adapt=True)
    assert not result.adapted.taken
    np.testing.assert_allclose(result.adapted.estimate, result.estimate)
    assert result.adapted.estimated_rmse == result.model_check.estimated_rmse
    assert repr(result.adapted) == "<AdaptedEstimates: not taken>"


def test_labels_come_with_adapted_estimates(plan, tmp_path):
    pandas = pytest.importorskip("pandas")
    u = pandas.Series(counts(np.random.default_rng(5))[0], pandas.date_range("2026", periods=900, freq="h"), name="in")
    with pytest.warns(ModelWarning):
        result = dp.release(plan, u, tmp_path / "store", adapt=True)
    assert result.adapted.estimate.index.equals(u.index)


def test_what_cannot_be_adapted_is_refused_before_anything_is_published(plan, tmp_path):
    with pytest.raises(ValueError, match=r"adapt must be False for fewer than \d+ steps"):
        dp.release(plan, counts(np.random.default_rng(6), 100), tmp_path / "store", adapt=True)
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    feedback = dp.decision_feedback(dp.Filter([1], [1, -0.9]), dp.Privacy(2, 1e-6), chain, lag=4, tolerance=0.1)
    with pytest.raises(DesignError, match="must have a linear receiver"):
        dp.release(feedback, np.ones((1, 900), int), tmp_path / "store", dp.Inputs(0, 1), adapt=True)
    with pytest.raises(ValueError, match="adapt must be True or False"):
        dp.release(plan, counts(np.random.default_rng(6)), tmp_path / "store", adapt=1)
    assert not (tmp_path / "store").exists()


def test_a_stream_that_was_read_is_checked_by_looks(plan, tmp_path):
    u = counts(np.random.default_rng(7), 300)
    with dp.open_stream(plan, tmp_path / "store") as stream:
        stream.push(u[:, :50])
    young = dp.read_release(tmp_path / "store").model_check
    assert young.agrees is None
    assert "after 64 steps" in young.reason
    with dp.open_stream(plan, tmp_path / "store") as stream:
        stream.push(u[:, 50:])
        stream.close()
    found = dp.read_release(tmp_path / "store").model_check
    assert (found.agrees, found.steps) == (False, 300)


class Looked:
    """Evidence that notes its looks; the chance of what it holds is that of the look."""

    model = object()

    def __init__(self, steps, chances, looks):
        self.steps, self.chances, self.looks = steps, chances, looks

    def until(self, steps):
        return Looked(steps, self.chances, self.looks)

    def judge(self, level):
        self.looks.append((self.steps, level))
        return Judgement(self.chances.get(self.steps, 1) >= level, (), {}, {})

    def estimate_error(self, *, contradicted):
        return f"contradicted: {contradicted}"


def test_looks_share_one_level():
    looks = []
    assert check_growing(Looked(64 * 2**20, {}, looks), 0.01).agrees is True
    assert [steps for steps, _ in looks] == [64 * 2**k for k in range(21)]
    assert sum(level for _, level in looks) == pytest.approx(0.01 * (1 - 1 / 22))


def test_what_one_look_found_stays_found():
    looks = []
    found = check_growing(Looked(1000, {128: 0.01 / 7, 256: 1}, looks), 0.01)
    assert (found.agrees, len(looks), found.reason) == (False, 2, "contradicted: True")
    assert check_growing(Looked(1000, {128: 0.01 / 5}, []), 0.01).agrees is True


def test_what_was_found_late_is_said_beside_the_error_and_not_of_a_batch(plan, tmp_path):
    """A batch is looked at once, as a whole: no row of it was written before."""
    with pytest.warns(ModelWarning):
        whole = dp.release(plan, counts(np.random.default_rng(1)), tmp_path / "store").model_check
    assert whole.contradicted_after == whole.steps == 900
    assert "which does not hold either" not in str(whole)
    late = dataclasses.replace(whole, contradicted_after=899)
    assert "That was found after 899 of 900 steps: rows of a file of estimates that were written before" in str(late)
    assert "does not hold either" not in str(dataclasses.replace(whole, contradicted_after=None))


def test_looks_are_at_doubling_steps():
    assert [look_steps(n) for n in (0, 63, 64, 127, 128, 300)] == [[], [], [64], [64], [64, 128], [64, 128, 256]]


def test_results_are_json_and_pickles(plan):
    rng = np.random.default_rng(8)
    found = check_whole(plan.evidence(wrong_models.published(plan, counts(rng), rng), 900))
    assert json.loads(json.dumps(found.content(), allow_nan=False))["agrees"] is False
    assert pickle.loads(pickle.dumps(found)).content() == found.content()


def test_nothing_here_has_an_argument_through_which_the_input_could_come():
    """Functions take v and what is made of it."""
    modules = [
        importlib.import_module(f"{model_check.__name__}.{m.name}") for m in pkgutil.iter_modules(model_check.__path__)
    ]
    data = {
        name
        for module in modules
        for thing in vars(module).values()
        if getattr(thing, "__module__", None) == module.__name__
        for function in ([*vars(thing).values()] if inspect.isclass(thing) else [thing])
        if inspect.isfunction(function)
        for name in inspect.signature(function).parameters
    }
    assert {"v", "z"} <= data
    assert not data & {"u", "counts", "signals", "inputs", "stream", "chunk", "events"}

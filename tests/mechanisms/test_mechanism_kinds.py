"""A matrix mechanism is refused where only filters can be, with a reason."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.guarantee_text import describe
from dpfast.releases.audit.floating_point_grid import evidence
from dpfast.simulation.evaluation import name_saved

PRIVACY, INPUTS = dp.Privacy(1.0, 1e-6), dp.Inputs(0, 3)
MATRIX = dp.square_root(dp.running_sum(8), PRIVACY)
LAPLACE = dp.binary_tree(dp.running_sum(8), dp.Privacy(0.5, 1e-6, max_events=2), noise="laplace")
GOT = ", got the MatrixMechanism 'square root' over a horizon of 8 steps: "
NAMED = f"^mechanism must be a Mechanism, of filters{GOT}"


@pytest.mark.parametrize(
    "run",
    [
        lambda path: dp.exact(MATRIX, INPUTS),
        lambda path: dp.release(MATRIX, np.zeros(8, int), INPUTS),
        lambda path: dp.open_stream(MATRIX, path / "store", INPUTS),
        lambda path: dp.audit(MATRIX, INPUTS),
    ],
)
def test_nothing_is_released_by_a_matrix_mechanism(run, tmp_path):
    reason = ".*integer taps, .* Release a design for a Filter"
    with pytest.raises(dp.ReleaseError, match=f"^mechanism must be one that has an exact form{GOT}{reason}"):
        run(tmp_path)
    assert list(tmp_path.iterdir()) == []


CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
AVERAGE = dp.Filter([0.5, 0.5])
OTHER_NOISE = {
    "the BlockMechanism 'block sums of shared noise lag 0'": lambda: dp.block_sums(
        AVERAGE, dp.Privacy(1), CHAIN, length=4, group=2, slack=1
    ),
    "the Mechanism 'input perturbation' with Laplace noise": lambda: dp.input_perturbation(
        AVERAGE, dp.Privacy(1), noise="laplace"
    ),
    "the AdaptiveBlockMechanism": lambda: dp.adaptive_blocks(AVERAGE, dp.Privacy(1), CHAIN),
}
RELEASES = {
    "exact": lambda x, path: dp.exact(x, INPUTS),
    "release": lambda x, path: dp.release(x, np.zeros(8, int), path / "store", INPUTS),
    "open_stream": lambda x, path: dp.open_stream(x, path / "store", INPUTS),
    "audit": lambda x, path: dp.audit(x, INPUTS),
}


@pytest.mark.parametrize("way", RELEASES)
@pytest.mark.parametrize("name", OTHER_NOISE)
def test_nothing_is_released_with_other_noise_yet(name, way, tmp_path):
    with pytest.raises(dp.ReleaseError, match=f"must be one that has an exact form, got {name}"):
        RELEASES[way](OTHER_NOISE[name](), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sums_of_blocks_have_no_spectrum_to_adapt_to():
    mechanism = dp.block_sums(AVERAGE, dp.Privacy(1), CHAIN)
    with pytest.raises(ValueError, match="got the BlockMechanism 'block sums lag 0': its v has no spectrum to fit"):
        dp.adapt(mechanism, np.zeros(1000))


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (lambda: dp.adapt(MATRIX, np.zeros(8)), "its v has no spectrum to fit"),
        (lambda: evidence(MATRIX, np.zeros(8), np.zeros((1, 8))), "the grids of its values"),
    ],
)
def test_what_is_about_filters_refuses_it_likewise(run, reason):
    with pytest.raises(ValueError, match=NAMED + reason):
        run()


def test_a_log_of_events_has_no_horizon():
    with pytest.raises(ValueError, match=f"^mechanism must have no horizon{GOT}a log of events has another length"):
        name_saved([MATRIX], dp.Filter([1]), PRIVACY)


def test_its_guarantee_is_told_with_the_horizon_and_without_delta_for_laplace():
    told = " ".join(describe(MATRIX).split())
    assert "Two streams of 8 steps that differ by one event" in told
    assert "no better than (1, 1e-06)-differential privacy" in told
    assert "It ends with these steps" in told
    told = " ".join(describe(LAPLACE).split())
    assert "at most 2 events of size at most 1, at least 1 sample apart" in told
    assert "no better than (0.5, 0)-differential privacy" in told
    assert f"with Laplace noise of standard deviation {np.sqrt(2) * 8 / 0.5:.6g}" in told  # Δ₁ = 2 events in 4 levels


# --- the error of the worst step --------------------------------------------------------------------


def test_every_kind_of_mechanism_tells_the_error_of_its_worst_step():
    """The largest entry of the errors of single steps, which other tests compare with dense matrices."""
    chain, filter, horizon = CHAIN, dp.Filter([1], [1, -0.8]), dp.running_sum(30)
    over = {
        "matrix": dp.square_root(horizon, PRIVACY),
        "biased": dp.square_root(horizon, PRIVACY).with_receiver(chain, lag=2),
        "counts": dp.input_perturbation(horizon, dp.Privacy(1), noise="geometric"),
        "blocks": dp.block_sums(horizon, dp.Privacy(1), chain, length=7, lag=1),
        "constant": dp.constant(horizon, chain),
    }
    for name, x in over.items():
        assert x.worst_step_mse == pytest.approx(x.step_mse().max(), rel=1e-9), name
        assert x.worst_step_mse > 1.05 * x.predicted_mse, name
    settled = {
        "filters": dp.lmmse(filter, PRIVACY, chain, lag=1, prefilter=dp.Filter([1])),
        "other noise": dp.randomized_response(filter, dp.Privacy(1), chain),
        "blocks": dp.block_sums(filter, dp.Privacy(1), chain, length=4, lag=1),
        "constant": dp.constant(filter, chain),
    }
    for name, x in settled.items():
        assert x.worst_step_mse == pytest.approx(x.step_mse(400)[-12:].max(), rel=1e-9), name
        assert x.worst_step_mse >= x.predicted_mse, name


def test_the_worst_step_is_unknown_where_only_simulation_tells():
    feedback = dp.decision_feedback(AVERAGE, PRIVACY, CHAIN, lag=1, prefilter=dp.Filter([1]))
    assert feedback.predicted_mse is feedback.worst_step_mse is None
    assert dp.zero_forcing(AVERAGE, PRIVACY, tolerance=0.3).worst_step_mse is not None


# --- another privacy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        dp.input_perturbation(AVERAGE, dp.Privacy(1, 0.01), noise="canonical"),
        dp.input_perturbation(dp.running_sum(8), dp.Privacy(1, 0.01), noise="canonical"),
        dp.block_sums(AVERAGE, dp.Privacy(1, 0.01), CHAIN, length=2, noise="canonical"),
    ],
    ids=lambda x: x.full_name,
)
def test_a_privacy_that_the_noise_does_not_serve_is_refused_at_once(mechanism):
    """`under` takes no other noise: a design does."""
    assert mechanism.under(dp.Privacy(2, 0.01)).noise_std < mechanism.noise_std
    for privacy, why in (
        (dp.Privacy(1), "it needs a delta above 0"),
        (dp.Privacy(1, 0.01, max_change=2), "it hides a change of one unit, .*"),
    ):
        message = f"^noise must not be 'canonical' here: {why}; take 'geometric', or 'best'"
        with pytest.raises(ValueError, match=f"{message}; design it anew for this privacy$"):
            mechanism.under(privacy)

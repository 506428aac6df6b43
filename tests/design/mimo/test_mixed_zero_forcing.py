"""Zero forcing by prefilters that mix inputs, against the values of MIMO.md, closed forms, search and brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, signal

import dpfast as dp
from dpfast.design.mimo import mixed_zero_forcing

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
ROWS = [[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]]
TARGET = dp.FilterMatrix(ROWS)
TURNED = dp.FilterMatrix(list(zip(*ROWS, strict=True)))  # three outputs of two inputs
ADJACENCIES = ("one_input", "each_input_same_time")


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


def mixed(target, demand, **more):
    return dp.zero_forcing(target, demand, prefilter="general", **more)


def per_noise(mse, demand):
    return mse / demand.noise_multiplier**2


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize(("adjacency", "ideal"), [("one_input", 0.113227), ("each_input_same_time", 0.351607)])
def test_the_values_that_were_derived_by_other_programs(adjacency, ideal, tolerance):
    demand = privacy(adjacency)
    made = mixed(TARGET, demand, tolerance=tolerance)
    assert per_noise(made.ideal_mse, demand) == pytest.approx(ideal, abs=5e-7)
    assert made.lower_bound_mse == pytest.approx(made.ideal_mse, rel=1e-12)
    assert made.ideal_mse * (1 - 1e-9) <= made.predicted_mse <= made.ideal_mse * (1 + tolerance)
    assert made.predicted_mse < 0.92 * dp.zero_forcing(TARGET, demand).predicted_mse


def turning():
    """Outputs in a plane, of inputs a third of a turn apart, which oppose one another at one time."""
    turn, third = dp.Filter([0.2], [1, 0.95, 0.95**2]), 0.75**0.5
    return dp.FilterMatrix([[turn, -0.5 * turn, -0.5 * turn], [0.0, third * turn, -third * turn]])


@pytest.mark.parametrize(
    ("target", "at_once", "ideal"), [(TARGET, 0.3516070, 0.3554528), (turning(), 0.8487529, 0.8498868)]
)
def test_events_at_their_own_times_are_designed_for(target, at_once, ideal):
    """What is met from above and below needs no other program; it is above that of events at one time."""
    demand = privacy("each_input")
    made = mixed(target, demand)
    assert per_noise(made.lower_bound_mse, demand) == pytest.approx(ideal, rel=6e-5)
    assert made.lower_bound_mse <= made.predicted_mse <= made.lower_bound_mse * (1 + 1e-3)
    assert per_noise(mixed(target, privacy("each_input_same_time")).ideal_mse, demand) == pytest.approx(
        at_once, rel=1e-6
    )
    diagonal = dp.zero_forcing(target, demand)
    assert diagonal.lower_bound_mse == pytest.approx(made.lower_bound_mse, rel=1.1e-3)
    assert made.predicted_mse < 0.93 * diagonal.predicted_mse
    signs = [np.array((1, *x)) for x in itertools.product((1, -1), repeat=2)]
    g, reach = made.prefilter.impulse(900), 40
    late = np.pad(g, ((0, 0), (0, 0), (2 * reach, 0)))  # tried at times near to one another
    worst = max(
        np.linalg.norm(s[0] * late[:, 0] + s[1] * np.roll(late[:, 1], a) + s[2] * np.roll(late[:, 2], b))
        for a, b in itertools.product(range(-reach, reach + 1, 2), repeat=2)
        for s in signs
    )
    assert worst <= made.noise_std / demand.noise_multiplier * (1 + 1e-9)
    assert worst >= 0.99 * made.noise_std / demand.noise_multiplier


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("target", "channels"), [(TARGET, 2), (TURNED, 2), (dp.differences(3) * SLOW, 2)])
def test_there_is_no_distortion_in_as_few_channels_as_there_can_be(target, channels, adjacency):
    made, omega = mixed(target, privacy(adjacency)), np.linspace(0, np.pi, 300)
    assert made.prefilter.shape == (channels, target.shape[1])
    product = made.receiver.response(omega) @ made.prefilter.response(omega)
    np.testing.assert_allclose(product, target.response(omega), rtol=0, atol=1e-9)
    u = np.random.default_rng(1).standard_normal((200, target.shape[1], 400))
    error = (made.simulate(u, seed=2).estimate - target.apply(u))[..., 200:]
    of_streams = (error**2).mean(axis=-1)
    deviation = np.abs(of_streams.mean(axis=0) - made.output_mse)
    assert (deviation <= 5 * of_streams.std(axis=0) / math.sqrt(len(u))).all()


def test_one_input_and_output_are_the_scalar_design():
    demand = dp.Privacy(1, 1e-6, max_change=2.5)
    scalar, several = dp.zero_forcing(SLOW, demand), mixed(dp.FilterMatrix([[SLOW]]), demand)
    assert several.predicted_mse == pytest.approx(scalar.predicted_mse, rel=1e-10)
    assert several.ideal_mse == pytest.approx(scalar.ideal_mse, rel=1e-7)


@pytest.mark.parametrize("taps", [3, 12])
def test_the_total_of_streams_costs_what_one_stream_does(taps):
    """Where one person is in one stream, their sum is private as one stream is; with zeros of it on the circle."""
    average, demand = dp.Filter([1 / taps] * taps), privacy("one_input")
    made = mixed(dp.total(4) * average, demand)
    zeros = 2 * np.pi * np.arange(1, taps // 2 + 1) / taps
    gain = integrate.quad(
        lambda w: abs(np.exp(-1j * w * np.arange(taps)).sum()) / taps, 0, np.pi, points=zeros[zeros < np.pi], limit=200
    )
    assert per_noise(made.ideal_mse, demand) == pytest.approx((gain[0] / np.pi) ** 2, rel=1e-9)
    assert made.predicted_mse == pytest.approx(
        dp.zero_forcing(average, dp.Privacy(math.log(3), 0.05)).predicted_mse, rel=1e-9
    )


def nuclear(matrices):
    return np.linalg.svd(matrices, compute_uv=False).sum(axis=-1)


def test_a_target_in_state_space_keeps_few_states():
    whole = dp.FilterMatrix.from_state_space(*TARGET.state_space())
    made, again = (mixed(x, privacy("one_input")) for x in (TARGET, whole))
    assert again.predicted_mse == pytest.approx(made.predicted_mse, rel=1e-6)
    assert made.prefilter.n_states <= 6  # of the target one for all, and one for each of the others
    assert made.receiver.n_states <= 4


def test_static_targets_in_closed_form():
    """Gains need no filters; for the sum and the difference of two, G is a rotation."""
    made = mixed(dp.FilterMatrix([[1, 1], [1, -1]]), privacy("one_input"))
    assert made.prefilter.n_states == made.receiver.n_states == 0
    assert per_noise(made.predicted_mse, privacy("one_input")) == pytest.approx(4.0, rel=1e-9)
    same = mixed(dp.FilterMatrix([[1, 1]] * 3), privacy("each_input_same_time"))  # the sum three times
    assert per_noise(same.ideal_mse, privacy("one_input")) == pytest.approx(12.0, rel=1e-9)
    assert same.predicted_mse == pytest.approx(same.ideal_mse, rel=1e-3)
    rng = np.random.default_rng(4)
    gains = rng.standard_normal((3, 3))
    demand = privacy("one_input")
    made = mixed(dp.FilterMatrix(gains), demand)

    def bound(x):  # of a mixture of inputs, by its logarithms
        shares = np.exp(x - x.max())
        return -(nuclear(gains * np.sqrt(shares / shares.sum())) ** 2)

    found = -optimize.minimize(bound, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun
    assert per_noise(made.ideal_mse, demand) == pytest.approx(found, rel=1e-6)
    assert per_noise(made.predicted_mse, demand) == pytest.approx(found, rel=1e-3)


def random_target(seed):
    rng = np.random.default_rng(seed)
    n, p, m = rng.integers([2, 1, 2], [5, 5, 5])
    a = rng.standard_normal((n, n))
    a *= 0.8 / np.abs(np.linalg.eigvals(a)).max()
    shapes = [(n, m), (p, n), (p, m)]
    return dp.FilterMatrix.from_system(signal.dlti(a, *(rng.standard_normal(x) for x in shapes))), rng.uniform(
        0.5, 2, m
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("seed", range(4))
def test_random_systems_reach_the_bound_that_no_mechanism_passes(seed, adjacency):
    target, changes = random_target(seed)
    demand = privacy(adjacency, max_change=changes)
    made, diagonal = mixed(target, demand), dp.zero_forcing(target, demand)
    assert made.lower_bound_mse == pytest.approx(diagonal.lower_bound_mse, rel=1e-9)
    assert made.lower_bound_mse * (1 - 1e-9) <= made.predicted_mse <= made.lower_bound_mse * (1 + 1e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_search_over_short_prefilters_errs_less(adjacency):
    """Full matrices G of two taps, H = F G⁻¹ found on a grid."""
    target = dp.FilterMatrix([[1.0, dp.Filter([0.5, 0.5])], [dp.Filter([0.3, -0.3]), 0.7]])
    demand, omega = privacy(adjacency), 2 * np.pi * np.arange(64) / 64
    response, z = target.response(omega), np.exp(-1j * omega)[:, None, None]
    signs = np.array([[1, 1], [1, -1]])

    def mse(x):
        taps = x.reshape(2, 2, 2)
        products = np.einsum("ijt,ikt->jk", taps, taps)
        change = np.diag(products).max() if adjacency == "one_input" else np.diag(signs @ products @ signs).max()
        energy = (np.abs(response @ np.linalg.inv(taps[..., 0] + taps[..., 1] * z)) ** 2).sum(axis=(1, 2)).mean()
        return demand.noise_multiplier**2 * change * energy

    rng = np.random.default_rng(0)
    starts = [np.dstack([np.eye(2), np.zeros((2, 2))]) + 0.2 * rng.standard_normal((2, 2, 2)) for _ in range(3)]
    options = {"maxiter": 1500, "maxfev": 1500}
    found = min(optimize.minimize(mse, x.ravel(), method="Nelder-Mead", options=options).fun for x in starts)
    made = mixed(target, demand, tolerance=1e-4)
    assert made.lower_bound_mse <= found * (1 + 1e-9)
    assert found == pytest.approx(made.predicted_mse, rel=0.05)  # the search is a search
    assert made.predicted_mse <= found * (1 + 1e-4)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("target", [TARGET, TURNED])
def test_permuted_and_scaled_channels(target, adjacency):
    m = target.shape[1]
    order, scale = np.roll(range(m), 1), [3.0, 0.5, 2.0][:m]
    base = mixed(target, privacy(adjacency, max_change=scale))
    permuted = dp.FilterMatrix([[row[j] for j in order] for row in target.rows])
    again = mixed(permuted, privacy(adjacency, max_change=[scale[j] for j in order]))
    scaled = mixed(dp.FilterMatrix([[scale[j] * row[j] for j in range(m)] for row in target.rows]), privacy(adjacency))
    for other in (again, scaled):
        assert other.ideal_mse == pytest.approx(base.ideal_mse, rel=1e-6)
        assert other.predicted_mse == pytest.approx(base.predicted_mse, rel=1e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("target", [TARGET, TURNED])
def test_the_noise_hides_what_one_person_changes(target, adjacency):
    """The distance of what is published for adjacent inputs, in deviations of the noise, over inputs or signs."""
    changes = np.array([1, 2, 0.5])[: target.shape[1]]
    demand = privacy(adjacency, max_change=changes)
    made = mixed(target, demand)
    g = made.prefilter.impulse(500) * changes[:, None]
    signed = [np.tensordot(s, g, (0, 1)) for s in itertools.product((1, -1), repeat=len(changes))]
    worst = max(np.linalg.norm(x) for x in (np.moveaxis(g, 1, 0) if adjacency == "one_input" else signed))
    assert worst == pytest.approx(made.noise_std / demand.noise_multiplier, rel=1e-9)


def test_a_design_for_events_at_one_time_is_unsound_where_each_has_its_own():
    """By brute force over signs and delays: the squared sensitivity is 1.091 times that of equal times."""
    demand = privacy("each_input_same_time")
    made = mixed(TARGET, demand, tolerance=1e-5)
    size, delays = 2048, np.arange(-40, 41)
    spectra = np.fft.rfft(made.prefilter.impulse(size // 2), size, axis=2)
    r = np.fft.irfft(np.einsum("qiw,qjw->ijw", spectra.conj(), spectra), size)  # R_ij at each delay
    second, third = np.meshgrid(delays, delays)

    def worst(late, later):
        changes = [
            2 * (x * r[0, 1][-late] + y * r[0, 2][-later] + x * y * r[1, 2][late - later])
            for x, y in itertools.product((1, -1), repeat=2)
        ]
        return r[..., 0].trace() + np.max(changes)

    assert worst(second, third) / worst(0, 0) == pytest.approx(1.091, abs=5e-4)
    assert worst(0, 0) == pytest.approx(demand.sensitivity(made.prefilter) ** 2, rel=1e-6)
    assert worst(second, third) == pytest.approx(privacy("each_input").sensitivity(made.prefilter) ** 2, rel=1e-6)


def test_several_events_cost_their_square_and_unused_inputs_have_nothing():
    one, three = (mixed(TARGET, privacy("one_input", max_events=x)) for x in (1, 3))
    assert three.predicted_mse == pytest.approx(9 * one.predicted_mse)
    assert three.ideal_mse == pytest.approx(9 * one.ideal_mse)
    rows = [[SLOW, 0, QUICK], [QUICK, 0, 1]]
    made = mixed(dp.FilterMatrix(rows), privacy("one_input"))
    assert not made.prefilter.impulse(5)[:, 1].any()
    fewer = mixed(dp.FilterMatrix([[a, b] for a, _, b in rows]), privacy("one_input"))
    assert made.predicted_mse == pytest.approx(fewer.predicted_mse)


@pytest.mark.parametrize("rows", [[[SLOW, QUICK]] * 3, [[SLOW, QUICK, SLOW]] * 2, [[SLOW, SLOW], [QUICK, QUICK]]])
def test_targets_that_lack_a_direction_are_named(rows):
    with pytest.raises(dp.DesignError, match=r"target must have the rank 2 .*, got 1, as outputs or inputs are comb"):
        mixed(dp.FilterMatrix(rows), privacy("one_input"))


def test_a_target_that_lacks_a_direction_at_one_frequency_is_designed():
    demand = privacy("one_input")
    made = mixed(dp.FilterMatrix([[SLOW, QUICK], [QUICK, SLOW]]), demand)  # singular at 0
    assert made.predicted_mse == pytest.approx(made.ideal_mse, rel=1e-3)


def test_many_signs_are_mixed_well_enough():
    """Five inputs, slow and resonant, of which the mixture of 16 signs takes hundreds of steps."""
    rng = np.random.default_rng(1031)
    _, radius = rng.integers([1, 1, 1], [5, 6, 6]), rng.choice([0.5, 0.9, 0.98])
    a = rng.standard_normal((4, 4))
    a *= radius / np.abs(np.linalg.eigvals(a)).max()
    b, c, d = (rng.standard_normal(x) for x in ((4, 5), (4, 4), (4, 5)))
    target = dp.FilterMatrix.from_state_space(a, b, c, d * rng.choice([0, 1]))
    made = mixed(target, privacy("each_input_same_time", max_change=rng.uniform(0.5, 2, 5)))
    assert made.predicted_mse == pytest.approx(made.lower_bound_mse, rel=1e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_bound_of_many_inputs_is_one(adjacency):
    """Gains of nine inputs, of which one is large: the best G is diagonal, and its error is known."""
    gains = np.array([1.0, *[0.1] * 8])
    made = mixed(dp.FilterMatrix.diagonal(gains), privacy(adjacency))
    least = (gains**2).sum() if adjacency == "one_input" else gains.sum() ** 2
    assert per_noise(made.lower_bound_mse, privacy(adjacency)) == pytest.approx(least, rel=1e-6)
    assert per_noise(made.predicted_mse, privacy(adjacency)) == pytest.approx(least, rel=1e-3)


def test_what_cannot_be_mixed_is_named():
    with pytest.raises(ValueError, match="prefilter must be 'diagonal' for one stream, got 'general'"):
        mixed(SLOW, dp.Privacy(1, 0.05))
    with pytest.raises(ValueError, match="prefilter must be one of 'diagonal', 'separate', 'general', got 'full'"):
        dp.zero_forcing(TARGET, privacy("one_input"), prefilter="full")
    with pytest.raises(dp.DesignError, match=r"target must have at most 32 states an entry .* got 39: smooth it"):
        mixed(dp.FilterMatrix([[dp.Filter([1 / 40] * 40), SLOW]] * 2), privacy("one_input"))
    with pytest.raises(ValueError, match="adjacency must be said for 3 inputs"):
        mixed(TARGET, dp.Privacy(1, 0.05))


def test_what_takes_too_many_states_is_said(monkeypatch):
    monkeypatch.setattr(mixed_zero_forcing, "_MOST_STATES", 1)
    with pytest.warns(dp.ToleranceWarning, match=r"MSE .* above the ideal, tolerance is 1e-05: no factor of up to 2"):
        mixed(TARGET, privacy("one_input"), tolerance=1e-5)

"""Releases and streams of several inputs that one person may reach: v of the channels, estimates of the outputs."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli.main import main
from dpfast.releases.store.release_store import ReleaseStore

pytestmark = pytest.mark.filterwarnings("ignore:What was published contradicts")  # counts are not what models say

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])  # three inputs, two outputs
MODELS = [dp.ARMA([1], [1, -0.5], mean=2), dp.ARMA([1], [1, -0.5], mean=1), dp.ARMA([1], [1, -0.8], mean=3)]
INPUTS = dp.Inputs(0, 20, centre=2, n_streams=3)
U = np.random.default_rng(4).poisson(2, (3, 90))


def privacy(adjacency="one_input", **others):
    return dp.Privacy(8, 1e-3, adjacency=adjacency, **others)


@pytest.fixture(scope="module")
def plans():
    """Of as many channels as inputs, late by four steps; and of a channel alone, the total."""
    late = dp.exact(dp.lmmse(TARGET, privacy(), MODELS, lag=4), INPUTS, tolerance=0.1)
    total = dp.exact(dp.output_perturbation(dp.total(3), privacy()), INPUTS, tolerance=0.1)
    return {"late": late, "total": total}


ROWS = {"late": (3, 2), "total": (1, 1)}


@pytest.mark.parametrize("name", ROWS)
def test_a_release_is_read_back_from_its_store(plans, name, tmp_path):
    plan = plans[name]
    result = dp.release(plan, U, tmp_path / "store")
    assert result.privatized.shape == (ROWS[name][0], 90 + plan.lag)
    assert result.estimate.shape == (ROWS[name][1], 90)
    assert (plan.estimate(result.privatized)[:, plan.lag :] == result.estimate).all()
    again = dp.read_release(tmp_path / "store")
    assert (again.privatized == result.privatized).all()
    assert (again.estimate == result.estimate).all()
    assert again.guarantee.sentence == result.guarantee.sentence == plan.guarantee.sentence
    assert "steps from 0" in repr(result)
    assert repr(result).startswith("<Release of 90 ")


def test_the_noise_is_of_the_stated_deviation_on_each_channel(plans, tmp_path):
    """Of known zeros behind the filter: 3 × 2,000 draws; a variance off by 6 standard errors comes by chance 2e-9."""
    plan = plans["late"]
    zeros = np.full((3, 2000), 2)
    v = dp.release(plan, zeros, tmp_path / "store").privatized[:, plan.memory :]
    deviation = (v.astype(float) ** 2).mean(axis=1) / float(plan.sigma.variance) - 1
    assert np.abs(deviation).max() < 6 * np.sqrt(2 / v.shape[1])
    assert np.abs(np.corrcoef(v) - np.eye(3)).max() < 6 / np.sqrt(v.shape[1])


@pytest.mark.parametrize("name", ROWS)
def test_a_stream_goes_on_where_it_was_and_a_replay_is_the_same(plans, name, tmp_path):
    plan = plans[name]
    with dp.open_stream(plan, tmp_path / "store") as stream:
        first = stream.push(U[:, :40])
    with dp.open_stream(plan, tmp_path / "store", replay_steps=20) as stream:
        assert stream.position == 40
        again = stream.push(U[:, 30:60], first=30)
        assert (again.privatized[:, :10] == first.privatized[:, 30:]).all()
        with pytest.raises(ReleaseError, match=r"other inputs|differ"):
            stream.push(U[:, 50:60] + 1, first=50)
    with dp.open_stream(plan, tmp_path / "store") as stream:
        stream.push(U[:, 60:])
        stream.close()
        known = stream.read(0, 90 + plan.lag)
    assert known.privatized.shape == (ROWS[name][0], 90 + plan.lag)
    assert (known.privatized[:, :40] == first.privatized).all()
    assert (plan.estimate(known.privatized) == known.estimate).all()
    read = dp.read_release(tmp_path / "store")
    assert (read.privatized == known.privatized).all()
    assert read.estimate.shape == (ROWS[name][1], 90)


def test_a_stream_of_a_design_is_opened_again_by_the_design(tmp_path):
    design = dp.zero_forcing(dp.total(2) * SLOW, privacy())
    inputs = dp.Inputs(0, 9, n_streams=2)
    with dp.open_stream(design, tmp_path / "store", inputs) as stream:
        stream.push(U[:2, :5])
    with dp.open_stream(design, tmp_path / "store", inputs) as stream:
        assert stream.position == 5
    other = dp.zero_forcing(dp.total(2) * SLOW, privacy("each_input"))
    with pytest.raises(ReleaseError, match=r"mechanism\.privacy\.adjacency"):
        dp.open_stream(other, tmp_path / "store", inputs)


def test_old_steps_are_pruned(plans, tmp_path):
    plan = plans["late"]
    with dp.open_stream(plan, tmp_path / "store", keep_steps=10) as stream:
        for t in range(0, 90, 5):
            stream.push(U[:, t : t + 5])
        last = stream.read(80, 10)
    with dp.open_stream(plan, tmp_path / "store", keep_steps=10) as stream:
        assert (stream.read(80, 10).estimate == last.estimate).all()
        assert stream.push(U[:, :5]).estimate.shape == (2, 5)
    assert dp.read_release(tmp_path / "store").first > 0


def test_releases_of_the_same_steps_compose(plans, tmp_path):
    plan = plans["total"]
    dp.release(plan, U, tmp_path / "store")
    with pytest.raises(ReleaseError, match="released already"):
        dp.release(plan, U, tmp_path / "store")
    both = dp.release(plan, U, tmp_path / "store", compose=True)
    assert both.guarantee.shifts == (plan.shift, plan.shift)
    assert both.guarantee.epsilon > plan.guarantee.epsilon
    assert dp.release(plan, U, tmp_path / "store", first=200).guarantee.shifts == (plan.shift,)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
def test_releases_of_other_steps_compose_where_a_person_is_in_each_stream_at_a_time_of_his_own(adjacency, tmp_path):
    """Somebody may be in stream 1 while the first one runs and in stream 2 in the second: each costs most there."""
    targets = dp.FilterMatrix([[SLOW, 0.1 * SLOW]]), dp.FilterMatrix([[0.1 * SLOW, SLOW]])
    inputs = dp.Inputs(0, 20, centre=2, n_streams=2)
    one, two = (dp.exact(dp.zero_forcing(x, privacy(adjacency)), inputs, tolerance=0.1) for x in targets)
    dp.release(one, U[:2], tmp_path / "store")
    same = dp.release(one, U[:2], tmp_path / "store", first=200)
    assert same.guarantee.epsilon == one.guarantee.epsilon
    other = dp.release(two, U[:2], tmp_path / "store", first=400).guarantee
    if adjacency != "each_input":
        assert other.epsilon == two.guarantee.epsilon
        return
    # of that person, by the taps alone: the zero-concentrated cost of both
    costs = [(x.taps[:, i].astype(float) ** 2).sum() / float(x.sigma.variance) / 2 for i, x in enumerate((one, two))]
    assert sum(costs) > 1.2 * two.guarantee.zcdp_rho
    assert other.zcdp_rho >= sum(costs)
    assert other.epsilon > 1.2 * two.guarantee.epsilon
    assert other.whole


def test_releases_for_persons_of_another_reach_are_refused(plans, tmp_path):
    """Which streams one person reaches decides what two releases cost him together: nothing says it for both."""
    dp.release(plans["total"], U, tmp_path / "store")
    other = dp.exact(dp.output_perturbation(dp.total(3), privacy("each_input")), INPUTS, tolerance=0.1)
    single = dp.exact(dp.zero_forcing(SLOW, dp.Privacy(8, 1e-3)), dp.Inputs(0, 20), tolerance=0.1)
    for plan, u in (other, U), (single, U[:1]):
        with pytest.raises(ReleaseError, match="same person as others of its store"):
            dp.release(plan, u, tmp_path / "store", first=200)
        assert len(list_releases(tmp_path / "store")) == 1


def list_releases(place):
    with ReleaseStore.open(place) as store:
        return store.releases()


def test_a_ledger_adds_them_up(plans, tmp_path):
    ledger = dp.Ledger.create(tmp_path / "ledger" / "ledger.sqlite", "guests")
    dp.release(plans["late"], U, tmp_path / "store", ledger=ledger)
    (line,) = ledger.lines
    assert (line.entry.streams_per_person, line.entry.loss.shifts) == (1, (plans["late"].shift,))


def test_one_channel_a_person_is_enforced(tmp_path):
    """Person 7 is first in stream 1, and what he has in others is left out; without noise that could be seen."""
    design = dp.zero_forcing(dp.total(3) * SLOW, privacy(max_events=2))
    events = dp.Events(step=[0, 1, 2, 3, 4], stream=[1, 0, 1, 2, 1], person=[7, 7, 7, 8, 7], n_steps=30, n_streams=3)
    result = dp.release(design, events, tmp_path / "store", INPUTS, persons=dp.Persons())
    assert "at most 2 in one stream are kept, at least 1 steps apart" in result.guarantee.sentence
    with ReleaseStore.open(tmp_path / "store") as store:
        kept = sorted((stream, step) for _, stream, step in store.persons().kept)
    assert kept == [(1, 0), (1, 2), (2, 3)]


def test_events_in_each_stream_are_kept_where_a_person_may_be_in_all(tmp_path):
    design = dp.zero_forcing(dp.total(3) * SLOW, privacy("each_input"))
    events = dp.Events(step=[0, 1, 2, 3], stream=[1, 0, 1, 2], person=[7, 7, 7, 7], n_steps=30, n_streams=3)
    result = dp.release(design, events, tmp_path / "store", INPUTS, persons=dp.Persons())
    assert "at most one in each of at most 3 streams is kept" in result.guarantee.sentence
    with ReleaseStore.open(tmp_path / "store") as store:
        assert sorted((stream, step) for _, stream, step in store.persons().kept) == [(0, 1), (1, 0), (2, 3)]


def test_what_cannot_be_enforced_is_refused(tmp_path):
    events = dp.Events(step=[0], stream=[1], person=[7], n_steps=30, n_streams=3)
    for demand in privacy("each_input_same_time"), privacy(max_change=(1, 2, 1)):
        design = dp.zero_forcing(dp.total(3) * SLOW, demand)
        with pytest.raises(ReleaseError, match="persons must not be declared"):
            dp.release(design, events, tmp_path / "store", INPUTS, persons=dp.Persons())


def test_labels_of_inputs_are_not_those_of_outputs(plans, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(U.T, columns=["A", "B", "C"], index=pandas.date_range("2026-01-01", periods=90, freq="h"))
    assert isinstance(dp.release(plans["late"], frame, tmp_path / "store").estimate, np.ndarray)


def test_adapt_is_refused(plans, tmp_path):
    with pytest.raises(dp.DesignError, match="adapt must be False"):
        dp.release(plans["late"], U, tmp_path / "store", adapt=True)
    assert not Path(tmp_path / "store" / "store.sqlite").exists()


def counts_of(models, time, seed):
    """Counts whose mean and spectrum are nearly those of models, within the declared range."""
    return np.stack(
        [np.clip(np.rint(x.sample(1, time, seed=seed + j)[0]), 0, 20) for j, x in enumerate(models)]
    ).astype(int)


def test_what_is_published_is_compared_with_the_models(plans, tmp_path):
    plan, far = plans["late"], U + np.array([[0], [9], [0]])
    with pytest.warns(
        dp.ModelWarning, match=r"contradicts the models? .*: the mean of the true values of stream 2 is about 1\d"
    ) as seen:
        result = dp.release(plan, far, tmp_path / "store")
    assert "predicted_rmse_if_model_holds does not hold" in str(seen[0].message)
    assert "adapt=True" not in str(seen[0].message)  # of several streams there is none
    check = result.model_check
    assert (check.agrees, check.estimated_mse, check.contradicted_after) == (False, None, 90)
    assert "No error is estimated from what was published where streams are estimated together." in str(check)
    assert dp.read_release(tmp_path / "store").model_check.content() == check.content()
    json.dumps(check.content(), allow_nan=False)


def test_what_the_models_describe_agrees_with_them(tmp_path):
    models = [dp.ARMA([1], [1, -0.5], mean=10), dp.ARMA([1], [1, -0.5], mean=9), dp.ARMA([1], [1, -0.8], mean=8)]
    plan = dp.exact(dp.lmmse(TARGET, privacy(), models, lag=4), INPUTS, tolerance=0.1)
    check = dp.release(plan, counts_of(models, 400, 6), tmp_path / "store").model_check
    assert check.agrees is True
    assert set(check.p_values) == {"mean", "variance", "spectrum", "dependence"}


def test_a_stream_is_compared_at_doubling_steps(plans, tmp_path):
    far = U + 9
    with dp.open_stream(plans["late"], tmp_path / "store") as stream:
        stream.push(far[:, :63])
        assert stream.model_check().agrees is None
        stream.push(far[:, 63:70])
        found = stream.model_check()
        assert (found.agrees, found.contradicted_after) == (False, 64)
    with dp.open_stream(plans["late"], tmp_path / "store") as stream:
        assert stream.model_check().content() == found.content()


def test_nothing_states_an_error_that_v_contradicts(plans, tmp_path, capsys):
    with pytest.warns(dp.ModelWarning, match="contradicts"):
        result = dp.release(plans["late"], U + 9, tmp_path / "store")
    with sqlite3.connect(tmp_path / "table.sqlite") as connection:
        dp.write_table(tmp_path / "store", connection, shard="a")
        rows = connection.execute("SELECT predicted_rmse_if_model_holds FROM estimates").fetchall()
    assert set(rows) == {(None,)}
    main(["release", "--read", str(tmp_path / "store")])
    table = [x.split(",") for x in capsys.readouterr().out.splitlines() if x.startswith("1,")]
    assert {x[6] for x in table} == {""}
    dp.report(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "there is no band" in page
    assert 'class="band"' not in page
    assert "if the model holds." not in page  # no figure of the models in the first sentences


def test_the_file_of_the_guarantee_has_the_reach(plans, tmp_path):
    dp.release(plans["late"], U, tmp_path / "store")
    (file,) = (tmp_path / "store-published").glob("*guarantee*.json")
    (content,) = (x["guarantee"] for x in json.loads(file.read_text())["releases"])
    assert (content["one_event"], content["inputs"]["n_streams"]) == ("one_input", 3)


def test_all_that_shows_a_release_has_a_row_for_each_output(plans, tmp_path, capsys):
    """The report, the picture, the table of a database, and what the command reads: two outputs of three channels."""
    plan = plans["late"]
    result = dp.release(plan, counts_of(MODELS, 90, 8), tmp_path / "store")
    assert result.model_check.agrees is True
    assert result.output_rmse_if_model_holds == tuple(np.sqrt(plan.output_mse))
    dp.report(dp.read_release(tmp_path / "store"), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "output 2" in page
    assert "output 3" not in page
    with sqlite3.connect(tmp_path / "table.sqlite") as connection:
        dp.write_table(tmp_path / "store", connection, shard="a")
        rows = connection.execute("SELECT count(*), count(DISTINCT series) FROM estimates").fetchone()
    assert rows == (180, 2)
    main(["release", "--read", str(tmp_path / "store")])
    table = [x.split(",") for x in capsys.readouterr().out.splitlines() if x.startswith("1,")]
    assert len(table) == 3 * 94
    assert [x[5] == "" for x in table[:3]] == [False, False, True]
    assert float(table[1][6]) == pytest.approx(result.output_rmse_if_model_holds[1], rel=1e-5)
    assert [int(x[4]) for x in table[:3]] == result.privatized[:, 0].tolist()


def test_an_audit_is_refused(plans):
    with pytest.raises(ValueError, match="no attacks on several streams"):
        dp.audit(plans["total"])

"""Releases and streams of block sums of several inputs, each released at steps of its own."""

import sqlite3

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli.main import main
from dpfast.releases.store.release_store import ReleaseStore

pytestmark = pytest.mark.filterwarnings("ignore:What was published contradicts")  # counts are not what models say

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
MODELS = [dp.ARMA([1], [1, -0.5], mean=2), dp.ARMA([1], [1, -0.5], mean=1), dp.ARMA([1], [1, -0.8], mean=3)]
INPUTS = dp.Inputs(0, 20, n_streams=3)
U = np.random.default_rng(4).poisson(2, (3, 90))


def design(adjacency="one_input", **others):
    privacy = dp.Privacy(2, adjacency=adjacency, max_events=others.pop("max_events", 1))
    return dp.block_sums(TARGET, privacy, MODELS, length=[2, 3, 4], lag=2, **others)


@pytest.fixture(scope="module")
def plan():
    return dp.exact(design(), INPUTS)


def test_a_release_is_read_back_from_its_store(plan, tmp_path):
    result = dp.release(plan, U, tmp_path / "store")
    assert (result.privatized.shape, result.estimate.shape, result.released.shape) == ((3, 92), (2, 90), (3, 92))
    assert (plan.estimate(result.privatized, end=90)[:, 2:] == result.estimate).all()
    assert not result.privatized[~result.released].any()
    again = dp.read_release(tmp_path / "store")
    for name in "privatized", "estimate", "released":
        assert (getattr(again, name) == getattr(result, name)).all()
    assert again.guarantee.sentence == plan.guarantee.sentence
    assert again.output_rmse_if_model_holds == tuple(np.sqrt(plan.output_mse))


def test_a_stream_goes_on_where_it_was_and_a_replay_is_the_same(plan, tmp_path):
    with dp.open_stream(plan, tmp_path / "store") as stream:
        first = stream.push(U[:, :41])
    with dp.open_stream(design(), tmp_path / "store", INPUTS, replay_steps=20) as stream:
        again = stream.push(U[:, 30:60], first=30)
        assert (again.privatized[:, :11] == first.privatized[:, 30:]).all()
        stream.push(U[:, 60:])
        stream.close()
        known = stream.read(0, 92)
    assert (known.privatized[:, :41] == first.privatized).all()
    assert (plan.estimate(known.privatized, end=90) == known.estimate).all()
    with pytest.raises(ReleaseError, match=r"mechanism\.privacy\.adjacency"):
        dp.open_stream(design("each_input"), tmp_path / "store", INPUTS)


def test_the_noise_of_each_row_is_of_its_law(tmp_path):
    """Of known zeros: more than 2,000 draws a row; a variance off by 6 standard errors comes by chance 1e-8 or less."""
    plan = dp.exact(design("each_input", shares=[0.5, 0.2, 0.3]), dp.Inputs(0, 20, n_streams=3))
    result = dp.release(plan, np.zeros((3, 8000), np.int64), tmp_path / "store")
    for row, there, law in zip(result.privatized, result.released, plan.laws, strict=True):
        v = row[there].astype(float)
        kurtosis = 6.0 + 1.0 / law.variance
        assert abs((v**2).mean() / law.variance - 1) < 6 * np.sqrt((kurtosis - 1) / len(v))


def test_releases_of_other_shares_at_other_steps_compose_where_a_person_is_at_each_at_times_of_his_own(tmp_path):
    """Somebody may be in stream 1 while the first runs, and in stream 2 while the second one does."""
    first, second = (dp.exact(design("each_input", shares=x), INPUTS) for x in ([0.8, 0.1, 0.1], [0.1, 0.8, 0.1]))
    dp.release(first, U, tmp_path / "store")
    same = dp.release(first, U, tmp_path / "store", first=200)
    assert same.guarantee.epsilon == first.guarantee.epsilon
    other = dp.release(second, U, tmp_path / "store", first=400)
    worst = first.laws[0].per_step + second.laws[1].per_step
    assert other.guarantee.loss.sum_of_epsilons >= worst > 2


def test_one_channel_a_person_is_enforced(tmp_path):
    events = dp.Events(step=[0, 1, 2, 3, 4], stream=[1, 0, 1, 2, 1], person=[7, 7, 7, 8, 7], n_steps=30, n_streams=3)
    made = design(max_events=2)
    result = dp.release(made, events, tmp_path / "store", INPUTS, persons=dp.Persons())
    assert "at most 2 in one stream are kept, at least 1 steps apart" in result.guarantee.sentence
    with ReleaseStore.open(tmp_path / "store") as store:
        assert sorted((stream, step) for _, stream, step in store.persons().kept) == [(1, 0), (1, 2), (2, 3)]


def test_a_ledger_adds_them_up(plan, tmp_path):
    ledger = dp.Ledger.create(tmp_path / "ledger" / "ledger.sqlite", "guests")
    dp.release(plan, U, tmp_path / "store", ledger=ledger)
    (line,) = ledger.lines
    assert line.entry.loss == plan.guarantee.loss


def test_all_that_shows_a_release_has_a_row_for_each_output(plan, tmp_path, capsys):
    result = dp.release(plan, U, tmp_path / "store")
    dp.report(dp.read_release(tmp_path / "store"), tmp_path / "report.html")
    assert "output 2" in (tmp_path / "report.html").read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "table.sqlite") as connection:
        dp.write_table(tmp_path / "store", connection, shard="a")
        rows = connection.execute("SELECT count(*), count(DISTINCT series) FROM estimates").fetchone()
    assert rows == (180, 2)
    main(["release", "--read", str(tmp_path / "store")])
    table = [x.split(",") for x in capsys.readouterr().out.splitlines() if x.startswith("1,")]
    shown = [table[3 * t + k][4] for t in range(92) for k in range(3)]
    said = [str(result.privatized[k, t]) if result.released[k, t] else "" for t in range(92) for k in range(3)]
    assert shown == said


def test_an_audit_is_refused(plan):
    with pytest.raises(ValueError, match="no attacks on several streams"):
        dp.audit(plan)


def test_what_is_published_is_compared_with_the_models(plan, tmp_path):
    far = np.random.default_rng(5).poisson(12, (3, 600))
    with pytest.warns(
        dp.ModelWarning, match=r"contradicts the model .*: of stream 1: the mean of the true values is about 1\d"
    ):
        check = dp.release(plan, far, tmp_path / "store").model_check
    assert (check.agrees, check.contradicted_after, check.estimated_mse) == (False, 600, None)
    assert {"mean", "variance", "spectrum", "dependence"} == set(check.p_values)
    assert dp.read_release(tmp_path / "store").model_check.content() == check.content()

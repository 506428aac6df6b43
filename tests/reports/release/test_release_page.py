"""The page of a release says what its numbers say, and nothing that is private."""

import dataclasses
import hashlib
import html
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers import pages
from helpers.releases import plan_of, release_of
from helpers.seeded_noise import seed_noise

import dpfast as dp
from dpfast.privacy.composition import Loss
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.reports.release import guarantee_sections
from dpfast.reports.release.published_sections import MOST_PANELS
from dpfast.reports.release.release_page import release_page

ROOT = Path(__file__).parents[3]

COUNTS = np.random.default_rng(1).poisson(2, (2, 40))
NASTY = "<script>alert(1)</script> & '\"$x$"
DECLARED = {"period_us": 3_600_000_000, "zone": "UTC", "time_column": NASTY, "group_column": "origin"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, 1)  # v of it agrees with the model, as some hundredth of all does not
        return release_of(tmp_path_factory.mktemp("a") / "store", COUNTS)


def declared(result, **fields):
    times = np.datetime64("2013-01-01T00", "us") + np.arange(40) * np.timedelta64(1, "h")
    names = dict.fromkeys(("groups", "channels", "outputs"), ("EWR", NASTY))
    known = {"times": times, **names, "declared": DECLARED | fields}
    return dataclasses.replace(result, **known)


def read(result, **given):
    page = pages.checked(release_page(result, **given))
    return page, re.sub(r"\s+", " ", " ".join(page.text))


def test_sections_stand_in_the_order_in_which_they_are_asked_for(result):
    page, _ = read(result)
    assert page.headings == [
        "In short",
        "What is promised",
        "What was declared",
        "What was published",
        "Does the model hold?",
        "The guarantee in full",
        "What is not covered",
        "How to check this page",
    ]


def test_the_guarantee_is_there_in_words_and_in_full(result):
    _, text = read(result)
    guarantee = result.guarantee
    assert guarantee.sentence in text
    for name, value in guarantee.items().items():
        assert name in text
        assert " ".join(value.split()) in text
    assert all(x in text for x in guarantee.not_covered)


def test_it_begins_with_sentences_of_promise_error_and_model(result):
    release = dataclasses.replace(result, model_check=dataclasses.replace(result.model_check, agrees=True))
    short = read(release)[1].split("What was published agrees with the model")[0].split("this page In short ")[1]
    factor = float(re.search(r"by at most ([\d.]+): ε = 5, but for δ = 1e-06\.", short)[1])
    assert 1 <= factor / math.exp(result.guarantee.epsilon) < 1.01
    low, high = (math.sqrt(x) for x in result.model_check.mse_interval)
    interval = f"(95 % interval {low:.4g} to {high:.4g})"
    assert f"The estimates have an RMSE of {result.model_check.estimated_rmse:.4g} {interval}, as what was" in short
    assert f"; {result.predicted_rmse_if_model_holds:.4g} was predicted." in short
    constant = float(re.search(r"would have an RMSE of ([\d.]+), if the model holds", short)[1])
    variance = plan_of(dp.Privacy(5, 1e-6), 2).mechanism.model.variance
    assert constant == pytest.approx(math.sqrt(0.75 * variance), rel=1e-3)


def test_of_a_contradicted_model_it_does_not_begin_with_what_that_says_of_the_constant(result):
    check = dataclasses.replace(result.model_check, agrees=False, findings=("of a finding",))
    silent = dataclasses.replace(result.model_check, agrees=True, estimated_mse=None, mse_interval=None, band=None)
    text = read(dataclasses.replace(result, model_check=check))[1]
    assert "Publishing the mean alone, at no cost" not in text
    assert text.count("contradicts the model (test of level 0.001): of a finding.") == 1
    predicted = f"The estimates have an RMSE of {result.predicted_rmse_if_model_holds:.4g}, if the model holds."
    assert predicted in read(dataclasses.replace(result, model_check=silent))[1]


def test_odds_are_those_of_its_epsilon(result):
    _, text = read(result)
    factor = math.exp(result.guarantee.epsilon)
    (low, high) = re.search(r"1 : 10 \(9\.1 %\) ([\d.]+) % ([\d.]+) %", text).groups()
    assert float(low) / 100 == pytest.approx(1 / (1 + 10 * factor), rel=1e-2)
    assert float(high) / 100 == pytest.approx(factor / (factor + 10), rel=1e-2)
    for n, eps in result.guarantee.groups.items():
        shown = re.search(rf" {n} such ([\d.e+]+) [\d.]+ % [\d.]+ %", text)[1]
        assert eps <= float(shown) <= eps * 1.001
    assert "1 in 1,000,000" in text


def test_without_delta_bounds_hold_without_exception(result):
    terms = ReleaseTerms(Loss(pure=(Fraction(1),)), {}, "by its law", {}, {})
    pure = Guarantee.of(dp.Privacy(1), result.guarantee.inputs, terms)
    _, text = read(dataclasses.replace(result, guarantee=pure))
    assert "without exception: δ is 0" in text
    assert "What δ" not in text
    assert re.search(r" 10 such 10 0\.00453 % 99\.99547 %", text)  # a group of ten at ε = 10


def test_persons_are_named_with_their_bounds_and_spans(tmp_path):
    privacy = dp.Privacy(5, 1e-6, max_events=2, min_separation=3)
    events = dp.Events(step=[0, 5, 11], stream=[0, 1, 0], person=["ada lovelace"] * 3, n_steps=12, n_streams=2)
    release = dp.release(plan_of(privacy, 2), events, tmp_path / "store", persons=dp.Persons(span=4))
    _, text = read(release)
    assert "events kept of one person 2, at least 3 steps apart groups of these, kept of one person 1 of 2" in text
    assert "spans, in each of which this begins anew of 4 steps; 3 in this release" in text
    assert "Several people together, and one person over several spans, are protected less." in text
    shown = re.search(r"one person, in all 3 spans ([\d.]+) ", text)[1]
    epsilon = release.guarantee.all_spans.epsilon(1e-6)
    assert epsilon <= float(shown) <= 1.001 * epsilon
    assert "lovelace" not in text  # a digest may have "ada" in it
    assert "none is enforced" not in text
    assert "none is enforced: somebody may have more" in read(release_of(tmp_path / "b", COUNTS))[1]
    kept = "The true output is that of the events that the bounds of persons keep. Events beyond them are missing, so"
    assert f"What was published {kept} that estimates of all events are too low, by an amount that is private." in text


def test_the_first_sentences_count_all_spans_and_the_ledger_and_say_days(tmp_path):
    privacy = dp.Privacy(1, 1e-6, max_events=2, min_separation=3)
    events = dp.Events(step=[0], stream=[0], person=["ada"], n_steps=12, n_streams=2)
    ledger = dp.Ledger.create(tmp_path / "books" / "ledger.sqlite", "cards")
    options = {"persons": dp.Persons(span=4), "ledger": ledger}
    release = dp.release(plan_of(privacy, 2), events, tmp_path / "store", **options)
    loss = release.guarantee.all_spans.epsilon(1e-6)
    first = read(release)[1].split("this page In short ")[1].split(" The estimates have")[0]
    together = re.search(
        r"in the 3 spans of this release together change by at most ([\d.]+): ε = ([\d.]+), but", first
    )
    assert loss <= float(together[2]) <= 1.001 * loss
    assert 1 <= float(together[1]) / math.exp(loss) < 1.01
    said = "This is of the releases of this store alone; below it stands what all releases in the ledger have cost."
    assert said in first
    assert first.count("ε =") == 2  # of one span and of all, and none of the ledger
    text = read(release)[1]
    assert f"when this one was entered, the ledger said: {ledger.statement().summary}" in text
    assert "(ρ, or rho, is another measure of the same, zCDP, of which more is below)" in text
    assert "; a span is 4 steps)" in first
    text = read(dataclasses.replace(release, declared={"period_us": 6 * 3_600_000_000}))[1]
    assert "; a span is 4 steps (1 day))" in text
    assert "spans, in each of which this begins anew of 4 steps (1 day); 3 in this release" in text
    assert "events kept of one person 2, at least 3 steps apart (18 hours)" in text


def test_a_release_in_one_span_says_nothing_of_all_of_them(tmp_path):
    events = dp.Events(step=[0], stream=[0], person=["ada"], n_steps=12, n_streams=2)
    release = dp.release(plan_of(dp.Privacy(5, 1e-6), 2), events, tmp_path / "store", persons=dp.Persons(span=12))
    assert "of this release together change" not in read(release)[1]


@pytest.mark.parametrize(("n", "said"), [(1, "1 bin was missed, see missed.csv: no process"), (3, "3 bins were")])
def test_missed_bins_are_named(result, n, said):
    assert said in read(dataclasses.replace(result, missed=n))[1]
    assert "missed.csv" not in read(result)[1]


def test_the_page_lists_what_may_not_be_done_as_the_guide_does(result):
    guide = (ROOT / "docs/guides/from-a-log.md").read_text(encoding="utf-8").split("## What you may not do")[1]
    assert len(guarantee_sections._FORBIDDEN) == guide.count("\n- ")
    for words in guarantee_sections._FORBIDDEN:
        assert words in read(result)[1]


def test_without_bounds_of_persons_no_event_is_said_to_be_missing(result):
    assert "Events beyond them are missing" not in read(result)[1]


def test_errors_are_side_by_side_with_the_constant(result):
    _, text = read(result)
    rmse, explained = result.predicted_rmse_if_model_holds, result.explained_if_model_holds
    assert f"predicted, if the model holds {rmse:.4g} {math.floor(1000 * explained) / 10:.1f} %" in text
    shown = float(re.search(r"at no cost ([\d.]+) 0.0 %", text)[1])
    # the variance of (u_t + u_{t-1})/2 of an AR(1) with coefficient 1/2 is (1 + ρ)/2 of that of u
    assert shown == pytest.approx(math.sqrt(0.75 * plan_of(dp.Privacy(5, 1e-6), 2).mechanism.model.variance), rel=1e-3)
    low, high = (math.sqrt(x) for x in result.model_check.mse_interval)
    estimated = result.model_check.estimated_rmse
    assert f"estimated from what was published {estimated:.4g} ({low:.4g} … {high:.4g})" in text


def test_bands_of_groups_may_differ(result):
    check = dataclasses.replace(result.model_check, band=np.array([0.25, 4.0]))
    page, text = read(dataclasses.replace(result, model_check=check))
    assert "±0.25 to ±4, by group, about it" in text
    heard = [x["aria-label"] for x in page.all("svg") if x.get("class") == "chart"]
    assert [x.rpartition(" ")[2] for x in heard] == ["±0.25", "±4"]


def test_without_an_estimated_error_the_band_is_the_predicted_one(result):
    silent = dataclasses.replace(result.model_check, estimated_mse=None, band=None, reason="For a reason.")
    _, text = read(dataclasses.replace(result, model_check=silent))
    half = 1.96 * result.predicted_rmse_if_model_holds
    assert f"±{half:.3g} about it, 1.96 times the predicted error: if the model holds" in text
    assert "estimated from" not in text.replace("what is estimated, from", "")
    assert "For a reason." in text


def test_the_model_check_is_said_whatever_it_found(result, tmp_path):
    assert result.model_check.verdict_text() in read(result)[1]
    other = release_of(tmp_path / "store", np.full((1, 200), 15))  # where the model says 2
    assert not other.model_check.agrees
    _, text = read(other)
    assert "contradicts the model" in text
    assert "predicted, if the model holds (what was published contradicts it, see below)" in text
    assert "at no cost" not in text  # what the mean alone would err follows from the same model
    assert not re.search(r" [uv] ", text)
    short = text.split(" this page In short ")[1].split(" What is promised")[0]
    assert "contradicts the model that the design assumed, so that what it predicts does not hold" in short
    assert " v " not in short
    assert other.model_check.findings[0] in text
    assert other.model_check.error_text() in text


def test_terms_of_the_guarantee_in_full_are_explained_below_it(result):
    _, text = read(result)
    full = text.rsplit("The guarantee in full ", 1)[1].split(" What is not covered ")[0]
    for word, meaning in result.guarantee.words().items():
        assert f"{word} {meaning}" in full.split("What these words mean:")[1]
    assert "lattice" not in text


def test_where_little_is_explained_it_says_what_the_mean_would_do(result):
    rmse = result.predicted_rmse_if_model_holds
    for share, mean in ((0.19, rmse / 0.9), (-3.0, rmse / 2)):
        _, text = read(dataclasses.replace(result, explained_if_model_holds=share, constant_rmse_if_model_holds=mean))
        assert f"errs by {mean:.4g} instead of {rmse:.4g}" in text
    assert "instead of" not in read(result)[1]


def test_where_only_simulation_tells_the_error_there_is_no_band(result):
    silent = dataclasses.replace(result.model_check, estimated_mse=None, band=None)
    nothing = {"predicted_rmse_if_model_holds": None, "explained_if_model_holds": None}
    blind = dataclasses.replace(result, model_check=silent, **nothing)
    page, text = read(blind)
    assert "there is no band" in text
    assert 'class="band"' not in release_page(blind)
    assert "RMSE" not in text
    assert page.headings[3] == "What was published"


def test_times_groups_and_columns_are_named_and_escaped(result):
    page, text = read(declared(result))
    assert "40 steps (40 hours) for 2 groups, a step of 1h each, from 2013-01-01 00:00 to 2013-01-02 16:00 UTC" in text
    assert text.count(NASTY) == 2  # a group, and the column of times; of the drawing the name is heard
    assert [x["aria-label"] for x in page.all("svg") if x.get("class") == "chart"][1].startswith(
        f"Estimates of {NASTY} over"
    )
    assert "01-01 12:00" in page.text
    assert "on the local clock" in read(declared(result, zone="local"))[1]


def test_the_estimate_of_each_step_can_be_pointed_at(result):
    silent = dataclasses.replace(result.model_check, estimated_mse=None, band=None, reason="For a reason.")
    half, shown = 1.96 * result.predicted_rmse_if_model_holds, declared(result)
    text = html.unescape(release_page(dataclasses.replace(shown, model_check=silent)))
    titles = re.findall(r"<circle [^>]*><title>([^<]*)</title>", text)
    assert len(titles) == shown.estimate.size == 80
    hours = [f"2013-01-{1 + t // 24:02} {t % 24:02}:00" for t in range(40)]
    values = [f"{x:.5g} ± {half:.3g}" for x in shown.estimate.ravel()]
    assert titles == [f"{when}: {value}" for when, value in zip(hours * 2, values, strict=True)]
    uneven = dataclasses.replace(shown, times=shown.times + np.timedelta64(1_500_000, "us"))
    assert "2013-01-01 00:00:01.500000: " in release_page(uneven)
    assert "<title>step 0: " in release_page(result)


def test_the_ledger_is_stated_as_it_was(tmp_path):
    ledger = dp.Ledger.create(tmp_path / "books" / "ledger.sqlite", "<guests>", cap_epsilon=12, cap_delta=1e-5)
    first, second = (release_of(tmp_path / name, COUNTS, ledger=ledger) for name in "ab")
    for release, n in ((first, "1 entry"), (second, "2 entries"), (dp.read_release(tmp_path / "a"), "1 entry")):
        page, text = read(release)
        assert "What all releases have cost" in page.headings
        assert f"The ledger of '<guests>' has {n}." in text
        assert "left" in text.split("The cap allows")[1]
        shown = re.search(
            r"This release alone cost one event at most ε = ([\d.]+) at δ = 1e-06, and ρ = ([\d.]+) ", text
        )
        assert float(shown[1]) == pytest.approx(release.guarantee.epsilon, abs=1e-5)
        assert float(shown[2]) == pytest.approx(float(release.guarantee.zcdp_rho), rel=1e-5)
    assert str(tmp_path) not in text


def test_labels_of_the_data_do_not_matter(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS.T, columns=["a", "b"])
    labelled = dp.release(plan_of(dp.Privacy(5, 1e-6), 2), frame, tmp_path / "store")
    assert release_page(labelled) == release_page(dp.read_release(tmp_path / "store"))


def test_the_same_release_makes_the_same_bytes(result, tmp_path):
    assert release_page(result) == release_page(result)
    first = release_of(tmp_path / "store", COUNTS)
    assert release_page(dp.read_release(tmp_path / "store")) == release_page(first)


def test_the_digest_is_of_what_was_published(result):
    plain = b"".join(int(x).to_bytes(8, "little", signed=True) for stream in result.privatized for x in stream)
    assert hashlib.sha256(plain).hexdigest() == result.digest
    assert result.digest in release_page(result)


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_many_groups_are_drawn_in_part_and_it_says_so(tmp_path):
    page, text = read(release_of(tmp_path / "store", np.random.default_rng(2).poisson(2, (30, 3))))
    assert len([x for x in page.all("svg") if x.get("class") == "chart"]) == MOST_PANELS
    assert "The first 24 of 30 groups are drawn." in text


def test_a_stream_without_estimates_yet_has_a_page(tmp_path):
    with dp.open_stream(plan_of(dp.Privacy(5, 1e-6)), tmp_path / "store") as stream:
        stream.push(np.array([3]))
    assert "No step has an estimate yet." in read(dp.read_release(tmp_path / "store"))[1]


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_nothing_private_is_on_it(tmp_path):
    """Inputs far from everything that is declared, and how many were clamped, are not there."""
    plan = dp.exact(plan_of(dp.Privacy(5, 1e-6)).mechanism, dp.Inputs(0, 2**36))
    u = np.array([31_415_926_535, 27_182_818_284, 16_180_339_887])
    text = release_page(dp.release(plan, u, tmp_path / "store"))
    shown = {int(x) for x in re.findall(r"(?<![\w.])\d{7,}(?![\w.])", text.replace(",", ""))}
    assert not shown & set(u.tolist())


def test_a_band_of_block_sums_is_said_to_be_an_average(result, tmp_path):
    """Between their sums estimates err more than behind them: what is predicted is the mean."""
    counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    design = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1), counts, length=4)
    blocks = dp.release(design, np.random.default_rng(2).poisson(5, (1, 40)), tmp_path / "store", dp.Inputs(0, 20))
    for release, said in ((blocks, "steps, on the average over time."), (result, "steps. ")):
        predicted = dataclasses.replace(release.model_check, band=None)
        assert f"in 95 % of the {said}" in read(dataclasses.replace(release, model_check=predicted))[1]

"""The page of a mechanism, with figures that are known without it."""

import re

import pytest
from helpers import pages

import dpfast as dp
from dpfast.reports.mechanism_page import mechanism_page

EPSILON = dp.Privacy.from_gdp(2, 1e-6).epsilon  # noise of half the sensitivity
WHITE = [dp.ARMA([1], innovation_std=1.2), dp.ARMA([1], innovation_std=2.0)]
SLOW = dp.Filter([0.1], [1, -0.9])


def plain(m=2, adjacency="one_input", models=None, **given):
    """Inputs with noise of variance 1/4 on each, which nothing takes off."""
    same, privacy = dp.FilterMatrix.diagonal([1.0] * m), dp.Privacy(EPSILON, 1e-6, adjacency=adjacency, **given)
    return dp.ChannelsMechanism("plain <i>", same, privacy, same, same, models=models)


@pytest.fixture(scope="module")
def several():
    with pytest.MonkeyPatch.context() as patch:
        pages.render_once(patch)
        return mechanism_page(plain(models=WHITE, max_change=(1, 0.5)))


def said(text):
    return [x.strip() for x in pages.checked(text).text if x.strip()]


def rows(text):
    """Cells of the table of errors, by what they are of."""
    body = text.split('aria-label="errors">')[1].split("</table>")[0]
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in body.split("<tr>")[2:]]
    return {row[0]: row[1:] for row in cells}


def test_each_error_and_the_sum_stand_beside_those_of_the_mean(several):
    assert rows(several) == {
        "output 0": ["0.25000", "0.50000", "1.2000", "0.82639"],
        "output 1": ["0.25000", "0.50000", "2.0000", "0.93750"],
        "all outputs together": ["0.50000", "0.70711", "2.3324", "0.90809"],
    }
    found = said(several)
    assert (
        "plain <i> estimates 2 outputs without delay, with a predicted RMSE of 0.7071 of all together; publishing the "
        "mean alone errs by 2.332, so 90 % of the variance is explained." in found
    )
    assert "Output 0 errs by 0.5; publishing the mean alone errs by 1.2, so 82 % of the variance is explained." in found
    assert "Output 1 errs by 0.5; publishing the mean alone errs by 2, so 93 % of the variance is explained." in found


def test_it_says_what_one_person_may_change_and_what_is_guaranteed(several):
    found = said(several)
    assert "One event of a person is at one of the 2 inputs; 1 event at most." in found
    assert "An event changes input 1 by 0.5 at most." in found
    assert any(x.startswith("Whoever is in the data is at one of the inputs") for x in found)
    assert any("differential privacy allows" in x for x in found)
    assert any(f"ε = {EPSILON:.4g}"[:7] in x for x in found)
    page = pages.checked(several)
    assert page.headings[:5] == ["In short", "Errors", "Pictures", "What one person may change", "What is guaranteed"]
    assert [x["alt"][:19] for x in page.all("img")] == ["How loud each input", "The predicted error"]


@pytest.mark.parametrize("adjacency", ["each_input_same_time", "each_input"])
def test_other_reaches_have_other_words(adjacency, monkeypatch):
    pages.render_once(monkeypatch)
    found = said(mechanism_page(plain(adjacency=adjacency)))
    reach = {"each_input_same_time": "seen by every input at one time", "each_input": "at a time of its own at each"}
    assert any(reach[adjacency] in x for x in found)


def test_without_models_nothing_is_said_of_the_mean(monkeypatch):
    pages.render_once(monkeypatch)
    text = mechanism_page(plain(1))
    assert rows(text) == {"output 0": ["0.25000", "0.50000", "–", "–"]}
    assert "plain <i> estimates output 0 without delay, with a predicted RMSE of 0.5." in said(text)
    assert any("is not known without a model" in x for x in said(text))


def test_of_many_outputs_the_best_and_the_worst_are_named(monkeypatch):
    pages.render_once(monkeypatch)
    models = [dp.ARMA([1], innovation_std=0.5 * (i + 1)) for i in range(8)]
    found = said(mechanism_page(plain(8, models=models)))
    assert (
        "The best: output 7 errs by 0.5; publishing the mean alone errs by 4, so 98 % of the variance is explained."
        in found
    )
    assert "The worst: output 0 errs by 0.5; publishing the mean alone errs by 0.5, which is no more." in found


def test_an_input_that_is_not_published_explains_nothing(monkeypatch):
    pages.render_once(monkeypatch)
    quick = dp.Filter([0.2], [1, -0.8])
    target = dp.FilterMatrix([[SLOW, SLOW], [quick, -1 * quick]])
    quiet = dp.ARMA([0.43], [1, -0.5])
    blocks = dp.block_sums(target, dp.Privacy(0.05, adjacency="each_input"), [quiet, quiet])
    assert None in blocks.lengths
    assert "-" not in "".join(x[-1] for x in rows(mechanism_page(blocks)).values())


def test_mechanisms_of_one_stream_have_the_same_page(monkeypatch):
    pages.render_once(monkeypatch)
    made = dp.input_perturbation(dp.Filter([1.0]), dp.Privacy(EPSILON, 1e-6, max_events=2, min_separation=3))
    text = mechanism_page(made, title="title", description="lead")
    assert list(rows(text)) == ["the output"]
    assert rows(text)["the output"][:2] == ["0.50000", "0.70711"]  # twice the squared change
    found = said(text)
    assert (
        "The input, by 2 events at most, at least 3 samples apart. An event changes it at one time, by 1 at most."
        in found
    )
    assert {"title", "lead"} <= set(found)


def test_an_error_that_only_simulation_tells_is_not_made_up(monkeypatch):
    pages.render_once(monkeypatch)
    coin = dp.IndependentLevels([0, 1], [0.75, 0.25])
    made = dp.decision_feedback(SLOW, dp.Privacy(4, 1e-6), coin, lag=1)
    text = mechanism_page(made)
    assert rows(text)["the output"] == ["–", "–", "–", "–"]
    assert any("1 sample late; only simulation (dpfast.monte_carlo) tells its error." in x for x in said(text))


def test_a_fit_to_private_data_is_said_first(monkeypatch):
    pages.render_once(monkeypatch)
    fitted = dp.ARMA.fit([0.0, 1, 0, 2, 1, 0, 1, 3, 1, 0], 1)
    found = said(mechanism_page(plain(models=[fitted, WHITE[1]])))
    assert "fitted to private data" in found[1]
    blocks = dp.block_sums(dp.total(2) * SLOW, dp.Privacy(1, adjacency="one_input"), [fitted, WHITE[1]])
    assert "fitted to private data" in said(mechanism_page(blocks))[1]


def test_a_bound_is_beside_the_error(monkeypatch):
    pages.render_once(monkeypatch)
    forced = dp.zero_forcing(dp.total(2) * SLOW, dp.Privacy(EPSILON, 1e-6, adjacency="each_input"))
    more = 100 * ((forced.predicted_mse / forced.lower_bound_mse) ** 0.5 - 1)
    text = f"{more:.2g} % above a lower bound of {forced.lower_bound_mse**0.5:.4g}"
    assert any(text in x for x in said(mechanism_page(forced)))

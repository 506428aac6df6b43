import pages
import pytest

import dpfast as dp
from dpfast.studies.page import of_sweep

GRID = {
    "mechanism": ["zero_forcing", "input_perturbation"],
    "target": "exponential:0.9",
    "stream": {"<i>quiet</i>": dp.IndependentLevels([0, 1], [0.9, 0.1]), "loud & clear": dp.ARMA([1])},
    "epsilon": [0.5, 1],
    "delta": 1e-6,
}


@pytest.fixture(scope="module")
def sweep():
    return dp.sweep(GRID, seed=1, n_samples=50, width=0.2, decide="mechanism")


def test_the_page_is_whole_and_escapes_labels_and_titles(sweep):
    page = pages.checked(of_sweep(sweep, command="dpfast study 'a <b>.toml'", title="1 < 2", description="<script>"))
    said = [x.strip() for x in page.text if x.strip()]
    assert said.count("1 < 2") == 2  # of the window, and above all
    for text in ("<script>", "<i>quiet</i>", "loud & clear", "dpfast study 'a <b>.toml'", sweep.rule):
        assert text in said
    assert page.headings[:3] == ["Definition", "Results", "Who errs least"]
    assert len(page.all("tr")) >= 1 + len(sweep.points)


def test_every_picture_is_said_in_words(sweep):
    alts = [x["alt"] for x in pages.checked(of_sweep(sweep)).all("img")]
    assert alts[0].startswith("RMSE against ε for each mechanism")
    assert len(alts) == len(set(alts)) >= 3
    assert not any("rmse-over" in x or "{" in x for x in alts)


def test_a_model_fitted_to_private_data_is_said_first():
    fitted = dp.ARMA.fit([0.0, 1, 0, 2, 1, 0, 1, 3, 1, 0], 1)
    grid = {**GRID, "stream": fitted, "epsilon": 1}
    page = pages.checked(of_sweep(dp.sweep(grid, seed=1, n_samples=50, width=0.5)))
    assert "fitted to private data" in [x for x in page.text if x.strip()][1]


def test_the_page_is_written_as_a_file(sweep, tmp_path):
    dp.report(sweep, tmp_path / "new" / "page.html", title="title")
    pages.checked((tmp_path / "new" / "page.html").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=r"^sweep must be a Sweep, got 3"):
        dp.report(3, tmp_path / "page.html")
    with pytest.raises(ValueError, match=r"^title must be text"):
        dp.report(sweep, tmp_path / "page.html", title=3)

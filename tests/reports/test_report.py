import numpy as np
import pytest
from helpers import pages
from helpers.releases import release_of

import dpfast as dp
from dpfast._support.errors import DataError


def test_the_page_of_a_release_is_written_whole_or_not_at_all(tmp_path):
    result = release_of(tmp_path / "store", np.ones((1, 5), np.int64))
    file = tmp_path / "new" / "page.html"
    dp.report(result, file, title="1 < 2", description="One.\n\nTwo.")
    found = pages.checked(file.read_text(encoding="utf-8"))
    assert "1 < 2" in found.text
    assert {"One.", "Two."} <= set(found.text)
    assert [x.name for x in file.parent.iterdir()] == ["page.html"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder is there, and no regular file"):
        dp.report(result, tmp_path / "folder")


def test_what_is_no_release_and_no_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^x must be a Sweep, a mechanism or a Release, got 3"):
        dp.report(3, tmp_path / "page.html")
    result = release_of(tmp_path / "store", np.ones((1, 5), np.int64))
    for name in ("title", "description"):
        with pytest.raises(ValueError, match=rf"^{name} must be text"):
            dp.report(result, tmp_path / "page.html", **{name: 3})

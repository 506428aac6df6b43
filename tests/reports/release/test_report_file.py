import os

import numpy as np
import pytest
from helpers.releases import release_of

import dpfast as dp
from dpfast._support.errors import DataError
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.reports.release import report_file
from dpfast.reports.release.release_page import release_page

COUNTS = np.ones((1, 6), np.int64)


@pytest.fixture
def result(tmp_path):
    return release_of(tmp_path / "store", COUNTS)


def test_it_goes_over_an_earlier_page_and_over_nothing_else(result, tmp_path):
    file = tmp_path / "report.html"
    for _ in range(2):
        assert report_file.write_report(file, result) == file
        assert file.read_text(encoding="utf-8") == release_page(result)
    file.write_text("<!doctype html> of somebody else")
    with pytest.raises(DataError, match=r"report\.html is there, and is no report of a release: move it away"):
        report_file.write_report(file, result)
    assert file.read_text() == "<!doctype html> of somebody else"
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="no report of a release"):
        report_file.write_report(file, result)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_leaves_the_earlier_page(result, tmp_path, monkeypatch):
    file = report_file.write_report(tmp_path / "report.html", result)
    before = file.read_bytes()

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=r"cannot write to .*report\.html: No space left.*dpfast release --read STORE"):
        report_file.write_report(file, result)
    assert file.read_bytes() == before


def test_every_release_of_a_store_has_a_page(tmp_path):
    store, out = tmp_path / "store", tmp_path / "out"
    for first in (0, 6, 12):
        release_of(store, COUNTS, first=first)
    out.mkdir()
    paths = report_file.write_reports(out, [dp.read_release(store, n) for n in (1, 2, 3)])
    assert sorted(x.name for x in paths) == ["report-release-1.html", "report-release-2.html", "report.html"]
    assert (out / "report.html").read_text(encoding="utf-8") == release_page(dp.read_release(store, 3))
    assert "Release 2 of its store" in (out / "report-release-2.html").read_text(encoding="utf-8")


def test_pages_of_the_same_steps_are_renewed(tmp_path):
    release_of(tmp_path / "store", COUNTS)
    with ReleaseStore.open(tmp_path / "store") as store:
        file = report_file.write_store_report(store, store.releases()[0])
    before = file.read_text(encoding="utf-8")
    release_of(tmp_path / "store", COUNTS, compose=True)
    with ReleaseStore.open(tmp_path / "store") as store:
        second = store.releases()[1]
        report_file.renew_reports(store, second)
        assert file.read_text(encoding="utf-8") == before  # both have no name: the page is the second one's

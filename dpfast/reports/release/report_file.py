"""Where the page of a release is written: as a whole, and over nothing but an earlier page of a release."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import DataError
from dpfast.releases.batch import Release
from dpfast.releases.reading import read_entry
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.reports.release.release_page import GENERATOR, release_page

_MARK = f'<meta name="generator" content="{GENERATOR}">'.encode()
_HEAD = 1000  # bytes of a file in which the mark is


def report_path(out: Path, name: str | None) -> Path:
    """Return where the page of a release of a name is."""
    return out / ("report.html" if name is None else f"report-{name}.html")


def check_report_free(path: Path) -> None:
    """Refuse a place where something is that is no page of a release.

    Raises
    ------
    DataError
        Naming it.
    """
    if not os.path.lexists(path):
        return
    try:
        if not path.is_symlink() and path.is_file():
            with path.open("rb") as file:
                if _MARK in file.read(_HEAD):
                    return
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    raise DataError(f"{path} is there, and is no report of a release: move it away, or choose another folder")


def write_report(path: Path, release: Release) -> Path:
    """Write the page of a release, over an earlier one if there is one, and return its path.

    Raises
    ------
    DataError
        Where something else is there, and where it cannot be written.
    """
    check_report_free(path)
    try:
        replace_file(path, release_page(release))
    except OSError as error:
        raise DataError(
            f"cannot write to {path}: {error.strerror}; what was released is in the store: dpfast release --read STORE "
            "--out DIR writes the report elsewhere"
        ) from None
    return path


def write_store_report(store: ReleaseStore, entry: Earlier) -> Path:
    """Write the page of a release beside what its store has published, from the store alone, and return its path."""
    return write_report(report_path(store.published, entry.name), read_entry(store, entry))


def renew_reports(store: ReleaseStore, entry: Earlier) -> None:
    """Write the pages of others with steps of a release again, where they are: what they promise has changed."""
    for other in store.find_overlapping(entry.first, entry.count):
        if other.name != entry.name and report_path(store.published, other.name).exists():
            write_store_report(store, other)


def write_reports(out: Path, releases: Sequence[Release]) -> list[Path]:
    """Write the pages of all releases of a store: of those without a name the last has the plain one."""
    last = max((x.number for x in releases if x.name is None), default=0)
    names = [f"release-{x.number}" if x.name is None and x.number < last else x.name for x in releases]
    paths = [report_path(out, name) for name in names]
    for path in paths:
        check_report_free(path)
    return [write_report(path, release) for path, release in zip(paths, releases, strict=True)]

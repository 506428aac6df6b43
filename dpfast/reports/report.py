"""The public function that writes the page of a sweep, a mechanism or a release."""

from __future__ import annotations

import os

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.releases.batch import Release
from dpfast.reports.mechanism_page import mechanism_page
from dpfast.reports.release.release_page import release_page
from dpfast.reports.sweep.sweep_page import sweep_page
from dpfast.simulation.sweep.result import Sweep


def report(
    x: Sweep | Release | AnyMechanism | AnyChannels,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    description: str | None = None,
) -> None:
    """Write a page about a sweep, a mechanism or a release: one HTML file with its pictures, which loads nothing else.

    Of a sweep: its definition, tables, plots, what the figures mean, designs that failed, and versions. Of a mechanism,
    of one stream or several: the predicted error of each output beside that of publishing its mean, pictures of its
    gains, what one person may change, and the guarantee in words. Of a release, to be printed and shown to whoever must
    be answered: the guarantee in plain words with what it means for one person's odds, what was declared, the estimates
    with their band and their error, the exact guarantee with what it does not cover, and how to check the page against
    the store.

    Parameters
    ----------
    x : Sweep, mechanism or Release
        ``read_release`` gives the release of a store, also long after it was made.
    path : path-like
        The file to write, such as ``report.html``; it is written as a whole or not at all.
    title, description : str, optional
        What stands at the top of the page; empty lines part the paragraphs of a description.

    Raises
    ------
    DataError
        Where the file cannot be written.
    MissingExtraError
        Without matplotlib (extra ``plot``), for a sweep or a mechanism. The page of a release needs none.

    Notes
    -----
    *Privacy.* The pages of a sweep and of a mechanism depend on their models, and say so at the top where one was
    fitted to private data. That of a release is made from what was published, and is public.

    Examples
    --------
    >>> import pathlib, tempfile, dpfast as dp, numpy as np
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dp.report(
    ...         dp.release(mechanism, np.array([0, 2, 1]), folder + "/store", dp.Inputs(0, 20)), folder + "/x.html"
    ...     )
    ...     pathlib.Path(folder, "x.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    if not isinstance(x, Sweep | Release | AnyMechanism | AnyChannels):
        raise validation.fail("x", "a Sweep, a mechanism or a Release", x)
    for name, text in (("title", title), ("description", description)):
        if text is not None and not isinstance(text, str):
            raise validation.fail(name, "text", text)
    file = validation.path("path", path)
    folder = OutputFolder(file.parent)
    folder.add(file.name, _make_page(x, title, description))
    folder.write()


def _make_page(x: Sweep | Release | AnyMechanism | AnyChannels, title: str | None, description: str | None) -> str:
    if isinstance(x, Release):
        return release_page(x, title=title, description=description)
    if isinstance(x, Sweep):
        return sweep_page(x, title=title, description=description)
    return mechanism_page(x, title=title, description=description)

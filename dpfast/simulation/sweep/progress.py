"""The progress of a sweep that runs: a bar for people who watch, a log for those who look later.

The log is one of the standard library, named ``dpfast.studies``: INFO when designs, stages and the sweep begin and
end, WARNING when a worker dies or a design fails. No handler is added here.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Self

from dpfast._support.progress import bar_class

log = logging.getLogger("dpfast.studies")

_SMOOTHING = 0.05  # the rate is one over some twenty results, as cases do not cost the same


class Progress:
    """A bar on a terminal, if it is to be shown, and the log, which tell how far a sweep is; a context manager.

    Parameters
    ----------
    shown : bool
        Show a bar (tqdm, extra ``progress``); on what is not a terminal there is none even so.
    n_cases : int
    """

    def __init__(self, shown: bool, n_cases: int) -> None:
        self.n_cases = n_cases
        self._open = bar_class() if shown else None
        self._bar: Any = None
        self._began = time.monotonic()
        self._samples: range | None = None  # from those that were there before

    def __enter__(self) -> Self:
        log.info("sweep of %d cases", self.n_cases)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end()
        how = "finished" if kind is None else f"ended by {kind.__name__}, what is finished is kept"
        n, seconds = len(self._samples or ()), time.monotonic() - self._began
        log.info("%s: %d samples in %.1f s", how, n, seconds)

    def report_designs(self, done: int, total: int) -> None:
        """Say that so many of the designs that were missing are there."""
        if done == 0:
            log.info("designing %d mechanisms", total)
        self._show("designing", "design", done, total)
        if done == total:
            log.info("designed %d mechanisms", total)
            self._end()

    def report_failure(self, name: str, message: str) -> None:
        """Say that a case has no design, and why."""
        log.warning("no design for %s: %s", name, message)

    def report_stage(self, number: int, n_cases: int, n_samples: int) -> None:
        """Say that a stage begins, in which so many cases need so many samples more."""
        log.info("stage %d: %d cases, %d samples", number, n_cases, n_samples)

    def report_samples(self, samples_done: int, samples_expected: int, cases_done: int, widest: float | None) -> None:
        """Show counted samples, done and expected, finished cases, and the widest interval of any case, relative.

        What the first call says is done was there before, and does not count for samples/s.
        """
        first = samples_done if self._samples is None else self._samples.start
        self._samples = range(first, samples_done)
        text = f"cases {cases_done}/{self.n_cases}"
        if widest is not None:
            text += f" · widest ±{50 * widest:.2g} %"
        self._show("simulating", "sample", samples_done, samples_expected, text)

    def _show(self, title: str, unit: str, done: int, total: int, text: str = "") -> None:
        if self._open is None:
            return
        if self._bar is None:
            size = {"initial": done, "total": total, "unit": unit, "unit_scale": unit == "sample"}
            # by time alone, as results come in lumps; disable=None: unless it is a terminal
            self._bar = self._open(desc=title, **size, smoothing=_SMOOTHING, miniters=1, disable=None)
        self._bar.total = max(done, total)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

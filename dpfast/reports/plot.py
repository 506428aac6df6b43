"""The public function that draws studies, sweeps and all that has a method `plot`."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation
from dpfast.reports.objects.object_plots import draw_all_kinds
from dpfast.reports.study_dot_plot import draw_study
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.convergence import draw_convergence
from dpfast.reports.sweep.prefilter_gains import draw_gains
from dpfast.reports.sweep.rmse_curves import draw_over
from dpfast.reports.sweep.sweep_sample_paths import draw_sample_paths
from dpfast.reports.sweep.winner_map import draw_winners
from dpfast.simulation.study import Study
from dpfast.simulation.sweep.result import Sweep


def plot(x: Any, kind: str | None = None, **options: Any) -> Any:
    """Draw a sweep, a study, or a filter, model, mechanism or release, in the sizes of a paper.

    Each family of mechanisms has one style. The methods ``plot`` of all of these draw one picture, into axes of yours.

    Parameters
    ----------
    x : Sweep, Study, Filter, Toeplitz, Release, or a model or a mechanism
        What is drawn; each kind of object has its own picture.
    kind : str, optional
        For a sweep: an axis of numbers, such as "epsilon" or "lag", over which the RMSE is drawn: a line for each
        mechanism, with the band of its intervals, rings where its error was predicted; the lower bound for linear
        mechanisms with Gaussian noise (thick and yellow), beside block sums the additive bound (dashed), and the
        constant (grey dots). Panels below show the same in percent above that lower bound where nothing is below it,
        or else above the mechanism that errs least; "winners", a map of which mechanism errs least; "paths", sample
        paths on one stream; "convergence", estimates over the number of streams; of several streams "gains", of the
        prefilter for each input, a panel for each mechanism of a task. Of a study: "study", a dot with its interval for
        each mechanism. By default the first axis of numbers, or else "gains" of several streams and "paths" of one;
        "study". Of the others: None, which draws all their kinds side by side.
    **options
        Of "winners": rows and columns, the axes of the map. Of "paths": rows, a sequence of Row of one stream and
        target, and n_samples.

    Returns
    -------
    matplotlib.figure.Figure
        To be saved by its `savefig`, or shown by a notebook; pyplot knows nothing of it.

    Raises
    ------
    ValueError
        For a kind that there is none of, or options that it does not take.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Notes
    -----
    *Privacy.* Models that were fitted to private data are in all pictures of their errors.

    Examples
    --------
    >>> from dpfast import Filter, MarkovChain, Privacy, monte_carlo, zero_forcing
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = zero_forcing(Filter([1], [1, -0.9]), Privacy(epsilon=1, delta=1e-3))
    >>> figure = plot(monte_carlo(mechanism, chain, n_streams=16, n_samples=100, seed=1))
    >>> figure.axes[0].get_xlabel()
    'RMSE'
    """
    if isinstance(x, Study):
        validation.choice("kind", kind or "study", ["study"])
        _check_options("study", options, ())
        return draw_study(x)
    if not isinstance(x, Sweep):
        drawn = draw_all_kinds(x)
        if kind is not None:
            raise ValueError(f"kind must be None for all pictures of {x!r}, got {kind!r}: x.plot({kind!r}) draws one")
        _check_options("all", options, ())
        return drawn
    numeric = [axis for axis in x.axes if panels.is_numeric(x, axis)]
    of_several = any(row.outputs for row in x.rows)
    kind = (numeric or ["gains" if of_several else "paths"])[0] if kind is None else kind
    validation.choice("kind", kind, [*numeric, *(name for name in _KINDS if of_several or name != "gains")])
    draw, allowed = _KINDS.get(kind, (None, ()))
    _check_options(kind, options, allowed)
    return draw_over(x, kind) if draw is None else draw(x, **options)


_KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "winners": (draw_winners, ("rows", "columns")),
    "paths": (draw_sample_paths, ("rows", "n_samples")),
    "convergence": (draw_convergence, ()),
    "gains": (draw_gains, ()),
}


def _check_options(kind: str, options: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for name in options:
        if name not in allowed:
            meant = validation.did_you_mean(name, allowed)
            raise ValueError(f"options of {kind!r} must be {' or '.join(allowed) or 'none'}, got {name!r}{meant}")

"""Pictures of objects, which `reports` draws: the one import from below that goes up, at the first picture."""

from __future__ import annotations

import base64
import importlib
from typing import Any

from dpfast._support.errors import MissingExtraError
from dpfast._support.html_fragments import Html, escape, notebook, paragraphs


def draw(x: Any, kind: str | None, ax: Any, **options: Any) -> Any:
    """Draw a picture of an object into matplotlib axes, or into new ones, and return them.

    Parameters
    ----------
    x : object
        Of a class that has a method ``plot``.
    kind : str or None
        Which of its pictures; None for the first one.
    ax : matplotlib.axes.Axes or None
    **options
        What the picture takes besides.
    """
    return importlib.import_module("dpfast.reports.objects.object_plots").draw_kind(x, kind, ax, **options)


def small_picture(x: Any) -> Html:
    """Draw what a notebook shows of an object; without matplotlib, say how to get a picture."""
    try:
        content, words = importlib.import_module("dpfast.reports.objects.object_plots").render_small(x)
    except MissingExtraError as error:
        return paragraphs(f"No picture: {error}")
    data = base64.b64encode(content).decode()
    return Html(f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">') if content else Html("")


class Drawn:
    """An object that pictures can be drawn of: :meth:`plot` draws one, and notebooks show all of them, small."""

    __slots__ = ()

    def plot(self, kind: str | None = None, *, ax: Any = None, period: str | None = None) -> Any:
        """Draw a picture of this object, such as a gain over frequency, or the error of each step.

        Parameters
        ----------
        kind : str, optional
            Which picture; by default the first that there is:

            - of filters, also matrices of them: "gain", over frequency, in dB; of a single one also "impulse";
            - of :class:`~dpfast.Toeplitz`: "impulse", the coefficients;
            - of models: "spectrum", the power density over frequency; "path", a simulated stream;
            - of mechanisms: "gain", of prefilter, receiver and both beside the target, in dB; "errors", where noise and
              distortion are over frequency; "steps", the RMSE of each step from the start, or of a cycle of blocks;
              "path", a simulated stream with its estimate. Of each mechanism those that are known;
            - of mechanisms of several streams: "gain", of filters: how loud each input is in what is published, in dB
              above the noise; "outputs", the predicted RMSE of each output and, with models, that of its mean.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default new axes of pyplot.
        period : str, optional
            The time between samples, such as "5min": frequencies are then in cycles per hour, day or minute, and times
            in these units.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            For a kind that there is none of.
        MissingExtraError
            Without matplotlib (extra ``plot``).

        Examples
        --------
        >>> import dpfast as dp
        >>> from matplotlib.figure import Figure
        >>> target = dp.Filter([1], [1, -0.9])
        >>> target.plot(ax=Figure().subplots(), period="5min").get_xlabel()
        'frequency (cycles per hour)'
        >>> dp.ARMA([1], [1, -0.5], mean=2.0).plot(ax=Figure().subplots()).get_ylabel()
        'power density'
        >>> dp.zero_forcing(target, dp.Privacy(1, 1e-6)).plot("steps", ax=Figure().subplots()).get_ylabel()
        'RMSE'
        """
        return draw(self, kind, ax, period=period)

    def _repr_html_(self) -> str:
        return notebook(paragraphs(repr(self)), small_picture(self))

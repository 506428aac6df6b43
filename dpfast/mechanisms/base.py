"""What all mechanisms are: a name, a target, a guarantee, and inputs that came from somewhere."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

from dpfast._support import html_fragments as html
from dpfast._support import plotting, validation
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array
from dpfast.mechanisms.best_choice import HasChoice
from dpfast.mechanisms.bound import BoundTerms, additive_bound_of, load_bounds
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy, check_privacy
from dpfast.privacy.provenance import FITTED, Provenance, check_declared, fitted_inputs, merge_declared
from dpfast.signals.model import Model
from dpfast.signals.output_variance import explained_share, output_variance

Option = float | int | str | None
NO_EXACT_FORM = (
    "there is no exact release of such noise yet, and simulate() is for studies and protects nobody. Release a design "
    "with Gaussian noise and a delta above 0, such as optimal or zero_forcing"
)
NO_EXACT_DRAW = "cannot be drawn exactly so far, and simulate() is for studies and protects nobody: design it"

OVER_HORIZON = " It ends with these steps: who is in a further run of it pays again."
STUDIES_ALONE = " Its simulation is for studies; there is no exact release of it."


class GuaranteeTerms(NamedTuple):
    """Words that are particular to the guarantee of a kind of mechanism, for its description.

    Attributes
    ----------
    streams : str
        What is told apart.
    noise : str
        What is drawn anew.
    delta : float
    ending : str
        What holds besides.
    chance : str
        What is drawn, where it is no additive noise.
    """

    streams: str
    noise: str
    delta: float
    ending: str = ""
    chance: str = ""


class Magnitudes(NamedTuple):
    """Magnitudes over frequency of the filters of a mechanism: |G| for G of unit norm, and |H| of that G, if linear."""

    prefilter: Array
    receiver: Array | None


class MechanismBase(HasChoice, Drawn, abc.ABC):
    """A result of a design function: a frozen dataclass that knows where its inputs came from."""

    name: str
    target: Any
    privacy: Privacy
    model: Model | None
    options: tuple[tuple[str, Option], ...]
    declared: tuple[tuple[str, Provenance], ...]
    of_filters: ClassVar[bool] = False  # a prefilter and a receiver make it
    sees_data: ClassVar[bool] = True  # the constant does not: studies and reports take it for the reference

    def __post_init__(self) -> None:
        validation.instance("name", self.name, str, "text")
        check_privacy(self.privacy)
        # It stays when dataclasses.replace puts another model in the place of a fitted one
        kept = dict(self.declared) | dict.fromkeys(fitted_inputs(self.sources), FITTED)
        object.__setattr__(self, "declared", tuple(kept.items()))

    @property
    def sources(self) -> Mapping[str, Provenance]:
        """The source of every input of the design: "public", "assumed" or "fitted-from-private"; read-only.

        A choice made by looking at private data, such as a tolerance or the order of a fit, breaks the guarantee as
        much as a fit does: say so by :meth:`with_sources`. What is not said is "assumed"; what a model brings has the
        source of the model.
        """
        inputs = ["target", *ONE_STREAM_FIELDS, *(name for name, _ in self.options)]
        implied: dict[str, Provenance] = dict.fromkeys(inputs, "assumed")
        if self.model is not None:
            implied |= dict.fromkeys(["model", "mean"], self.model.source)
            if self.model.levels is not None:
                implied["levels"] = self.model.source
            if getattr(self.model, "fitted_order", None) is not None:
                implied["order"] = "assumed"
        return merge_declared(implied, dict(self.declared))

    def with_sources(self, **sources: Provenance) -> Self:
        """Return the same mechanism, with what is known of where its inputs come from.

        Parameters
        ----------
        **sources : {"public", "assumed", "fitted-from-private"}
            By the names in `sources`.

        Raises
        ------
        ValueError
            For a name or a word that there is none of, and for an input that was fitted to private data and is now
            said to be something else.

        Examples
        --------
        >>> from dpfast import Filter, Privacy, input_perturbation
        >>> mechanism = input_perturbation(Filter([1, 1]), Privacy(1, 1e-6)).with_sources(epsilon="public")
        >>> mechanism.sources["epsilon"], mechanism.sources["target"]
        ('public', 'assumed')
        """
        check_declared(self.sources, sources)
        same: Any = self  # a dataclass, as all of these are
        changed: Self = replace(same, declared=tuple((dict(self.declared) | sources).items()))
        return changed

    def under(self, privacy: Privacy) -> Self:
        """Return the same mechanism under another privacy, its noise calibrated anew.

        Raises
        ------
        ValueError
            Where noise of its kind does not serve that privacy.
        """
        if privacy == self.privacy:
            return self
        same: Any = self
        changed: Any = replace(same, privacy=privacy, **self._without_figures())
        try:
            _ = changed.noise_std  # an error here, and not when it is first used
        except ValueError as error:
            raise ValueError(f"{error}; design it anew for this privacy") from None
        made: Self = changed
        return made

    def _without_figures(self) -> dict[str, None]:
        """Return the figures that do not hold under another privacy, as arguments that leave them out."""
        return {"ideal_mse": None, "lower_bound_mse": None}

    @property
    @abc.abstractmethod
    def horizon(self) -> int | None:
        """The steps that it is made for; None without an end."""

    @property
    @abc.abstractmethod
    def lag(self) -> int | None:
        """The samples by which the estimate is late; None where it needs the whole signal."""

    @abc.abstractmethod
    def settling_time(self, amplitude: float) -> int:
        """Count the samples until a start from rest has decayed to an amplitude; none over a horizon."""

    @abc.abstractmethod
    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead; nothing where it can."""

    @property
    def input_lattices(self) -> tuple[Lattice, ...]:
        """The lattice on which noise is drawn for inputs; none where the unit of these does not matter."""
        of_law = getattr(getattr(self, "_law", None), "lattice", None)
        lattice: Lattice | None = getattr(self, "lattice", of_law)
        return () if lattice is None else (lattice,)

    @property
    def exact_kind(self) -> str:
        """Name the kind of the exact form that a release runs: of filters, unless inputs have other noise."""
        return str(getattr(getattr(self, "noise", None), "exact_kind", "filters"))

    @property
    def full_name(self) -> str:
        """Name its kind and itself, for messages."""
        return f"the {type(self).__name__} {self.name!r}"

    @abc.abstractmethod
    def sizes(self) -> tuple[str, str]:
        """Say how large what makes v is, and what makes the estimate of it."""

    def linear_channel(self) -> LinearChannel | None:
        """Return what v goes through and the linear receiver behind it; None where it is not of such filters."""
        return None

    def magnitudes(self, omega: Array) -> Magnitudes | None:
        """Return |G| and |H| over frequency; None where no filters make v and the estimate."""
        return None

    @property
    def predicted_noise_mse(self) -> float | None:
        """The part of `predicted_mse` that is of the noise; None where the parts are not told."""
        return None

    @property
    def predicted_distortion_mse(self) -> float | None:
        """The part of `predicted_mse` that is there without noise; None where the parts are not told."""
        return None

    @property
    def has_gaussian_bound(self) -> bool:
        """Tell whether lower bounds for linear mechanisms with Gaussian noise hold for it."""
        return False

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to this kind of mechanism for bounds of errors: nothing, unless the kind says more."""
        return BoundTerms(self.lag)

    @functools.cached_property
    def additive_bound_mse(self) -> float:
        """The MSE that nothing goes below which adds noise, of any law, and filters linearly: :func:`additive_bound`.

        It is for the target, privacy, model and lag of this mechanism.

        Raises
        ------
        DesignError
            For mechanisms that it does not hold for, which names what does; :func:`bounds_of` has that.
        """
        load_bounds()
        return additive_bound_of(self).mse

    def control_mse(self, model: Model, burn_in: int, n: int) -> float | None:
        """Return the exact MSE of a linear receiver behind a posterior mean, over n steps behind a burn-in.

        It controls the simulation; None where there is none, and where the streams are not of the model of the design.
        """
        return None

    @abc.abstractmethod
    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee of this kind of mechanism."""

    @abc.abstractmethod
    def predict_first(self, n: int, model: Model) -> float | None:
        """Return the MSE over the first n steps from rest, on a model; None where only simulation tells."""

    def over_first(self, n: int) -> Any:
        """Return what a study of n steps from the start runs: itself, but for what needs to know the steps."""
        return self

    @property
    @abc.abstractmethod
    def predicted_mse(self) -> float | None:
        """The MSE of what runs, on the model of the design; None where only simulation tells."""

    @property
    def worst_step_mse(self) -> float | None:
        """The largest MSE of a step, on the model of the design; None where only simulation tells.

        Filters have the same error in every step once they have settled, which is `predicted_mse`; block sums have one
        for each step of a cycle; over a horizon it is the largest of :meth:`step_mse`.
        """
        return self.predicted_mse

    @property
    @abc.abstractmethod
    def ideal_mse(self) -> float | None:
        """The MSE by the formula of the family; None where there is none."""

    @property
    def ideal_rmse(self) -> float | None:
        """The root of `ideal_mse`."""
        return _root(self.ideal_mse)

    @property
    def predicted_rmse(self) -> float | None:
        """The root of `predicted_mse`."""
        return _root(self.predicted_mse)

    @functools.cached_property
    def explained(self) -> float | None:
        """The share of the variance of the true output that the estimate explains, under the model of the design.

        It is 1 - predicted MSE/variance, and None without a model or a prediction: 1 for an estimate without error, 0
        for one as good as publishing the mean (:func:`constant`), and below 0 for a worse one. Over a horizon both are
        means over its steps.
        """
        return None if self.predicted_mse is None else explained_share(self.predicted_mse, self._true_variance)

    @functools.cached_property
    def _true_variance(self) -> float | None:
        """The variance of the true output under the model, which is what publishing the mean alone errs by."""
        return None if self.model is None else output_variance(self.target, self.model)

    def summary(self) -> str:
        """Describe the mechanism in a few lines for people."""
        return "\n".join([self._title, *(f"  {key:<15} {value}" for key, value in self._all_facts().items())])

    def _repr_html_(self) -> str:
        facts = html.facts(self._all_facts(), caption=self._title)
        return html.notebook(facts, plotting.small_picture(self))

    @abc.abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what a kind of mechanism says of itself, by name."""

    def _all_facts(self) -> dict[str, str]:
        found = {"privacy": self._promise_text(), **self._facts()}
        if self.explained is not None:
            found["explained"] = f"{self.explained:.1%} of the variance of the true output{self._beside()}"
        if private := fitted_inputs(self.sources):
            found["not for release"] = f"fitted from private data: {', '.join(private)}"
        return found

    def _beside(self) -> str:
        """Say what the constant errs by, beside which every error stands."""
        constant = _root(self._true_variance)
        return "" if constant is None else f"; the constant errs by {constant:.6g}"

    def _promise_text(self) -> str:
        """Say what the noise is calibrated to."""
        privacy = self.privacy
        how = f"{privacy.calibration} calibration, noise multiplier {privacy.noise_multiplier:.6g}"
        return f"epsilon {privacy.epsilon:.6g}, delta {privacy.delta:.3g} ({how})"

    @property
    def _title(self) -> str:
        """The name in one line, which forges no others."""
        return "".join(x if x.isprintable() else repr(x)[1:-1] for x in self.name)


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)


def figure_text(value: float | None) -> str:
    """Write a figure in six digits, or a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"

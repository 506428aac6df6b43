"""What mechanisms of several streams have in common: outputs together and apart, predicted on models, simulated."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import compiled_channels, simulation
from dpfast._kernels.state_space_pass import StateSpace
from dpfast._support import html_fragments as html
from dpfast._support import plotting, thread_count, validation
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.best_choice import HasChoice
from dpfast.mechanisms.mechanism import Paths
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.channel_models import ChannelModels
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_MOST_OUTPUTS = 8  # whose errors a summary has in one line
_REACH = {
    None: "is at the one input",
    "one_input": "is at one of the {} inputs",
    "each_input_same_time": "may be at all {} inputs, at the same time",
    "each_input": "may be at all {} inputs, at a time of its own at each",
}


class ChannelsBase(HasChoice, Drawn, abc.ABC):
    """A mechanism of m inputs and p outputs, whose errors are those of each output, and of all together."""

    name: str
    target: FilterMatrix
    privacy: Privacy
    lag: int
    options: tuple[tuple[str, Option], ...]
    models: ChannelModels | None

    @property
    @abc.abstractmethod
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,)."""

    @property
    def predicted_mse(self) -> float:
        """The error of all outputs together: the sum of `output_mse`."""
        return float(self.output_mse.sum())

    @property
    def predicted_rmse(self) -> float:
        """The root of `predicted_mse`."""
        return math.sqrt(self.predicted_mse)

    @property
    def sources(self) -> Mapping[str, Provenance]:
        """The source of every input of the design: what models bring has theirs, all else is "assumed"."""
        names = ["target", *(x.name for x in fields(Privacy)), *(name for name, _ in self.options)]
        known: dict[str, Provenance] = dict.fromkeys(names, "assumed")
        if isinstance(self.models, VectorARMA):
            return known | {"models": self.models.source}
        return known | {f"models[{j}]": x.source for j, x in enumerate(self.models or ())}

    @abc.abstractmethod
    def predict_outputs(self, models: Sequence[Model] | VectorARMA) -> Array | None:
        """Return the MSE of each output on other streams, (p,); None where only simulation tells."""

    @abc.abstractmethod
    def predict_first_outputs(self, n: int, models: ChannelModels) -> Array | None:
        """Return the MSE of each output over the first n steps from rest, (p,); None where only simulation tells."""

    def predict(self, models: Sequence[Model] | VectorARMA) -> float | None:
        """Return the MSE of all outputs together on other streams: the sum of :meth:`predict_outputs`.

        Parameters
        ----------
        models : sequence of Model, or VectorARMA
            A model for each input, which are independent then, or one of all.

        Returns
        -------
        float or None
            None where only simulation tells; :meth:`predict_outputs` says where that is.
        """
        found = self.predict_outputs(models)
        return None if found is None else float(found.sum())

    @property
    def input_lattices(self) -> tuple[Lattice, ...]:
        """The lattices on which noise is drawn for inputs; none where the unit of these does not matter."""
        return ()

    @abc.abstractmethod
    def release_hindrance(self) -> str:
        """Say why it has no exact form, and what to do; nothing where it has one."""

    @abc.abstractmethod
    def settling_time(self, amplitude: float) -> int:
        """Count the samples until a start from rest has decayed to an amplitude."""

    @abc.abstractmethod
    def compiled(self) -> compiled_channels.AnyCompiledChannels:
        """Return the compiled form, which studies run."""

    def _published(self, signals: Array) -> Array:
        """Return what is published (streams, channels, time), of what the compiled form made."""
        return signals

    # --- words ------------------------------------------------------------------------------------

    @property
    def one_person(self) -> str:
        """The changes that one person may make, in words."""
        reach, n = _REACH[self.privacy.adjacency].format(self.target.shape[1]), self.privacy.max_events
        return f"one event of a person {reach}; {count_text(n, 'event')} at most"

    def summary(self) -> str:
        """Describe the mechanism in a few lines for people.

        Examples
        --------
        >>> import dpfast as dp
        >>> privacy = dp.Privacy(1, 1e-6, adjacency="one_input")
        >>> print(dp.input_perturbation(dp.total(2), privacy).summary())
        input perturbation
          privacy         epsilon 1, delta 1e-06 (exact calibration, noise multiplier 4.22468)
          one person      one event of a person is at one of the 2 inputs; 1 event at most
          target          1 output of 2 inputs
          prefilter       2 channels, 0 states
          noise           standard deviation 4.22468 on each channel
          error           MSE 35.6958 of all outputs together
          lower bound     MSE 17.8479 without distortion, for any prefilter
        """
        return "\n".join([self.name, *(f"  {key:<15} {value}" for key, value in self._all_facts().items())])

    def _repr_html_(self) -> str:
        facts = html.facts(self._all_facts(), caption=self.name)
        return html.notebook(facts, plotting.small_picture(self))

    def _all_facts(self) -> dict[str, str]:
        told = {"privacy": self._promise_text(), "one person": self.one_person, **self._facts()}
        if self.models is not None:
            of_constant = output_variances(self.target, self.models).sum()
            told["constant"] = f"MSE {of_constant:.6g} of all outputs together, by publishing the means alone"
        if 1 < self.target.shape[0] <= _MOST_OUTPUTS:
            told["each output"] = "RMSE " + ", ".join(f"{x:.4g}" for x in np.sqrt(self.output_mse))
        return told

    @abc.abstractmethod
    def _promise_text(self) -> str:
        """Say what is promised."""

    @abc.abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what a kind of mechanism says of itself, by name."""

    @property
    def full_name(self) -> str:
        """Name its kind and itself, for messages."""
        return f"the {type(self).__name__} {self.name!r}"

    def simulate(self, u: ArrayLike, *, seed: Any, n_threads: int | None = None) -> Paths:
        """Run the mechanism on given inputs, from rest, with seeded noise: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., m, time)
            Inputs: finite numbers.
        seed : int or numpy.random.Generator
            The streams i (in C order of the first axes) get noise that depends on (seed, i) alone.
        n_threads : int, optional
            At most so many, the caller's included; they do not change the result. By default as many as the environment
            variable ``DPFAST_NUM_THREADS`` says, or else one for every processor that the process may use.

        Returns
        -------
        Paths
            `privatized` v (..., q, time), of block sums (..., m, time) about their mean, NaN where none is released;
            `estimate` (..., p, time), which at t is of the output at t - lag. There are no decisions.

        Raises
        ------
        ValueError
            For inputs of another shape.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.

        Examples
        --------
        >>> import dpfast as dp
        >>> mechanism = dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-6, adjacency="one_input"))
        >>> mechanism.simulate([[1, 2, 3], [4, 5, 6]], seed=1).estimate.shape
        (1, 3)
        """
        x = self.target.checked(u)
        drawn, n_threads = validation.seed(seed), thread_count.n_threads(n_threads)
        n_streams, p = math.prod(x.shape[:-2]), self.target.shape[0]
        streams = np.moveaxis(x.reshape(n_streams, *x.shape[-2:]), 1, 0)
        made = np.moveaxis(simulation.simulate_channels(self.compiled(), streams, drawn, n_threads), 0, 1)
        parts = self._published(made[:, :-p]), made[:, -p:]
        v, estimate = (y.reshape(*x.shape[:-2], *y.shape[1:]) for y in parts)
        return Paths(v, estimate, None, self.lag)


def count_text(n: int, noun: str) -> str:
    """Write how many there are of something."""
    return f"{n} {noun}{'s' * (n != 1)}"


def compile_system(system: FilterMatrix) -> compiled_channels.CompiledSystem:
    """Return the state space of what has one, or the factors of the entries; None for those that are zero."""
    if system.shares_states:
        return StateSpace(*system.state_space())
    return tuple(tuple(x.factors if x.b.any() else None for x in row) for row in system.rows)

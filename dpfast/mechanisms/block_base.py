"""What all mechanisms of block sums are: of whole units, and simulated alike."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import compiled_mechanisms, simulation
from dpfast._support import thread_count, validation
from dpfast._support.dataframes import unwrap
from dpfast._support.validation import Array
from dpfast.mechanisms.base import NO_EXACT_FORM, OVER_HORIZON, STUDIES_ALONE, MechanismBase
from dpfast.mechanisms.mechanism import Paths
from dpfast.privacy.lattice import Lattice


class BlockMechanismBase(MechanismBase):
    """A mechanism that publishes sums of blocks, in units, with noise on the integers, and estimates from them."""

    @property
    @abc.abstractmethod
    def lattice(self) -> Lattice:
        """The unit that inputs are whole multiples of, or are rounded to, and the largest change in units."""

    @property
    @abc.abstractmethod
    def lag(self) -> int:
        """The samples by which the estimate is late."""

    @property
    def horizon(self) -> int | None:
        """The steps that it is made for; None without an end."""
        steps: int | None = self.target.horizon
        return steps

    def _without_figures(self) -> dict[str, None]:
        """Return nothing, as all figures are computed from what runs."""
        return {}

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead."""
        return NO_EXACT_FORM

    @abc.abstractmethod
    def compiled(self) -> compiled_mechanisms.CompiledBlockMechanism | compiled_mechanisms.CompiledAdaptiveMechanism:
        """Return the compiled form, which studies run."""

    def _mark_unreleased(self, released: list[Array]) -> None:
        """Put NaN where a sum of a level is not released; nothing to do where that is so already."""

    def simulate(self, u: ArrayLike, *, seed: Any, n_threads: int | None = None) -> Paths:
        """Run the mechanism on given inputs, with seeded noise: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., time), or Series, DataFrame or DataArray
            Finite numbers; one stream may be 1-D. Rows of a pandas DataFrame are times and columns streams; an xarray
            DataArray has a dimension "time". Times must be equally spaced. Over a horizon, as many as it has steps.
        seed : int or numpy.random.Generator
            Stream i (in C order) gets noise that depends on (seed, i) alone.
        n_threads : int, optional
            At most so many; they do not change the result.

        Returns
        -------
        Paths
            The estimate is of the shape of u, and of its kind, with its labels. ``privatized`` is an array of that
            shape, of several levels (levels, ..., time), about the mean: NaN where nothing is released, which is at
            times of its own in each stream where blocks react.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point. Inputs that are no multiples of the unit are
        summed as they are, where they are not rounded to it; the guarantee is for those on it.
        """
        values, wrap = unwrap("u", u)
        x = validation.samples("u", values)
        if self.horizon is not None and x.shape[-1] != self.horizon:
            raise ValueError(
                f"u must have the horizon's {self.horizon} steps along its last axis, got {x.shape[-1]}: give as many, "
                "or design for another horizon"
            )
        seed, n_threads = validation.seed(seed), thread_count.n_threads(n_threads)
        streams = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        *released, estimate = simulation.simulate(self.compiled(), streams, seed, n_threads)
        self._mark_unreleased(released)
        v = np.stack(released).reshape(-1, *x.shape) if len(released) > 1 else released[0].reshape(x.shape)
        return Paths(v, wrap(estimate.reshape(x.shape)), None, self.lag)

    # --- words ------------------------------------------------------------------------------------

    def _streams_text(self) -> str:
        """Say what the guarantee tells apart."""
        return "streams" if self.horizon is None else f"streams of {self.horizon} steps"

    def _condition_text(self) -> str:
        """Say what the guarantee holds for."""
        studies = STUDIES_ALONE if self.release_hindrance() else ""
        return self.lattice.condition + ("" if self.horizon is None else OVER_HORIZON + studies)

    def _horizon_facts(self) -> dict[str, str]:
        """Return the horizon as a fact, if there is one."""
        return {} if self.horizon is None else {"horizon": f"{self.horizon} steps"}

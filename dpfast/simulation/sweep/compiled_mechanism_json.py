"""The JSON that stores keep of what the simulation runs: tuples are lists that begin with their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast._kernels import compiled_channels, compiled_mechanisms, compiled_receivers
from dpfast._kernels.equalizer import Equalizer
from dpfast._kernels.factors import Factors
from dpfast._kernels.partition import Partition
from dpfast._kernels.posterior import BlockTable, PosteriorFilter
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.shared_draws import SharedTable
from dpfast._kernels.state_space_pass import StateSpace
from dpfast._kernels.tree_draws import TreeTable
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.growing_noise import GrowingReconstruction, GrowingStrategy
from dpfast.mechanisms.operators.k_ary_trees import CausalTree, TreeLeastSquares
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.mechanisms.operators.sparse_decoder import SparseDecoder
from dpfast.mechanisms.operators.trees import DecayedPrefixes, TreeEstimator
from dpfast.simulation.mixed_study import AnyCompiledMechanism

AnyCompiled = AnyCompiledMechanism | compiled_channels.AnyCompiledChannels  # of one stream, or of several


def compiled_content(x: Any) -> Any:
    """Write what the simulation runs of a mechanism in lists, numbers and words, which JSON keeps to the bit."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if not isinstance(x, tuple):
        return x
    n_first = _N_FIRST.get(type(x), len(x))
    added = x[n_first:] if x[n_first:] != tuple(getattr(x, "_field_defaults", {}).values()) else ()
    return [_NAME_OF[type(x)], *map(compiled_content, (*x[:n_first], *added))]


def read_compiled(x: Any) -> Any:
    """Read the compiled mechanism that :func:`compiled_content` has written."""
    if not isinstance(x, list):
        return x
    if x and isinstance(x[0], str):
        return _READ[x[0]](*map(read_compiled, x[1:]))
    return np.array(x, dtype=np.float64)


def _read_factors(taps: Any, sections: Any, recursion: Any) -> Factors:
    return Factors(taps, sections.reshape(-1, 6), recursion)  # also where there are none


def _read_state_space(a: Any, b: Any, c: Any, d: Any) -> StateSpace:
    n, (p, m) = len(a), d.shape
    return StateSpace(a.reshape(n, n), b.reshape(n, m), c.reshape(p, n), d)  # also where there are no states


# What compiled mechanisms are made of, by the names that stores have; a class may be renamed, its name in stores not.
_KINDS: dict[str, type[Any]] = {
    "Link": compiled_mechanisms.CompiledMechanism,
    "LinearReceiver": compiled_receivers.CompiledLinearReceiver,
    "SmootherReceiver": compiled_receivers.CompiledSmoother,
    "FeedbackReceiver": compiled_receivers.CompiledDecisionFeedback,
    "Equalizer": Equalizer,
    "Factors": Factors,
    "MatrixLink": CompiledMatrixMechanism,
    "Convolution": Convolution,
    "Dense": Dense,
    "Sparse": Sparse,
    "BufferedToeplitz": BufferedToeplitz,
    "DecayedPrefixes": DecayedPrefixes,
    "TreeEstimator": TreeEstimator,
    "SparseDecoder": SparseDecoder,
    "BlockLink": compiled_mechanisms.CompiledBlockMechanism,
    "LatticeLink": compiled_mechanisms.CompiledLatticeMechanism,
    "LaplaceLink": compiled_mechanisms.CompiledLaplaceMechanism,
    "ResponseLink": compiled_mechanisms.CompiledResponseMechanism,
    "Block": compiled_mechanisms.CompiledBlock,
    "SharedNoise": SharedTable,
    "TreeNoise": TreeTable,
    "KalmanReceiver": compiled_receivers.CompiledPeriodicKalman,
    "Response": TwoLevelResponse,
    "PosteriorReceiver": compiled_receivers.CompiledPosterior,
    "Posterior": PosteriorFilter,
    "PosteriorTable": BlockTable,
    "AdaptiveLink": compiled_mechanisms.CompiledAdaptiveMechanism,
    "FollowerReceiver": compiled_receivers.CompiledFollower,
    "Partition": Partition,
    "CausalTree": CausalTree,
    "TreeLeastSquares": TreeLeastSquares,
    "GrowingStrategy": GrowingStrategy,
    "GrowingReconstruction": GrowingReconstruction,
    "ChannelsLink": compiled_channels.CompiledChannels,
    "BlockChannelsLink": compiled_channels.CompiledBlockChannels,
    "StateSpace": StateSpace,
    "tuple": tuple,
}
# How many fields those have that got more since: the others are left out where they have their defaults
_N_FIRST: dict[type[Any], int] = {
    CompiledMatrixMechanism: 6,
    compiled_mechanisms.CompiledBlock: 3,
    compiled_receivers.CompiledPeriodicKalman: 8,
    PosteriorFilter: 12,
}
_NAME_OF = {x: name for name, x in _KINDS.items()}
_READ: dict[str, Callable[..., Any]] = {
    **_KINDS,
    "Factors": _read_factors,
    "StateSpace": _read_state_space,
    "tuple": lambda *x: x,
}

"""Opening a stream: with which mechanism it begins, and goes on."""

import numpy as np
import pytest
from helpers import fakes
from helpers.designs import MadeOnce, designed

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.integer.exact_forms import exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.stream import Stream
from dpfast.releases.stream_opening import differing_fields, open_stream

MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET = dp.Filter([1], [1, -0.9])
PRIVACY = dp.Privacy(2, 1e-6)
COUNTS = Inputs(0, 3, n_streams=2)
MECHANISMS = MadeOnce(
    {
        "zero forcing": lambda: designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1),
        "lmmse": lambda: designed(dp.lmmse, TARGET, PRIVACY, MODEL, lag=3, tolerance=0.1),
        "decision feedback": lambda: designed(dp.decision_feedback, TARGET, PRIVACY, MODEL, lag=4, tolerance=0.1),
    }
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.mark.parametrize("name", MECHANISMS)
def test_pieces_of_a_mechanism_have_the_bits_of_the_whole(folder, name):
    mechanism = MECHANISMS[name]
    plan = exact(mechanism, COUNTS)
    u = np.random.default_rng(1).integers(0, 5, (2, 150))
    with open_stream(mechanism, folder, COUNTS) as stream:
        stream.push(u[:, :40])
        stream.push(u[:, 40:41])
    with open_stream(plan, folder) as stream:
        stream.push(u[:, 39:120], first=39)
    with open_stream(mechanism, folder, COUNTS) as stream:
        stream.push(u[:, 120:])
        stream.close()
        result = stream.read(0, stream.position)
        assert stream.guarantee.to_json() == plan.guarantee.to_json()
    assert result.privatized.shape == (2, 150 + mechanism.lag)
    assert result.estimate.tolist() == plan.estimate(result.privatized).tolist()
    x = np.concatenate([np.minimum(u, 3), np.zeros((2, mechanism.lag), int)], axis=1)
    noise = result.privatized - fakes.filtered(x, plan.taps)
    assert np.abs(noise).max() < 30 * plan.sigma.std
    assert 0.7 < noise.std() / plan.sigma.std < 1.4  # of more than 300 samples: 8 standard errors
    text = (fakes.beside(folder) / "guarantee.txt").read_text(encoding="utf-8")
    assert text == f"Release 1, steps from 0 on:\n\n{plan.guarantee}\n"


def test_another_mechanism_is_refused_by_what_differs(folder):
    mechanism = MECHANISMS["zero forcing"]
    plan = exact(mechanism, COUNTS)
    open_stream(mechanism, folder, COUNTS).suspend()
    others = [
        ((mechanism, folder, Inputs(0, 4, n_streams=2)), {}, "differs in inputs.high:"),
        ((mechanism, folder, COUNTS), {"tolerance": 0.1}, "differs in tolerance:"),
        ((dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6)), folder, COUNTS), {}, r"mechanism\.privacy\.epsilon"),
        ((exact(mechanism, COUNTS, tolerance=0.1), folder), {}, "differs in .*taps"),
    ]
    for args, options, match in others:
        with pytest.raises(ReleaseError, match=match):
            open_stream(*args, **options)
    with pytest.raises(ValueError, match="inputs must be an Inputs"):
        open_stream(mechanism, folder)
    with open_stream(plan, folder, COUNTS) as stream:
        assert isinstance(stream, Stream)


def test_a_smoother_is_refused(folder):
    with pytest.raises(ValueError, match="got the smoother"):
        open_stream(designed(dp.lmmse, TARGET, PRIVACY, MODEL, tolerance=0.1), folder, COUNTS)


def test_a_design_from_private_data_is_refused(folder):
    with pytest.raises(ReleaseError, match="must not depend on private data"):
        open_stream(MECHANISMS["lmmse"].with_sources(lag="fitted-from-private"), folder, COUNTS)
    assert not folder.exists()


def test_differences_are_named():
    a = {"x": 1, "y": {"z": [1, 2], "w": None}}
    assert differing_fields(a, a) == []
    assert differing_fields(a, {"x": 1, "y": {"z": [1, 3]}, "v": 0}) == ["v", "y.z"]
    assert differing_fields(a, {"x": 1, "y": 2}) == ["y"]

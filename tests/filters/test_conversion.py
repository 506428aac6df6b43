import math

import control
import numpy as np
import pytest
from scipy import signal

from dpfast import Filter


@pytest.mark.parametrize(
    ("zeros", "poles", "delay"), [([], [0.5], 1), ([], [], 0), ([0.3], [0.5, 0.2, 0], 2), ([1j, -1j], [0.5, 0.2], 0)]
)
def test_from_zpk_keeps_delays(zeros, poles, delay):
    f = Filter.from_zpk(zeros, poles, 2.0)
    b, a = signal.zpk2tf(zeros, poles, 2.0)
    a = np.atleast_1d(a)
    b = np.concatenate([np.zeros(len(a) - len(np.atleast_1d(b))), np.atleast_1d(b)])
    expected = signal.lfilter(b, a, np.eye(1, 20)[0])
    np.testing.assert_allclose(f.impulse(20), expected, atol=1e-12)
    assert np.flatnonzero(f.impulse(20))[0] == delay


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [0.5], 1.0), "zeros must be no more than poles, as a filter is causal, got 2 and 1"),
        (([], [math.nan], 1.0), "poles must be finite"),
        (([math.inf], [0.5], 1.0), "zeros must be finite"),
        (([], [0.5], math.nan), "gain must be"),
        (([], [0.5j], 1.0), "conjugate"),
        (([], [1.5], 1.0), r"pole at 1\.5"),
    ],
)
def test_from_zpk_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Filter.from_zpk(*arguments)


TF = ([2.0, 1.0], [1, -0.5, 0.06])
SYSTEMS = {
    "scipy tf": signal.dlti(*TF),
    "scipy tf with a step": signal.dlti(*TF, dt=0.1),
    "scipy zpk": signal.dlti(*TF).to_zpk(),
    "scipy ss": signal.dlti(*TF).to_ss(),
    "control tf": control.tf(*TF, True),
    "control tf with a step": control.tf(*TF, 0.1),
    "control zpk": control.zpk([-0.5], [0.2, 0.3], 2.0, dt=True),
    "control ss": control.ss([[0.5, -0.06], [1, 0]], [[1], [0]], [[2, 1]], [[0]], True),
}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_from_system_reads_positive_powers_of_z(system):
    expected = np.squeeze(signal.dimpulse((*TF, 1), n=30)[1][0])
    np.testing.assert_allclose(Filter.from_system(system).impulse(30), expected, atol=1e-10)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_from_system_keeps_the_delay_of_a_chain_of_states(n):
    poles = np.linspace(0.1, 0.6, n)
    system = signal.dlti([1.0], np.poly(poles)).to_ss()
    expected = np.squeeze(signal.dimpulse(system, n=30)[1][0])
    np.testing.assert_allclose(Filter.from_system(system).impulse(30), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("zeros", "poles", "message"),
    [
        ([], [0.5j], "zeros and poles must come in conjugate pairs .*, got one without its conjugate: give both"),
        ("a", [0.5], "zeros must be an array of complex numbers, got 'a'"),
        ([math.nan], [0.5], "zeros must be finite, got 1 NaN or infinite values"),
    ],
)
def test_bad_roots_are_named(zeros, poles, message):
    with pytest.raises(ValueError, match=message):
        Filter.from_zpk(zeros, poles, 1.0)


def test_from_system_with_feedthrough():
    a, b, c, d = [[0.5, 0.1], [-0.2, 0.7]], [[1], [2]], [[1, -1]], [[3]]
    expected = np.squeeze(signal.dimpulse((a, b, c, d, 1), n=30)[1][0])
    for system in signal.dlti(a, b, c, d), control.ss(a, b, c, d, True):
        np.testing.assert_allclose(Filter.from_system(system).impulse(30), expected, atol=1e-10)


def test_from_system_of_a_constant():
    for system in control.ss([], [], [], [[2.0]], True), control.tf([2.0], [1.0], True), signal.dlti([4.0], [2.0]):
        assert Filter.from_system(system).impulse(3).tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (signal.lti([1], [1, 1]), "discrete time"),
        (control.tf([1], [1, 1]), "discrete time"),
        (control.tf([1], [1, 1], None), "discrete time"),
        (control.ss([[0.5]], [[1]], [[1]], [[0]]), "discrete time"),
        (5, "system must be a system with A B C D, num den or zeros poles gain, and dt, got 5"),
        (control.tf([1, 2, 3], [1, -0.5], True), "causal, .* got degrees 2 over 1: delay it"),
        (signal.dlti([1, 2, 3], [1, -0.5]), "causal"),
        (signal.dlti([0.3, 0.2], [0.5], 2.0), "causal"),
        (signal.dlti([[1, 2], [3, 4]], [1, -0.5]), "one input and one output"),
        (control.ss([[0.5]], [[1, 1]], [[1]], [[3, 1]], 1), "one input and one output, got 2 and 1"),
        (control.ss([[0.5]], [[1]], [[1], [1]], [[3], [1]], 1), "one input and one output, got 1 and 2"),
        (control.tf([[[1], [2]]], [[[4], [1]]], True), "one input and one output"),
        (control.tf([[[1], [2]]], [[[1, 0.5], [1, 0.3]]], True), "one input and one output"),
        (control.tf([[[1], [2, 3]]], [[[1, 0.5], [1, 0.3, 0.1]]], True), "one input and one output"),
        (control.frd([1, 2], [1, 2], True), "system must be"),
        (control.tf([1], [1, -1.5], True), r"pole at 1\.5"),
    ],
)
def test_from_system_refuses(system, message):
    with pytest.raises(ValueError, match=message):
        Filter.from_system(system)

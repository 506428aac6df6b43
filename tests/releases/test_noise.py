import copy
import os
import pickle
import signal
import threading
from typing import NamedTuple

import numpy as np
import pytest

from dpfast._kernels import discrete_gaussian, table_draws, two_sided_geometric
from dpfast._support.errors import ReleaseError
from dpfast.privacy.canonical_table import canonical_table
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.response_table import response_table
from dpfast.releases import noise as module
from dpfast.releases.noise import LARGEST, Noise


class Sigma(NamedTuple):
    a: int
    j: int


SIGMA, RATE, TABLE = Sigma(645, 1), GeometricRate(5, 10), canonical_table(0.01, 0.001)
LAWS = pytest.mark.parametrize("law", [SIGMA, RATE, TABLE], ids=["Gaussian", "geometric", "table"])


@pytest.fixture
def words(monkeypatch):
    """Words from a seed in place of the operating system's, and all that were given."""
    rng, given = np.random.default_rng(1), []

    def fill(words):
        words[:] = rng.integers(2**32, size=len(words), dtype=np.uint32)
        given.extend(words.tolist())

    monkeypatch.setattr(module, "_fill", fill)
    return given


def drawn(words, law, n):
    """So many samples, straight from the kernel."""
    words, result = np.array(words, np.uint32), np.empty(n, np.int64)
    if law is RATE:
        found = two_sided_geometric.draw_geometric(words, two_sided_geometric.GeometricLaw.from_rate(*law), result)
    elif law is TABLE:
        found = table_draws.draw_table(words, table_draws.CutTable.from_weights(law.values, law.weights), result)
    else:
        cut = discrete_gaussian.Law.from_fraction(*law)
        found = discrete_gaussian.draw(words, discrete_gaussian.make_table(6), cut, result)
    assert found[0] == n
    return result


def ready(n, law=SIGMA, block=16):
    result = Noise(law, block)
    result.ready(n)
    return result


# --- bookkeeping ----------------------------------------------------------------------------------


@LAWS
@pytest.mark.parametrize("takes", [[1] * 50, [0, 3, 16, 1, 30], [50]])
@pytest.mark.parametrize("block", [1, 7, 64])
def test_samples_are_those_of_the_words_in_order_however_they_are_taken(words, takes, block, law):
    noise, taken = Noise(law, block), []
    for n in takes:
        noise.ready(n)
        taken.append(noise.take(n))
    assert [(len(x), x.dtype) for x in taken] == [(n, np.int64) for n in takes]
    assert np.concatenate(taken).tolist() == drawn(words, law, 50).tolist()


def test_whole_blocks_are_drawn_and_only_when_needed(words):
    noise = Noise(SIGMA, 16)
    noise.ready(0)
    assert words == []
    for n, expected in [(1, 16), (16, 16), (17, 32), (100, 112), (5, 112)]:
        noise.ready(n)
        assert len(noise._samples) == expected
    before = len(words)
    noise.take(100)
    noise.ready(12)
    assert len(words) == before


def test_nothing_is_drawn_when_samples_are_taken(words):
    noise = ready(16)
    drawn = len(words)
    with pytest.raises(RuntimeError, match=r"only 16 samples are ready, got n = 17: call ready\(n\) before"):
        noise.take(17)
    assert len(noise.take(16)) == 16
    with pytest.raises(RuntimeError, match="only 0 samples"):
        noise.take(1)
    assert len(words) == drawn


@LAWS
def test_what_was_used_is_overwritten(words, law):
    noise = ready(16, law)
    samples, remaining = noise._samples, noise._words
    first = noise.take(5)
    assert first.any()
    assert not samples[:5].any()
    assert not np.shares_memory(first, samples)
    noise.ready(400)
    noise.take(400)
    assert not samples.any()
    assert not remaining.any()
    assert not noise._words.base[: -len(noise._words)].any()
    assert noise._words.tolist() == words[-len(noise._words) :]


def test_words_and_samples_do_not_come_twice():
    noise = Noise(Sigma(2**40, 0), 64)
    noise.ready(5000)
    assert len(np.unique(noise.take(5000))) == 5000
    assert len(np.unique(noise._words)) == len(noise._words)


@pytest.mark.parametrize("attribute", ["copy", "__setitem__"])
def test_an_interrupted_call_loses_samples_and_repeats_none(words, attribute):
    class Interrupted(np.ndarray):
        def copy(self):
            if attribute == "copy":
                raise KeyboardInterrupt
            return np.array(self)

        def __setitem__(self, key, value):
            raise KeyboardInterrupt

    noise = ready(16)
    expected = noise._samples.copy()
    noise._samples = noise._samples.view(Interrupted)
    with pytest.raises(KeyboardInterrupt):
        noise.take(3)
    noise._samples = np.asarray(noise._samples)
    assert noise.take(13).tolist() == expected[3:].tolist()


def test_an_interrupted_draw_leaves_no_zeros_among_the_words(monkeypatch, words):
    """The words of samples that nobody got may come again, overwritten ones never."""
    noise = ready(16)
    noise.take(16)

    def interrupted(out):
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(module, "_fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            noise.ready(1000)
    assert len(noise._samples) == 0
    assert noise._words.tolist() == words[len(words) - len(noise._words) :]
    noise.ready(1000)
    assert np.count_nonzero(noise.take(1000) == 0) < 10


def test_threads_get_different_samples():
    noise, taken = Noise(Sigma(2**40, 0), 64), []

    def work():
        for _ in range(200):
            noise.ready(5)
            try:
                taken.append(noise.take(5))
            except RuntimeError:  # another thread took them
                continue

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(taken)) == 5 * len(taken) > 0


# --- where randomness comes from ------------------------------------------------------------------


def test_words_are_those_of_the_operating_system_and_its_bytes_are_overwritten(monkeypatch):
    given = []

    def urandom(n):
        given.append(bytes(bytearray(i % 251 + 1 for i in range(n))))
        return given[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    words = np.empty(100, np.uint32)
    module._fill(words)
    assert words.tobytes() == bytes(i % 251 + 1 for i in range(400))
    assert given == [bytes(400)]


@pytest.mark.parametrize("given", [0, 4, 396, 401, 800])
def test_random_bytes_that_are_not_as_many_as_asked_for_are_an_error(monkeypatch, given):
    """Four of them were one word, and NumPy repeats one word for all."""
    monkeypatch.setattr(os, "urandom", lambda n: (b"1234" * 201)[:given])
    words = np.zeros(100, np.uint32)
    with pytest.raises(ReleaseError, match=f"random bytes that it is asked for, 400, got {given}: use another"):
        module._fill(words)
    assert not words.any()
    with pytest.raises(ReleaseError, match="use another machine"):
        ready(50)


def test_without_a_seed_two_of_them_differ():
    first, second = (ready(50).take(50) for _ in range(2))
    assert (first != second).any()
    assert np.std(first) == pytest.approx(322.5, rel=0.75)


def test_the_table_grows_where_digits_are_missing(monkeypatch):
    """After limbs of the table by themselves come words that decide."""
    first = discrete_gaussian.make_table(12)[:, 3].tolist()
    rest = np.random.default_rng(1).integers(2**32, size=100_000, dtype=np.uint32).tolist()
    words = [*first[:6], first[6] - 1, *rest]
    taken, remaining = [], iter(words)
    monkeypatch.setattr(module, "_fill", lambda out: out.__setitem__(slice(None), [next(remaining) for _ in out]))
    noise = ready(20, block=4)
    taken, expected = noise.take(20), np.empty(20, np.int64)
    assert noise._sampler._n_limbs == 12
    discrete_gaussian.draw(
        np.array(words, np.uint32),
        discrete_gaussian.make_table(24),
        discrete_gaussian.Law.from_fraction(*SIGMA),
        expected,
    )
    assert taken.tolist() == expected.tolist()
    assert (
        discrete_gaussian.draw(
            np.array(words, np.uint32),
            discrete_gaussian.make_table(6),
            discrete_gaussian.Law.from_fraction(*SIGMA),
            expected,
        )[0]
        == 0
    )


@pytest.mark.parametrize("law", [SIGMA, RATE], ids=["Gaussian", "geometric"])
def test_a_source_that_is_not_random_is_refused(monkeypatch, law):
    """Words that are all 1 leave the table; those that are 0 and 1 by turns are successes for ever."""

    def fill(words):
        words[:] = 2**32 - 1
        if law is RATE:
            words[::2] = 0

    monkeypatch.setattr(module, "_fill", fill)
    noise = Noise(law)
    for _ in range(2):
        with pytest.raises(ReleaseError, match="random bits are not random"):
            noise.ready(1)
        with pytest.raises(RuntimeError, match="only 0 samples"):
            noise.take(1)


# --- processes ------------------------------------------------------------------------------------


def in_child(function):
    """What a function returns in a forked child, as bytes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # rather no answer than none ever
        try:
            os.write(write, function())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return result


def forks(test):
    test = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")(test)  # no thread is needed in the child
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")(test)


@forks
@pytest.mark.parametrize("hook", [True, False], ids=["told of the fork", "by the number of the process"])
def test_a_child_draws_afresh_and_its_parent_goes_on(monkeypatch, words, hook):
    noise = ready(64, block=64)
    if not hook:
        monkeypatch.setattr(module, "_EVERY", set())
    expected = noise._samples.tolist()

    def child():
        monkeypatch.setattr(module, "_fill", lambda out: out.fill(7))  # the parent's are random
        inherited = [len(noise._words), len(noise._samples)] if hook else [0, 0]
        try:
            noise.take(1)
        except RuntimeError:
            inherited.append(0)
        noise.ready(64)
        return np.array([*inherited, *noise.take(64)]).tobytes()

    child_result = np.frombuffer(in_child(child), np.int64).tolist()
    assert child_result[:3] == [0, 0, 0]
    assert len(child_result) == 67
    assert len(set(child_result[3:])) < 10 < len(set(expected))
    assert noise.take(64).tolist() == expected


@forks
def test_a_child_draws_other_samples_than_its_parent():
    noise = Noise(Sigma(2**40, 0), 64)
    noise.ready(64)

    def child():
        noise.ready(64)
        return noise.take(64).tobytes()

    theirs, again, own = in_child(child), in_child(child), noise.take(64).tobytes()
    assert len({*np.frombuffer(theirs + again + own, np.int64).tolist()}) == 3 * 64


@forks
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    noise = Noise(SIGMA)
    with noise._lock:
        assert in_child(lambda: noise.ready(1) or noise.take(1).tobytes())


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_cannot_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="must not be used twice"):
        duplicate(Noise(SIGMA))


@pytest.mark.parametrize(
    ("law", "text"), [(SIGMA, "sigma=645/2^1"), (RATE, "rate=5/2^10"), (TABLE, "table of 361 values")]
)
def test_nothing_shows_what_was_drawn(law, text):
    assert repr(ready(3, law)) == f"Noise({text}, block=16)"


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "name"), [((0, 0), "a"), ((LARGEST + 1, 0), "a"), ((1, 5), "j"), ((645, -1), "j")])
def test_standard_deviations_that_do_not_fit_are_refused(sigma, name):
    with pytest.raises(ValueError, match=rf"sigma\.{name} must be an integer"):
        Noise(Sigma(*sigma))


@pytest.mark.parametrize("sigma", [(LARGEST, 0), (LARGEST, 44), (1, 4), (np.int64(2**40 - 1), np.int64(3))])
def test_the_largest_and_the_smallest_can_be_drawn(sigma):
    noise = ready(300, Sigma(*sigma))
    std = int(sigma[0]) / 2 ** int(sigma[1])
    samples = noise.take(300)
    assert abs(samples).max() < 6.5 * std + 1
    if std > 1:
        assert np.std(samples) == pytest.approx(std, rel=0.35)


@pytest.mark.parametrize(("rate", "name"), [((0, 0), "s"), ((2**62 + 1, 0), "s"), ((1, 41), "j"), ((1, -1), "j")])
def test_rates_that_do_not_fit_are_refused(rate, name):
    with pytest.raises(ValueError, match=rf"rate\.{name} must be an integer"):
        Noise(GeometricRate(*rate))


@pytest.mark.parametrize("rate", [(1, 0), (1, 40), (2**62, 40), (np.int64(77), np.int64(12))])
def test_the_largest_and_the_smallest_rates_can_be_drawn(rate):
    samples, scale = ready(300, GeometricRate(*rate)).take(300), 2 ** int(rate[1]) / int(rate[0])
    assert abs(samples).max() < 30 * scale + 1
    if scale > 1:
        assert np.std(samples) == pytest.approx(2**0.5 * scale, rel=0.5)


@pytest.mark.parametrize("law", [canonical_table(2.0**-40, 0.001), canonical_table(24, 0.5), response_table(3, 0)])
def test_the_longest_and_the_shortest_tables_can_be_drawn(law):
    samples = ready(300, law).take(300)
    assert set(samples.tolist()) <= {v for v, w in zip(law.values, law.weights, strict=True) if w}
    if len(law.values) > 3:
        assert np.std(samples) == pytest.approx(float(law.variance) ** 0.5, rel=0.35)


@pytest.mark.parametrize("block", [0, -1, 2.5, True])
def test_blocks_have_a_positive_number_of_samples(block):
    with pytest.raises(ValueError, match="block must be an integer, at least 1"):
        Noise(SIGMA, block)


@pytest.mark.parametrize("method", ["ready", "take"])
def test_numbers_of_samples_are_not_negative(method):
    with pytest.raises(ValueError, match="n must be an integer, at least 0"):
        getattr(Noise(SIGMA), method)(-1)

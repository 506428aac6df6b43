"""Releases: exact noise beside numpy's, what its time tells, and a year of departures from start to end."""

import json
import math
import time
from itertools import count

import numpy as np
import pytest
from scipy import stats

import dpfast as dp
from benchmarks.harness.race import Contestant, race, race_on_one_core, repeated
from benchmarks.processes.bench_process import ROOT, python
from dpfast.privacy.canonical_table import canonical_table
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.response_table import response_table
from dpfast.releases.noise import Noise
from dpfast.signals.events.declared_counts import count_events
from dpfast.signals.events.declared_span import Span

SIGMAS = {"2.875": Sigma(23, 3), "322.5": Sigma(645, 1), "2⁴⁰": Sigma(2**40, 0)}
BLOCKS, BLOCK = 16, 4096
RATES = {"1": GeometricRate(2**30, 30), "1/20": GeometricRate.below(1.0, 20), "2⁻⁴⁰": GeometricRate(1, 40)}
TABLES = {
    "canonical, ε = 1": canonical_table(1.0, 0.01),
    "canonical, 1,001 values": canonical_table(2.0**-40, 1e-3),
    "response": response_table(1.0, 0.01),
}
USED_WORDS = 7  # random ones of 32 bits that a Gaussian looks at, on average
USED_BY_GEOMETRIC = 9  # that are looked at where the rate is small, and more elsewhere
USED_BY_TABLE = 2
TAKES, TIMED_BLOCKS = 200_000, 1000
DEPARTURES = ROOT / "examples/nyc_departures_2013.csv.gz"
DECLARED = {"time": "scheduled_departure", "by": "origin", "start": "2013-01-01", "end": "2014-01-01", "period": "5min"}
GROUPS = ["EWR", "JFK", "LGA"]
HIGH = 30
BATCH = 10_000, 10_000  # streams, steps
MANY_GROUPS, BINS, ROWS = 100_000, 100, 1_000_000


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.benchmark(group="noise")
def bench_noise(benchmark, sigma):
    """With the time of the operating system for the random words."""
    noise, rng = Noise(SIGMAS[sigma], BLOCK), np.random.default_rng(1)

    def block():
        noise.ready(BLOCK)
        noise.take(BLOCK)

    subject, numpy = (
        repeated(draw, BLOCKS, BLOCK) for draw in (block, lambda: rng.normal(0.0, SIGMAS[sigma].std, BLOCK))
    )
    what = f"discrete Gaussian of {sigma}"
    race_on_one_core(benchmark, what, np.int64, subject, {"numpy": numpy}, limits={"random words": USED_WORDS})
    benchmark.extra_info["figures"][f"{what}, millions a second"] = 1e3 / benchmark.extra_info["race"]["ns"]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.benchmark(group="noise")
def bench_geometric_noise(benchmark, rate):
    """The same of the two-sided geometric, beside the difference of two of numpy's one-sided ones, which round."""
    noise, rng = Noise(RATES[rate], BLOCK), np.random.default_rng(1)
    p = -math.expm1(-float(RATES[rate].per_step))

    def block():
        noise.ready(BLOCK)
        noise.take(BLOCK)

    subject, numpy = (
        repeated(draw, BLOCKS, BLOCK) for draw in (block, lambda: rng.geometric(p, BLOCK) - rng.geometric(p, BLOCK))
    )
    what = f"two-sided geometric of rate {rate}"
    race_on_one_core(benchmark, what, np.int64, subject, {"numpy": numpy}, limits={"random words": USED_BY_GEOMETRIC})
    benchmark.extra_info["figures"][f"{what}, millions a second"] = 1e3 / benchmark.extra_info["race"]["ns"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.benchmark(group="noise")
def bench_noise_of_tables(benchmark, name):
    """The same of laws that are tables, beside numpy's choice among values, whose probabilities are floats."""
    law, rng = TABLES[name], np.random.default_rng(1)
    noise, p = Noise(law, BLOCK), np.array([float(x) for x in law.probabilities])

    def block():
        noise.ready(BLOCK)
        noise.take(BLOCK)

    subject, numpy = (repeated(draw, BLOCKS, BLOCK) for draw in (block, lambda: rng.choice(law.values, BLOCK, p=p)))
    what = f"table, {name}"
    race_on_one_core(benchmark, what, np.int64, subject, {"numpy": numpy}, limits={"random words": USED_BY_TABLE})
    benchmark.extra_info["figures"][f"{what}, millions a second"] = 1e3 / benchmark.extra_info["race"]["ns"]


@pytest.mark.benchmark(group="noise")
def bench_what_time_tells(benchmark):
    """Rank correlation of how large a sample is with how long something took; one drawn alone shows that there is one.

    0.002 is chance for the calls, 0.0005 for blocks, whose correlation is that with one of their samples.
    """
    ahead, whole, alone = (Noise(SIGMAS["322.5"], block) for block in (BLOCK, BLOCK, 1))

    def measure():
        takes = [timed(ahead, 1, before=ahead.ready) for _ in range(TAKES)]
        draws = [timed(alone, 1, within=alone.ready) for _ in range(TAKES)]
        blocks = [timed(whole, BLOCK, within=whole.ready) for _ in range(TIMED_BLOCKS)]
        return {"`take`": takes, "a draw alone": draws, f"its block of {BLOCK}": blocks}

    measured = benchmark.pedantic(measure, rounds=1)
    found = {what: rank_correlation(*zip(*pairs, strict=True)) for what, pairs in measured.items()}
    figures = {f"size of a sample and time of {what}, correlation": value for what, value in found.items()}
    benchmark.extra_info["figures"] = figures


def nothing(n):
    pass


def timed(noise, n, *, before=nothing, within=nothing):
    """Nanoseconds of taking n samples, and their sizes."""
    before(n)
    start = time.perf_counter_ns()
    within(n)
    samples = noise.take(n)
    return time.perf_counter_ns() - start, np.abs(samples)


def rank_correlation(times, sizes):
    """Spearman's, of times (n,) with the columns of sizes (n, k): the size of their mean."""
    times, sizes = (stats.zscore(stats.rankdata(x, axis=0)) for x in (times, np.stack(sizes)))
    return abs(float((times @ sizes).mean())) / len(times)


# --- a year of departures -------------------------------------------------------------------------


@pytest.fixture
def mechanism():
    """An hour's moving average."""
    target, model = dp.Filter(np.full(12, 1 / 12)), dp.ARMA([1], [1, -0.5], mean=2.0)
    return dp.lmmse(target, dp.Privacy(1, 1e-6), model, lag=5)


@pytest.mark.benchmark(group="year")
def bench_release(benchmark, mechanism, tmp_path):
    span = Span.parse("2013-01-01", "2014-01-01", "5min")
    counts = count_events(DEPARTURES, span, GROUPS, time="scheduled_departure", by="origin").counts
    inputs, new = dp.Inputs(0, HIGH, n_streams=len(GROUPS)), (tmp_path / str(i) for i in count())
    seconds, _ = race(benchmark, Contestant(lambda: dp.release(mechanism, counts, next(new), inputs), 1), {}, rounds=9)
    benchmark.extra_info["figures"] = {"a year of departures, counts": float(np.median(seconds))}


@pytest.mark.benchmark(group="year")
def bench_command(benchmark, mechanism, tmp_path):
    """From the start of the process to its end; the first one compiles."""
    dp.save(mechanism, tmp_path / "mechanism.json")
    options = {**DECLARED, "groups": ",".join(GROUPS), "high": HIGH, "mechanism": tmp_path / "mechanism.json"}
    given = [f"--{name}={value}" for name, value in options.items()]
    new, seconds = (tmp_path / str(i) for i in count()), []

    def command():
        start = time.perf_counter()
        python(["-m", "dpfast.cli.main", "release", str(DEPARTURES), *given, f"--out={next(new)}"], tmp_path / "cache")
        seconds.append(time.perf_counter() - start)

    benchmark.pedantic(command, rounds=4)
    first, *later = seconds
    names = "a year of departures, command, cold", "a year of departures, command"
    benchmark.extra_info["figures"] = dict(zip(names, (first, float(np.median(later))), strict=True))


# --- many values at once --------------------------------------------------------------------------


@pytest.mark.benchmark(group="many")
def bench_large_batch(benchmark, tmp_path):
    """A process of its own, for its memory."""
    arguments, found = ["-m", "benchmarks.releases.large_batch", *map(str, BATCH), str(tmp_path)], []
    benchmark.pedantic(lambda: found.append(json.loads(python(arguments, tmp_path / "cache"))), rounds=1)
    names = {"seconds": "s", "bytes": "bytes of memory for a value"}
    streams, steps = BATCH
    figures = {f"batch of {streams} × {steps}, {text}": found[0][name] for name, text in names.items()}
    benchmark.extra_info["figures"] = figures


@pytest.mark.benchmark(group="many")
def bench_command_of_many_groups(benchmark, mechanism, tmp_path):
    """The whole command on a log of a million rows in as many groups as cities have stops."""
    dp.save(mechanism, tmp_path / "mechanism.json")
    names = [f"place-{i:06}" for i in range(MANY_GROUPS)]
    (tmp_path / "groups.txt").write_text("\n".join(names))
    rng, start = np.random.default_rng(1), np.datetime64("2030-01-01T00:00:00")
    seconds, places = rng.integers(0, 300 * BINS, ROWS), rng.integers(0, MANY_GROUPS, ROWS).tolist()
    times = np.datetime_as_string(start + seconds.astype("timedelta64[s]")).tolist()
    with (tmp_path / "log.csv").open("w") as file:
        file.write("time,place\n")
        file.writelines(f"{time},{names[i]}\n" for time, i in zip(times, places, strict=True))
    options = {"time": "time", "by": "place", "period": "5min", "high": HIGH, "start": start}
    options |= {"end": start + np.timedelta64(300 * BINS, "s"), "groups-file": tmp_path / "groups.txt"}
    options |= {"mechanism": tmp_path / "mechanism.json", "out": tmp_path / "out"}
    given = [f"--{name}={value}" for name, value in options.items()]
    arguments = ["-m", "benchmarks.releases.measured_command", "release", str(tmp_path / "log.csv"), *given, "--quiet"]
    found = []
    benchmark.pedantic(lambda: found.append(python(arguments, tmp_path / "cache")), rounds=1)
    measured = json.loads(found[0].splitlines()[-1])
    what = f"release of {MANY_GROUPS} groups in {BINS} bins"
    figures = {"s": measured["seconds"], "bytes of memory for a value": 1e6 * measured["MB"] / (MANY_GROUPS * BINS)}
    benchmark.extra_info["figures"] = {f"{what}, {name}": value for name, value in figures.items()}

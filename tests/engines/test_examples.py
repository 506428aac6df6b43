"""The examples of examples/engines and the code of docs/guides/many-machines.md run, as they are shown."""

import contextlib
import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.releases.engines import closed_pieces

pytest.importorskip("bytewax")
pytest.importorskip("pyspark")
pytestmark = pytest.mark.engines
ROOT = Path(__file__).parents[2]
SPAN = ("2030-01-01T00:00Z", "2030-01-02T01:00Z", "5min")
AIRPORTS = ("EWR", "JFK", "LGA")


@contextlib.contextmanager
def started(engine, out, days):
    """The command of an example, of its first lines; all that it started ends with the block."""
    script = ROOT / f"examples/engines/{engine}_departures.py"
    assert f"{script.relative_to(ROOT)} --out DIR" in script.read_text(encoding="utf-8")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), "--out", str(out), "--days", str(days)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):  # none of them is left
                os.killpg(process.pid, signal.SIGKILL)


def tables(out):
    return {name: (out / "public" / f"shard-000{i}" / "estimates.csv") for i, name in enumerate(AIRPORTS)}


@pytest.mark.parametrize("engine", ["bytewax", "spark"])
def test_an_example_publishes_what_the_log_has_and_goes_on_when_it_is_killed(engine, tmp_path):
    with started(engine, tmp_path / "out", 2) as process:
        assert process.stdout.readline() == "2013-01-01 is published\n"
        before = {name: path.read_text() for name, path in tables(tmp_path / "out").items()}
        time.sleep(0.2)
    with started(engine, tmp_path / "out", 2) as again:
        output, errors = again.communicate()
    assert (again.returncode, output) == (0, "2013-01-01 is published\n2013-01-02 is published\n"), errors
    for i, (name, path) in enumerate(tables(tmp_path / "out").items()):
        assert path.read_text().startswith(before[name])
        rows = list(csv.DictReader(io.StringIO(path.read_text())))
        assert [row["group"] for row in rows] == [name] * 48
        store = tmp_path / "out" / "private" / "stores" / f"shard-000{i}"
        result = dp.read_release(store, published=path.parent)
        true = smoothed(tmp_path / "out" / "private", name)
        assert np.abs(result.estimate[0] - true).max() < 8 * result.predicted_rmse_if_model_holds


class Ticking:
    """A clock on which nobody has to wait."""

    def __init__(self, now):
        self.time = now

    def now(self):
        return self.time

    def sleep_until(self, moment):
        self.time = max(self.time, moment)


def smoothed(folder, airport):
    """What the filter of the example makes of the day files, by a loop of its own."""
    counts = np.zeros(48)
    for day in range(2):
        for line in (folder / f"2013-01-0{day + 1}.csv").read_text().splitlines():
            if line.endswith(f",{airport}"):
                counts[24 * day + int(line[11:13])] += 1
    state, found = 0.0, []
    for count in np.minimum(counts, 60):
        state = 0.7 * state + 0.3 * count
        found.append(state)
    return np.array(found)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, postgres_server):
    """Of docs/guides/many-machines.md, with the address of a server, a mechanism, a log, and a pipe that has ended."""
    page = (ROOT / "docs/guides/many-machines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    code = "\n".join(blocks).replace("host=db.example dbname=releases user=dpfast", postgres_server.address)
    code = code.replace("2031-01-01T00:00Z", "2030-01-02T01:00Z")  # a day, and 12 bins more, which a clock closes
    monkeypatch.setattr(closed_pieces, "SystemClock", lambda: Ticking(dp.Span.parse(*SPAN).start))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    Path("private").mkdir(mode=0o700)
    Path("monday.csv").write_text("time,origin\n2030-01-01T05:00Z,EWR\n", encoding="utf-8")
    subprocess.run(["gzip", "monday.csv"], check=True)
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from helpers.spark_lives import start_spark

    session = start_spark(tmp_path)
    given = {
        "dp": dp,
        "op": op,
        "Dataflow": Dataflow,
        "session": session,
        "mechanism": dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)),
        "inputs": dp.Inputs(0, 40),
        "pipe": io.BytesIO(b"time,origin\n"),
    }
    exec(compile(code, "many-machines.md", "exec"), given)
    given["stream"].suspend()
    for query in session.streams.active:
        query.processAllAvailable()
        query.stop()
    session.stop()
    for number in range(3):
        rows = Path(f"out/shard-000{number}/estimates.csv").read_text().splitlines()
        assert len(rows) == 1 + 300

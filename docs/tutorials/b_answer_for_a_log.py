"""
From a log of people to a guarantee
===================================

You have a log of events of people, and answer for what is published of it. We go from a CSV file to estimates with a
guarantee for each *person* that a lawyer can read, as a batch, live, and after a crash.
"""

# %%
# The log
# -------
# The log is a CSV file with a time, a door and a card for each event. This one is made up.

import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpfast as dp

folder = Path("log-tutorial")
# never do this to a real store
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
rng = np.random.default_rng(7)
days = pd.date_range("2024-03-04", periods=5, freq="D")
rows = []
for card in range(400):
    for day in days[rng.random(5) < 0.8]:
        times = [
            day + pd.Timedelta(hours=float(hour))
            for hour in rng.normal((8.5, 17), 0.7)
        ]
        rows += [
            (time, rng.choice(["north", "south"]), f"card-{card}")
            for time in times
        ]
log = pd.DataFrame(rows, columns=["time", "door", "card"]).sort_values("time")
log["time"] = log["time"].dt.strftime("%Y-%m-%dT%H:%M:%S")
log.to_csv(folder / "log.csv", index=False)
print((folder / "log.csv").read_text()[:120])

# %%
# What is declared
# ----------------
# Everything that could depend on somebody's events is declared beforehand: the bins, the doors, the range of counts,
# and how much one person may contribute. In this week at most 4 events of a card count at each door, at least 12 bins
# (an hour) apart. Further ones are left out. These bounds decide how much noise there is.
#
# ``epsilon`` and ``delta`` say how private it is. Somebody who thinks it as likely as not that a person is in the log
# can think it 88 % likely at most afterwards, under ε = 2; δ = 10⁻⁶ is a small probability on top of that.
# :doc:`../../choosing/what-epsilon-means` explains both.

span = dp.Span.parse("2024-03-04", "2024-03-09", "5min")
doors = ["north", "south"]
privacy = dp.Privacy(epsilon=2, delta=1e-6, max_events=4, min_separation=12)
inputs = dp.Inputs(0, 60, centre=3, n_streams=2, streams_per_person=2)

# %%
# The design
# ----------
# We publish the mean of two hours, half an hour late. The model says what we assume of the counts: about 3 in a bin,
# and neighbours that are alike (:doc:`../../choosing/which-model`). The summary says what error to expect, *predicted
# RMSE*, and which share of the variance of the true series the published one shows, *explained*.

target = dp.Filter(np.ones(24) / 24)
model = dp.ARMA([1.5], [1, -0.9], mean=3.0)
mechanism = dp.lmmse(target, privacy, model, lag=6)
print(mechanism.summary())

# %%
# A dry run
# ---------
# Before anything is published, look how many rows of the log count: you find a wrong column or year here. The numbers
# are private, for you alone, and nothing is spent. ``groups`` has the rows of each door. The others are left out: they
# are ``outside`` of the span, of ``undeclared`` doors, or ``unnamed``, without a card.

events = dp.Events.read(
    folder / "log.csv",
    span,
    doors,
    time="time",
    person="card",
    by="door",
    seen=print,
)

# %%
# A batch
# -------
# ``release`` adds the noise, keeps what was published in a *store* (a private folder), and returns it.

result = dp.release(
    mechanism, events, folder / "store", inputs, persons=dp.Persons()
)
print(result.guarantee.sentence)

# %%
# It warns that the assumed model is wrong: nobody comes at night, and all come in rushes. The guarantee holds
# whatever the data are, and the warning says what the error is instead. The picture has the published estimates with
# the band in which the true output lies in 95 % of the steps, by that error. Stream 1 is the first of the doors, north.
#
# The peaks fall towards the end of the week, although the log has as many events on each day: by then many cards have
# used up their 4 events at a door, and further ones are left out. Do not take this for fewer people. Larger bounds keep
# more events, and so do bounds that begin anew every day, ``Persons(span=288)``; both have a price.

result.plot(stream=0)

# %%
# The page for the lawyer
# -----------------------
# ``report`` writes one page to print: the guarantee in odds, what was declared, the picture, the error, and what is
# *not* covered. Open ``log-tutorial/report.html`` in a browser.

dp.report(result, folder / "report.html")
print((folder / "report.html").stat().st_size // 1000, "kB")
print("Not covered:", *result.guarantee.not_covered, sep="\n- ")

# %%
# Live, and after a crash
# -----------------------
# ``open_stream`` publishes as the events come. When ``push`` returns, its steps are on the disk. Here a process
# publishes two days and is killed.

import subprocess
import sys

program = """
import os, sys
from pathlib import Path
import numpy as np, dpfast as dp

folder = Path(sys.argv[1])
privacy = dp.Privacy(epsilon=2, delta=1e-6, max_events=4, min_separation=12)
inputs = dp.Inputs(0, 60, centre=3, n_streams=2, streams_per_person=2)
model = dp.ARMA([1.5], [1, -0.9], mean=3.0)
mechanism = dp.lmmse(dp.Filter(np.ones(24) / 24), privacy, model, lag=6)
stream = dp.open_stream(mechanism, folder / "live", inputs, persons=dp.Persons())
columns = {"time": "time", "person": "card", "by": "door"}
for day, next_day in ("2024-03-04", "2024-03-05"), ("2024-03-05", "2024-03-06"):
    span = dp.Span.parse(day, next_day, "5min")
    stream.push(
        dp.Events.read(folder / "log.csv", span, ["north", "south"], **columns)
    )
    print("published", stream.position, "steps", flush=True)
os._exit(1)
"""
print(
    subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
)

# %%
# Open the store again and go on: every step is published exactly once, with one draw of noise, and the bounds of a
# person hold for all of the store.

with dp.open_stream(
    mechanism, folder / "live", inputs, persons=dp.Persons()
) as stream:
    print("goes on at step", stream.position)
    third = dp.Span.parse("2024-03-06", "2024-03-07", "5min")
    published = stream.push(
        dp.Events.read(
            folder / "log.csv",
            third,
            doors,
            time="time",
            person="card",
            by="door",
        )
    )
print(published.estimate.shape)

# %%
# A ledger adds up what all of it costs together (:doc:`../../guides/ledger`). The command ``dpfast release`` does the
# same from the shell: :doc:`../../guides/from-a-log` goes through it step by step.

plt.show()  # the picture, where this runs as a program

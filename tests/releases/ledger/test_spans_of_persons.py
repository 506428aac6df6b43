"""Releases per person in a ledger: over several spans a person is a group, entered before the first step of each."""

import numpy as np
import pytest
from helpers.commands import refusal

import dpfast as dp
from dpfast.cli.main import main
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift
from dpfast.releases.store.release_store import ReleaseStore

SPAN = 4


def planned(*, memory):
    target, privacy = dp.Filter([1], [1, -0.5]), dp.Privacy(2, 1e-6)
    mechanism = dp.zero_forcing(target, privacy) if memory else dp.input_perturbation(target, privacy)
    return dp.exact(mechanism, dp.Inputs(0, 20), tolerance=0.1)


def events(n):
    return dp.Events(step=list(range(n)), stream=[0] * n, person=[f"p{i % 3}" for i in range(n)], n_steps=n)


@pytest.fixture
def ledger(tmp_path):
    return dp.Ledger.create(tmp_path / "ledger" / "l.sqlite", "guests")


@pytest.mark.parametrize("memory", [True, False])
def test_a_batch_over_two_spans(memory, ledger, tmp_path):
    plan = planned(memory=memory)
    result = dp.release(plan, events(7), tmp_path / "s", persons=dp.Persons(span=SPAN), ledger=ledger)
    (line,) = ledger.lines
    entry, (square, sigma, n) = line.entry, plan.shift
    joined = Loss((plan.shift,)).of_group(2)
    assert entry.loss == (joined if memory else Loss((Shift(2 * square, sigma, 2 * n),)))
    assert (entry.unit, entry.size, entry.series, entry.max_events, entry.count) == ("person", 2, None, 1, 7)
    assert line.published
    said = ledger.statement()
    assert said.event is None
    assert said.person.rho == result.guarantee.zcdp_rho * (4 if memory else 2)
    assert "no total per person" not in str(said)


def test_spans_of_persons_add_up_and_are_not_added_to_events(ledger, tmp_path):
    plan = planned(memory=False)
    for first in (0, SPAN):
        n = SPAN
        dp.release(plan, events(n), tmp_path / "s", first=first, persons=dp.Persons(span=SPAN), ledger=ledger)
    rho = Loss((plan.shift,)).zcdp()[0]
    assert ledger.statement().person.rho == 2 * rho
    dp.release(plan, np.arange(5), tmp_path / "e", ledger=ledger)
    said = ledger.statement()
    assert (said.person.rho, said.event.rho) == (2 * rho, rho)
    assert "no total per person, as 1 release enforces no bound" in str(said)


@pytest.mark.parametrize("memory", [True, False])
def test_a_stream_is_entered_for_each_span_before_its_first_step(memory, ledger, tmp_path, monkeypatch):
    plan, persons = planned(memory=memory), dp.Persons(span=SPAN)
    rho = Loss((plan.shift,)).zcdp()[0]

    def sizes():
        return [x.entry.size for x in ledger.lines]

    with dp.open_stream(plan, tmp_path / "s", persons=persons, ledger=ledger) as stream:
        assert sizes() == [1]
        stream.push(events(SPAN))
        assert sizes() == [1]
        stream.push(events(1))
        assert sizes() == [1, 2]
        stream.push(events(1))
    with monkeypatch.context() as patch, dp.open_stream(plan, tmp_path / "s", persons=persons, ledger=ledger) as stream:
        patch.setattr(ReleaseStore, "append", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.push(events(2 * SPAN))  # into the fourth span
    assert sizes() == [1, 2, 4]
    with dp.open_stream(plan, tmp_path / "s", persons=persons, ledger=ledger) as stream:
        assert stream.position == 6
        stream.push(events(2 * SPAN))
        assert sizes() == [1, 2, 4]
        stream.push(events(SPAN))
    assert sizes() == [1, 2, 4, 5]
    said = ledger.statement()
    assert said.person.rho == rho * (25 if memory else 5)
    assert said.person.n_entries == 1
    assert ledger.lines[-1].entry.count == 5 * SPAN


def interrupt(*args, **options):
    raise KeyboardInterrupt


def test_a_span_that_an_interrupted_push_has_entered_is_witnessed_by_the_next(ledger, tmp_path, monkeypatch):
    """Else a ledger that was set back to before that entry would pass for whole."""
    plan, options = planned(memory=True), {"persons": dp.Persons(span=SPAN), "ledger": ledger}
    with dp.open_stream(plan, tmp_path / "s", **options) as stream:
        stream.push(events(SPAN))
    before = ledger.path.read_bytes()
    with monkeypatch.context() as patch, dp.open_stream(plan, tmp_path / "s", **options) as stream:
        patch.setattr(ReleaseStore, "append", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.push(events(2 * SPAN))
    with dp.open_stream(plan, tmp_path / "s", **options) as stream:
        stream.push(events(1))
    assert [x.entry.size for x in ledger.lines] == [1, 3]
    ledger.path.write_bytes(before)
    with pytest.raises(dp.ReleaseError, match="was set back"):
        dp.open_stream(plan, tmp_path / "s", **options)


def test_a_stream_goes_on_where_nothing_is_proven_of_all_its_spans_any_more(ledger, tmp_path):
    """Of canonical noise the δ of a group grows as e^{sε} does: the ledger says that the total is unbounded."""
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    mechanism = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 0.05), chain, noise="canonical")
    options = {"persons": dp.Persons(span=2), "ledger": ledger}
    said = []
    with dp.open_stream(mechanism, tmp_path / "s", dp.Inputs(0, 1), **options) as stream:
        for _ in range(5):
            stream.push(dp.Events(step=[0], stream=[0], person=["a"], n_steps=2))
            total = ledger.statement().person
            said.append((total.epsilon, float(total.sum_of_deltas)))
    deltas = np.cumsum(0.05 * np.exp(np.arange(5)))
    assert [x for x, _ in said] == [1, 2, 3, np.inf, np.inf]
    assert [x for _, x in said] == pytest.approx(np.minimum(deltas, 1))
    text = " ".join(str(ledger.statement()).split())
    assert "epsilon unbounded together; the epsilons add up to 5, with deltas of 1, and rho to 12.5" in text


def test_a_stream_stops_before_the_span_that_is_beyond_the_cap(tmp_path):
    plan, persons = planned(memory=True), dp.Persons(span=SPAN)
    rho = float(Loss((plan.shift,)).zcdp()[0])
    ledger = dp.Ledger.create(tmp_path / "ledger" / "l.sqlite", "guests", cap_rho=4.5 * rho)
    with dp.open_stream(plan, tmp_path / "s", persons=persons, ledger=ledger) as stream:
        stream.push(events(2 * SPAN - 1))
        with pytest.raises(dp.ReleaseError, match="beyond the cap"):
            stream.push(events(2))
        assert stream.position == 2 * SPAN - 1
        stream.push(events(1))
        with pytest.raises(dp.ReleaseError, match="beyond the cap"):
            stream.push(events(1))
    assert [x.entry.size for x in ledger.lines] == [1, 2]


def test_what_protected_persons_before_it_had_a_ledger_is_entered_so(ledger, tmp_path):
    plan, persons = planned(memory=True), dp.Persons(span=SPAN)
    dp.release(plan, events(7), tmp_path / "s", persons=persons)
    dp.release(plan, events(2), tmp_path / "s", first=8, persons=persons, ledger=ledger)
    assert [(x.entry.unit, x.entry.size) for x in ledger.lines] == [("person", 2), ("person", 1)]
    with dp.open_stream(plan, tmp_path / "t", persons=persons) as stream:
        stream.push(events(2 * SPAN + 1))
    with dp.open_stream(plan, tmp_path / "t", persons=persons, ledger=ledger) as stream:
        stream.push(events(1))
    assert [(x.entry.unit, x.entry.size) for x in ledger.lines[2:]] == [("person", 3)]


def test_the_command_enters_persons_and_refuses_them_beyond_the_cap_before_it_reads(tmp_path, capsys):
    dp.save(planned(memory=True).mechanism, tmp_path / "m.json")
    (tmp_path / "log.csv").write_text("t,who\n" + "".join(f"2020-01-01T{h:02}:30,p{h % 3}\n" for h in range(8)))
    file = tmp_path / "ledger" / "l.sqlite"
    rho = float(Loss((planned(memory=True).shift,)).zcdp()[0])
    ledger = dp.Ledger.create(file, "guests", cap_rho=6 * rho)

    def words(out):
        given = {"mechanism": tmp_path / "m.json", "out": tmp_path / out, "ledger": file, "time": "t", "person": "who"}
        given |= {"start": "2020-01-01", "end": "2020-01-01T08:00", "period": "1h", "person-span": "4h", "high": 20}
        pairs = [str(x) for name, value in given.items() for x in (f"--{name}", value)]
        return ["release", str(tmp_path / "log.csv"), *pairs, "--tolerance", "0.1", "--quiet"]

    assert main(words("out")) == 0
    capsys.readouterr()
    (line,) = ledger.lines
    assert (line.entry.unit, line.entry.size, line.entry.count) == ("person", 2, 8)
    assert line.entry.loss.zcdp()[0] == pytest.approx(4 * rho)
    (tmp_path / "log.csv").unlink()
    assert "beyond the cap" in refusal(words("other"), capsys)
    assert main(words("out")) == 0  # nothing more is spent
    assert "Ledger of 'guests': 1 entry of 1 store" in str(ledger.statement())

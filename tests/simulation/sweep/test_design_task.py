"""Designs on a worker: what travels there and back, warnings, and workers of another version."""

import pickle
import pickletools
import threading
import time
import warnings

import pytest

import dpfast as dp
from dpfast.design.catalogue import FAMILIES
from dpfast.simulation.sweep.design_cache import DesignCache
from dpfast.simulation.sweep.design_task import make_design
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.sweep_store import SweepStore

GRID = {"target": "ba:1,0.9/1,-0.9", "model": "arma:1/1,-0.5", "epsilon": 1, "delta": 1e-3, "mechanism": "zero_forcing"}


def tasks(grid=GRID, **options):
    return DesignCache(SweepStore(None), ParameterGrid(grid | options)).missing_tasks()


def test_tasks_and_answers_travel():
    (task,) = tasks(mechanism="lmmse", lag=1, tolerance=0.05)
    there = pickle.loads(pickle.dumps(task))
    assert vars(there) == vars(task)
    answer = make_design(there)
    back = pickle.loads(pickle.dumps(answer))
    assert back.to_text() == answer.to_text() == make_design(task).to_text()


def test_warnings_of_a_design_are_its_notes_and_others_go_on(monkeypatch):
    real = FAMILIES["zero_forcing"].design

    def warned(**given):
        warnings.warn("not reached", dp.ToleranceWarning, stacklevel=1)
        warnings.warn("not certified", dp.ConvergenceWarning, stacklevel=1)
        warnings.warn("something else", RuntimeWarning, stacklevel=1)
        return real(**given)

    monkeypatch.setitem(FAMILIES, "zero_forcing", FAMILIES["zero_forcing"]._replace(design=warned))
    (task,) = tasks()
    with pytest.warns(RuntimeWarning, match="something else"):
        answer = make_design(task)
    assert answer.notes == ("not reached", "not certified")


def test_designs_of_several_threads_keep_their_own_notes(monkeypatch):
    real = FAMILIES["zero_forcing"].design

    def warned(**given):
        for _ in range(5):
            warnings.warn(f"epsilon {given['privacy'].epsilon:g}", dp.ToleranceWarning, stacklevel=1)
            time.sleep(1e-3)
        return real(**given)

    monkeypatch.setitem(FAMILIES, "zero_forcing", FAMILIES["zero_forcing"]._replace(design=warned))
    found, notes = tasks(epsilon=[1, 2, 3]), {}
    threads = [threading.Thread(target=lambda x=x: notes.update({x.key: make_design(x).notes})) for x in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [notes[x.key] for x in found] == [("epsilon 1",), ("epsilon 2",), ("epsilon 3",)]


def test_a_worker_of_another_version_says_so(monkeypatch):
    (task,) = tasks()
    monkeypatch.setattr("dpfast._support.version.__version__", "0.0.1")
    with pytest.raises(dp.DataError, match=r"workers must run dpfast .* got 0\.0\.1: install the same version"):
        make_design(task)


def test_a_task_names_no_other_class_that_another_version_may_lack():
    (task,) = tasks({"mechanism": dp.zero_forcing(dp.Filter([1, 0.5]), dp.Privacy(1, 1e-3)), "stream": "arma:1"})
    (other,) = tasks(mechanism="lmmse", lag=None, tolerance=0.05, prefilter={"b": [1, 0.5]})
    for x in (task, other):
        words = [x for _, x, _ in pickletools.genops(pickle.dumps(x)) if isinstance(x, str)]
        assert [x for x in words if x.startswith("dpfast.")] == ["dpfast.simulation.sweep.design_task"]

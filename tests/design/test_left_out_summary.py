"""What is printed of mechanisms that are not in a table: counts of what they need, and the names of the others."""

import collections
import re

import pytest

import dpfast as dp
from dpfast.design.best_candidates import NO_HORIZON, WAITS, candidates, other_families
from dpfast.design.best_demand import Demand
from dpfast.design.left_out_summary import say_left_out

COUNTS = dp.ARMA([1], [1, -0.5], mean=2)
TASKS = {
    "counts": Demand(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6), COUNTS, 2, 0.01),
    "without delta": Demand(dp.Filter([0.5, 0.5]), dp.Privacy(1), COUNTS, 2, 0.01),
    "without a model": Demand(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6), None, 2, 0.01),
    "over a horizon": Demand(dp.running_sum(8), dp.Privacy(1, 1e-6), None, 0, 0.01),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_each_mechanism_is_counted_or_named_once(task):
    """Beside a count of the reasons as they are given."""
    reasons = [(x.label, why) for x in candidates(task) if (why := x.reason_against(task))] + other_families(task)
    said = say_left_out(reasons, (), "design.md")
    whole = int(re.match(r"Not in the table are (\d+) mechanisms\. ", said)[1])
    needed = re.search(r"\. (\d+) needs? something else: (.*?)\. ", said)
    named = re.search(r"\. (\d+) do(?:es)? not serve here: (.*?)\. design.md says why\.$", said)
    assert whole == len(reasons) == int(needed[1]) + int(named[1] if named else 0)
    of_each = collections.Counter(why for _, why in reasons)
    found = sorted(map(int, re.findall(r"\((\d+)\)", needed[2])))
    others = [] if named is None else named[2].split(", ")
    assert sum(found) == int(needed[1])
    assert {*found} <= {*of_each.values()}
    assert {*others} == {label for label, why in reasons if of_each[why] not in found} or len(others) < whole
    if of_each[NO_HORIZON]:
        assert f"a target over a horizon, in Python ({of_each[NO_HORIZON]})" in said
    if of_each[WAITS]:
        assert f"the whole input, by --batch ({of_each[WAITS]})" in said


def test_what_is_in_the_table_is_not_left_out():
    reasons = [("LMMSE smoother", WAITS), ("robust", "use robust")]
    assert say_left_out(reasons, {"LMMSE smoother"}, "a.md") == (
        "Not in the table is 1 mechanism. 1 does not serve here: robust. a.md says why."
    )
    assert say_left_out(reasons, {"LMMSE smoother", "robust"}, "a.md") == say_left_out([], (), "a.md") == ""

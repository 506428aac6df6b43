"""What tests that kill have counted, for the table that `nox -s engines` makes of the report of pytest."""

import json


def note(record_property, delivery, counts, *, what, times, engine="the stream alone"):
    """Enter in the report what was done to a delivery how often, and what a reader has counted."""
    row = {"what": what, "arbiter": delivery.arbiter.name, "engine": engine, "depth": delivery.depth, "times": times}
    record_property("engines", json.dumps(row | counts._asdict()))

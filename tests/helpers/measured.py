"""What tests that kill have counted, for the table that `nox -s engines` makes of the report of pytest."""

import json


def note(record_property, *, arbiter, engine, kills, counts, depth=0, what="killed"):
    row = {"what": what, "arbiter": arbiter, "engine": engine, "depth": depth, "kills": kills, **counts._asdict()}
    record_property("engines", json.dumps(row))

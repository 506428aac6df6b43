"""Files of mechanisms, written and forged by hand, from the format as docs/reference/mechanism-file.md has it."""

import hashlib
import json
import pickle

import numpy as np

import dpfast as dp


def stamped(document):
    """The document with the checksum that it should have."""
    content = {k: v for k, v in document.items() if k != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "checksum": "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()}


def through(mechanism, folder):
    """The mechanism, saved and loaded."""
    path = folder / "mechanism.json"
    dp.save(mechanism, path)
    return dp.load(path)


def kept(mechanism, u, folder):
    """The mechanism out of a file and out of a pickle; both predict and simulate the same to the bit."""
    found = through(mechanism, folder), pickle.loads(pickle.dumps(mechanism))
    for other in found:
        np.testing.assert_array_equal(other.simulate(u, seed=2).estimate, mechanism.simulate(u, seed=2).estimate)
        assert other.predicted_mse == mechanism.predicted_mse
    return found


def documents(mechanism, folder):
    """What the file of a mechanism says."""
    dp.save(mechanism, folder / "mechanism.json")
    return json.loads((folder / "mechanism.json").read_text())


def written(document, folder):
    """A file that says this, in the folder."""
    path = folder / "changed.json"
    path.write_text(json.dumps(document))
    return path


def at(document, path):
    """The object that a field is in, and its name there."""
    *parents, last = path.split(".")
    for name in parents:
        document = document[name]
    return document, last


def forged(document, changes):
    """The document with other values in fields of the mechanism, and the checksum of those."""
    changed = json.loads(json.dumps(document))
    for path, value in changes.items():
        inner, last = at(changed["mechanism"], path)
        inner[last] = value(inner[last]) if callable(value) else value
    return stamped(changed)

"""Saved mechanisms. Checksums and noise are computed by hand, from the format in docs/reference/mechanism-file.md."""

import dataclasses
import importlib
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import MadeOnce
from helpers.mechanism_files import at, documents, stamped, through, written
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
import dpfast.design
from dpfast.mechanisms import operators
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.serialization.parts import OPERATORS

TARGET, PRIVACY = dp.Filter([1, 0.5], [1, -0.8]), dp.Privacy(1.0, 0.05)
G = dp.Filter([1, -0.2], [1, -0.6])
CHAIN = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0], source="public")
PAGE = Path(__file__).parents[3] / "docs/reference/mechanism-file.md"


def feedback(model=CHAIN, **options):
    return dp.decision_feedback(TARGET, PRIVACY, model, prefilter=G, n_forward=6, **{"n_feedback": 2} | options)


FILTERS = {
    "linear": lambda: dp.lmmse(TARGET, PRIVACY, CHAIN, lag=2, prefilter=G),
    "smoother": lambda: dp.lmmse(TARGET, PRIVACY, dp.IndependentLevels([2, 0, 5], [0.3, 0.3, 0.4]), prefilter=G),
    "feedback": feedback,
    "no model": lambda: dp.zero_forcing(TARGET, PRIVACY, name="null ‖G‖ \ud800\n"),
    "robust": lambda: dp.robust(TARGET, PRIVACY, mean_square=2.0, tolerance=0.1),
    "arma": lambda: dp.lmmse(
        TARGET, PRIVACY, dp.ARMA.fit(np.random.default_rng(1).normal(5, 1, 99), 3), lag=0, prefilter=G
    ),
}
MATRICES = {
    "Toeplitz": lambda: dp.square_root(TARGET, PRIVACY, horizon=9),
    "buffers": lambda: dp.buffered_toeplitz(TARGET, PRIVACY, horizon=9, n_buffers=2),
    "tree": lambda: dp.binary_tree(dp.running_sum(9), PRIVACY, noise="laplace"),
    "plain tree": lambda: dp.binary_tree(dp.running_sum(8), PRIVACY, estimator="plain"),
    "Fourier": lambda: dp.fourier_perturbation(dp.running_sum(6), PRIVACY, n_coefficients=3),
    "decoder": lambda: dp.compressive(dp.running_sum(8), PRIVACY, n_measurements=4, basis="haar"),
    "decay": lambda: dp.decayed_sum(dp.polynomial_decay(1, 8), PRIVACY),
    "least error": lambda: dp.optimal_factorization(TARGET, PRIVACY, CHAIN, horizon=6, lag=1),
    "biased": lambda: dp.MatrixMechanism(
        *("every second", dp.running_sum(4), PRIVACY, Dense(np.eye(4)[::2]), Dense(np.ones((4, 2)))),
        model=CHAIN,
        centre=0.5,
        lag=None,
        unbiased=False,
        ideal_mse=3.0,
        options=(("n_coefficients", 2),),
    ),
}
EXAMPLES = MadeOnce(FILTERS | MATRICES)
EVERY = pytest.mark.parametrize("mechanism", EXAMPLES, indirect=True)


@pytest.fixture
def mechanism(request):
    return EXAMPLES[request.param]


# --- there and back -------------------------------------------------------------------------------

unit = st.floats(-0.95, 0.95)
chains = st.floats(0.05, 0.95).map(lambda p: dp.MarkovChain([[p, 1 - p], [1 / 3, 2 / 3]], [0, 0.1]))
levels = st.lists(st.floats(0.1, 3), min_size=2, max_size=5).map(
    lambda w: dp.IndependentLevels(np.arange(len(w))[::-1] / 7, np.array(w) / sum(w), source="public")
)
gaussian = st.tuples(unit, unit, st.floats(-10, 10)).map(
    lambda x: dp.ARMA([1, x[0]], np.convolve([1, x[1]], [1, -0.3]), mean=x[2], levels=[-1e3, 0.1, 1e3])
)
filters = st.tuples(st.floats(0.1, 9), unit, unit).map(lambda x: dp.Filter([x[0], x[0] * x[1]], [1, x[2]]))
privacies = st.builds(
    dp.Privacy,
    st.floats(0.01, 20),
    st.floats(1e-12, 0.4),
    max_change=st.floats(1e-3, 1e3),
    max_events=st.integers(1, 3),
    calibration=st.sampled_from(["exact", "paper"]),
)


@st.composite
def mechanisms(draw):
    target, g, privacy, model = draw(filters), draw(filters), draw(privacies), draw(st.one_of(chains, levels, gaussian))
    kind = draw(st.sampled_from(["lmmse", "feedback", "input", "output"]))
    if kind == "lmmse":
        made = dp.lmmse(target, privacy, model, lag=draw(st.sampled_from([None, 0, 3])), prefilter=g)
    elif kind == "feedback":
        decision = draw(st.sampled_from(["soft", "quantizer"]))
        sizes = {"n_forward": draw(st.integers(1, 9)), "n_feedback": draw(st.integers(0, 3))}
        made = dp.decision_feedback(target, privacy, model, prefilter=g, decision=decision, **sizes)
    else:
        made = getattr(dp, f"{kind}_perturbation")(target, privacy)
    names = draw(st.lists(st.sampled_from(list(made.sources)), unique=True))
    words = st.sampled_from(["public", "assumed", "fitted-from-private"])
    made = made.with_sources(**{name: draw(words) for name in names})
    return dataclasses.replace(made, name=draw(st.text()))


@settings(max_examples=5)
@given(mechanisms())
def test_a_mechanism_comes_back_to_the_bit(tmp_path_factory, mechanism):
    folder = tmp_path_factory.mktemp("files")
    loaded = through(mechanism, folder)
    u = np.random.default_rng(1).normal(size=(2, 50))
    for before, after in zip(mechanism.simulate(u, seed=7), loaded.simulate(u, seed=7), strict=True):
        np.testing.assert_array_equal(before, after)
    same = (
        "name",
        "target",
        "privacy",
        "prefilter",
        "noise_std",
        "lag",
        "ideal_mse",
        "lower_bound_mse",
        "mean_square",
        "options",
    )
    for name in (*same, "predicted_mse", "sources"):
        assert getattr(loaded, name) == getattr(mechanism, name)
    if mechanism.model is not None:
        samples = [x.model.sample(2, 20, seed=3) for x in (mechanism, loaded)]
        np.testing.assert_array_equal(*samples)
        assert loaded.model.mean == mechanism.model.mean
        assert loaded.model.source == mechanism.model.source
    first = (folder / "mechanism.json").read_bytes()
    dp.save(loaded, folder / "again.json")
    assert (folder / "again.json").read_bytes() == first


@EVERY
def test_examples_come_back_with_their_model_and_sources(mechanism, tmp_path):
    loaded = through(mechanism, tmp_path)
    assert loaded.sources == mechanism.sources
    assert loaded.summary() == mechanism.summary()
    assert type(loaded.model) is type(mechanism.model)
    if isinstance(loaded.model, dp.ARMA):
        assert loaded.model.fitted_order == 3


def test_every_operator_of_the_package_is_known_by_name():
    modules = [
        importlib.import_module(f"{operators.__name__}.{x.name}") for x in pkgutil.iter_modules(operators.__path__)
    ]
    found = {x for m in modules for x in vars(m).values() if hasattr(x, "squared_rows")}
    assert {x for x in found if hasattr(x, "_fields")} == set(OPERATORS.values())


@pytest.mark.parametrize("mechanism", MATRICES, indirect=True)
def test_a_matrix_mechanism_comes_back_to_the_bit(mechanism, tmp_path):
    loaded = through(mechanism, tmp_path)
    u = np.random.default_rng(1).normal(size=(2, mechanism.horizon))
    for before, after in zip(mechanism.simulate(u, seed=7)[:2], loaded.simulate(u, seed=7)[:2], strict=True):
        np.testing.assert_array_equal(before, after)
    assert type(loaded.strategy) is type(mechanism.strategy)
    assert type(loaded.reconstruction) is type(mechanism.reconstruction)
    same = (
        "name",
        "target",
        "privacy",
        "noise",
        "noise_std",
        "centre",
        "lag",
        "unbiased",
        "ideal_mse",
        "predicted_mse",
    )
    for name in (*same, "lower_bound_mse", "options", "sources"):
        assert getattr(loaded, name) == getattr(mechanism, name)
    first = (tmp_path / "mechanism.json").read_bytes()
    dp.save(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": [1.0, 1.0, 2.0]}, "unbiased must be False here"),
        ({"indices": [0, 1, 0], "data": [1.0, 2.0, 2.0]}, "indices must be columns, and grow within each row"),
        ({"indices": [0, 1, 1]}, "indices must be columns, and grow within each row"),
        ({"indices": [0, 0, 2]}, "indices must be columns"),
        ({"indices": [-1, 0, 1]}, "indices must be columns"),
        ({"indices": [0, 0.5, 1]}, "indices must be an array of integers"),
        ({"indptr": [0, 2, 1, 3]}, "indptr must begin with 0, never fall"),
        ({"indptr": [0, 1, 2]}, "indptr must begin with 0, never fall"),
        ({"indptr": []}, "indptr must have 1 dimension and not be empty"),
        ({"n_columns": 3}, "must be .*, as the horizon is 2"),
        ({"n_columns": 2.0}, "n_columns must be an integer"),
        ({"kind": "exec"}, "strategy.kind must be one of 'convolution', 'dense', 'sparse', 'buffered-toeplitz'"),
        ({"kind": "dense"}, "field mechanism.strategy.entries must be there"),
        ({"more": 1}, "field mechanism.strategy.more must not be there"),
    ],
)
def test_a_sparse_strategy_that_would_lie_about_its_columns_is_refused(changes, message, tmp_path):
    """Its norms are read from sorted rows: others would make the noise too small."""
    document = documents(dp.binary_tree(dp.running_sum(2), PRIVACY), tmp_path)
    assert document["mechanism"]["strategy"]["indices"] == [0, 1, 0, 1]
    strategy = {"kind": "sparse", "data": [1.0, 1.0, 1.0], "indices": [0, 0, 1], "indptr": [0, 1, 3], "n_columns": 2}
    eye = {"kind": "dense", "entries": [[1.0, 0.0], [0.0, 1.0]]}
    document["mechanism"] |= {"strategy": strategy | changes, "reconstruction": eye}
    with pytest.raises(dp.DataError, match=message):
        dp.load(written(stamped(document), tmp_path))


@pytest.mark.parametrize(
    ("example", "path", "value", "message"),
    [
        ("tree", "noise_std", 1e-3, "as the sensitivity of the strategy makes it, .* below what the guarantee takes"),
        ("tree", "noise", "gaussian", "noise_std must be"),
        ("tree", "noise", "uniform", "noise must be one of 'gaussian', 'laplace'"),
        ("tree", "predicted_mse", 1.0, "predicted_mse must be .*, the error of these matrices"),
        ("tree", "reconstruction.horizon", 0, "reconstruction cannot be used: horizon must be"),
        ("tree", "reconstruction.horizon", 8, "reconstruction must be"),
        ("tree", "reconstruction.gain", 2.0, "unbiased must be False here"),
        ("tree", "lag", -1, "mechanism.lag must be an integer, at least 0"),
        ("tree", "unbiased", 1, "mechanism.unbiased must be true or false"),
        ("tree", "target.coefficients", [0.0], "target cannot be used: coefficients must not all be zero"),
        ("Toeplitz", "strategy.coefficients", [], "strategy cannot be used: coefficients must"),
        ("Toeplitz", "strategy.coefficients", [[1.0]], "strategy cannot be used: coefficients must have 1 dimension"),
        ("buffers", "strategy.poles", [0.5], "strategy cannot be used: poles must be as many as zeros, got 1 and 2"),
        ("plain tree", "reconstruction.shares", [1.0, 0.0], "shares must be one for each of at most 4 levels"),
        ("decoder", "reconstruction.basis", "db4", "reconstruction cannot be used: basis must be one of"),
        ("decoder", "reconstruction.penalty", 0.0, "reconstruction cannot be used: penalty must be"),
        ("decoder", "reconstruction.projection", [[1.0]], "strategy and reconstruction must be"),
        ("biased", "strategy.entries", [1.0, 2.0], "strategy cannot be used: entries must have 2 dimensions"),
        ("biased", "centre", None, "centre must be a finite number"),
    ],
)
def test_fields_of_matrix_mechanisms_are_checked(example, path, value, message, tmp_path):
    document = documents(EXAMPLES[example], tmp_path)
    inner, last = at(document["mechanism"], path)
    inner[last] = value
    with pytest.raises(dp.DataError, match=message):
        dp.load(written(stamped(document), tmp_path))


def test_a_file_that_could_not_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("dpfast.mechanisms.serialization.size_limits.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"must be of at most 1,000 bytes, got .*: shorten the horizon"):
        dp.save(EXAMPLES["plain tree"], tmp_path / "mechanism.json")
    assert list(tmp_path.iterdir()) == []


@EVERY
def test_files_are_strict_json_of_known_fields(mechanism, tmp_path):
    document = documents(mechanism, tmp_path)
    assert list(document) == ["format", "version", "dpfast", "mechanism", "checksum"]
    version = 2 if isinstance(mechanism, dp.MatrixMechanism) else 1
    assert (document["format"], document["version"], document["dpfast"]) == (
        "dpfast-mechanism",
        version,
        dp.__version__,
    )
    assert document == stamped(document)
    content = document["mechanism"]
    assert content["noise_std"] == mechanism.noise_std
    assert content["predicted_mse"] == mechanism.predicted_mse
    assert content["options"] == dict(mechanism.options)


def every_field(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from every_field(inner)


@EVERY
def test_every_field_is_in_the_page_on_the_format(mechanism, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    content = documents(mechanism, tmp_path)
    del content["mechanism"]["sources"]  # names of inputs, which are in it under other names
    assert [x for x in every_field(content) if f"`{x}`" not in page] == []


class Own:
    """Somebody's own model."""

    mean, variance, levels, probabilities, source = 0.5, 1.25, None, None, "public"
    shaping = dp.Filter([1, 0.5])

    def psd(self, omega):
        return np.abs(self.shaping.response(omega)) ** 2

    def sample(self, n_streams, n_samples, *, seed):
        return np.zeros((n_streams, n_samples))

    def compiled(self):
        return dp.ARMA([1]).compiled()


def test_a_model_of_one_s_own_comes_back_as_its_spectrum_mean_and_source(tmp_path):
    mechanism = dp.lmmse(TARGET, PRIVACY, Own(), prefilter=G)
    loaded = through(mechanism, tmp_path)
    assert isinstance(loaded.model, dp.ARMA)
    assert (loaded.model.mean, loaded.model.source) == (0.5, "public")
    assert loaded.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"variance": 2.0}, "its shaping filter must have its variance 2, got 1.25"),
        ({"levels": np.array([0.0, 1.0])}, "variance of at most"),
        ({"psd": lambda self, omega: np.ones(np.shape(omega))}, "predicted_mse"),
    ],
)
def test_a_model_that_is_not_its_spectrum_is_refused_and_nothing_written(change, reason, tmp_path):
    other = type("Other", (Own,), change)()
    mechanism = dp.lmmse(TARGET, PRIVACY, other, prefilter=G)
    with pytest.raises(ValueError, match=rf"cannot be saved: .*{re.escape(reason)}"):
        dp.save(mechanism, tmp_path / "mechanism.json")
    assert list(tmp_path.iterdir()) == []


def test_a_receiver_of_another_target_is_refused(tmp_path):
    with pytest.raises(ValueError, match="its receiver is for another target"):
        dp.save(dataclasses.replace(EXAMPLES["linear"], target=G), tmp_path / "mechanism.json")


def test_what_cannot_be_written_is_one_error_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "mechanism.json"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(dp.DataError, match="No space left on device"):
            dp.save(EXAMPLES["linear"], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(dp.DataError, match="cannot write"):
        dp.save(EXAMPLES["linear"], path / "below")
    with pytest.raises(dp.DataError, match="is there, and no regular file"):
        dp.save(EXAMPLES["linear"], tmp_path)


def test_no_folder_is_made(tmp_path):
    """A mistyped path is an error, and not a new folder."""
    missing = tmp_path / "desings" / "deeper"
    with pytest.raises(dp.DataError, match=f"there is no folder {re.escape(str(missing))}; make it, or choose another"):
        dp.save(EXAMPLES["linear"], missing / "mechanism.json")
    assert list(tmp_path.iterdir()) == []
    for path in ("", ".", "/"):
        with pytest.raises(ValueError, match="path must be a file"):
            dp.save(EXAMPLES["linear"], path)


def test_arguments_of_another_kind_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"^mechanism must be a Mechanism"):
        dp.save("LZF", tmp_path / "mechanism.json")
    for path in (None, 3, [str(tmp_path)]):
        with pytest.raises(ValueError, match=r"^path must be a path"):
            dp.save(EXAMPLES["linear"], path)
        with pytest.raises(ValueError, match=r"^path must be a path"):
            dp.load(path)


# --- files that are not to be trusted -------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be JSON"),
        (b"\x80\x04\x95pickle", "must be a text in UTF-8"),
        (b"[1]", "is it a file that dpfast.save wrote"),
        (b'{"b": [1]}', "must have the field format"),
        (b'{"format": "dpfast-mechanism", "format": 1}', "'format' must be there once, got it 2 times"),
        (b'{"format": NaN}', "finite"),
        (b'{"format": 1e999}', "finite"),
        (b"[" * 100_000, "cannot be used"),
        (b"1" * 5000, "cannot be used"),
        (b'{"format": "dpfast-mechanism"}', "field version must be there"),
        (b'{"format": "dpfast-mechanism", "version": 6}', "at most 5, got 6: install a newer dpfast"),
        (b'{"format": "dpfast-mechanism", "version": true}', "version must be an integer"),
    ],
    ids=lambda x: x[:20].decode("ascii", "replace") if isinstance(x, bytes) else "",
)
def test_other_files_are_refused_by_name(content, message, tmp_path):
    path = tmp_path / "strange.json"
    path.write_bytes(content)
    with pytest.raises(dp.DataError, match=re.escape(message)) as error:
        dp.load(path)
    assert str(path) in str(error.value)


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path):
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(dp.DataError, match=f"cannot read {re.escape(str(path))}"):
            dp.load(path)


def test_a_changed_file_is_refused(tmp_path):
    document = documents(EXAMPLES["linear"], tmp_path)
    document["mechanism"]["name"] = "better"
    with pytest.raises(dp.DataError, match="damaged or changed"):
        dp.load(written(document, tmp_path))


def test_spaces_and_order_do_not_matter(tmp_path):
    document = documents(EXAMPLES["linear"], tmp_path)
    path = tmp_path / "turned.json"
    path.write_text(json.dumps(dict(reversed(document.items())), indent=8))
    assert dp.load(path).noise_std == EXAMPLES["linear"].noise_std


@pytest.mark.parametrize(
    ("example", "path", "value", "message"),
    [
        ("linear", "noise_std", 1e-3, "below what the guarantee takes"),
        ("linear", "noise_std", 1e3, "noise_std must be .* as the sensitivity of the prefilter makes it"),
        ("linear", "noise_std", None, "noise_std must be a finite number above 0, got None"),
        ("linear", "privacy.epsilon", 0.5, "noise_std .* below what the guarantee takes"),
        ("linear", "privacy.epsilon", -1, "privacy cannot be used: epsilon"),
        ("linear", "privacy.calibration", "loose", "privacy cannot be used: calibration"),
        ("linear", "privacy.more", 1, "field mechanism.privacy.more must not be there"),
        ("linear", "prefilter.taps", [2.0], "noise_std"),
        ("linear", "prefilter.taps", "1", "prefilter.taps must be an array of numbers"),
        ("linear", "prefilter.taps", [True], "prefilter.taps must be an array of numbers"),
        ("linear", "prefilter.taps", [], "prefilter.taps must not be empty"),
        ("linear", "prefilter.sections", [[1, 0, 0, 1, -1.5, 0]], "prefilter cannot be used: .* stable"),
        (
            "linear",
            "prefilter.sections",
            [[1, 2], [3]],
            "field mechanism.prefilter.sections must be an array of numbers, got rows of unequal",
        ),
        ("linear", "prefilter.sections", 3, "prefilter.sections must be an array"),
        ("linear", "predicted_mse", 0.1, "predicted_mse must be .* the error of these filters"),
        ("linear", "predicted_mse", None, "predicted_mse must be"),
        ("linear", "ideal_mse", -1.0, "ideal_mse must be null or at least 0"),
        ("linear", "receiver.lag", 2.0, "receiver.lag must be an integer"),
        ("linear", "receiver.lag", 10**6, "receiver.lag must be an integer"),
        ("linear", "receiver.lag", 3, "predicted_mse"),
        ("linear", "receiver.kind", "exec", "receiver.kind must be one of"),
        ("linear", "receiver.mean", "0", "receiver.mean must be a finite number"),
        ("linear", "model.kind", "secret", "model.kind must be one of"),
        ("linear", "model.transition", [[1, 0], [0, 1]], "model cannot be used: transition must be irreducible"),
        ("linear", "model.source", "secret", "model.source must be one of"),
        ("linear", "model.source", "fitted-from-private", "field mechanism.sources must be those"),
        ("linear", "model", [1], "field mechanism.model must be an object"),
        ("linear", "sources.lag", "secret", "sources.lag must be one of"),
        ("linear", "sources.wind", "public", "field mechanism.sources must be those"),
        ("linear", "options.lag", [1], "options.lag must be a number, a word or null"),
        ("linear", "options.wind", 1, "field mechanism.sources must be those"),
        ("linear", "name", 1, "name must be text"),
        ("linear", "extra", 1, "field mechanism.extra must not be there"),
        ("feedback", "receiver.levels", [1.0, 0.0], "receiver.levels must grow"),
        ("feedback", "receiver.probabilities", [0.5, 0.6], "sum to one"),
        ("feedback", "receiver.decision", "guess", "receiver.decision must be one of"),
        ("feedback", "receiver.error_variance", 0, "receiver.error_variance must be a finite number above 0"),
        ("arma", "model.fitted_order", -1, "model cannot be used: fitted_order"),
        ("arma", "model.levels", [0, 0.1], "model cannot be used: levels"),
    ],
)
def test_each_field_is_checked_and_named(example, path, value, message, tmp_path):
    document = documents(EXAMPLES[example], tmp_path)
    inner, last = at(document["mechanism"], path)
    inner[last] = value
    with pytest.raises(dp.DataError, match=message) as error:
        dp.load(written(stamped(document), tmp_path))
    assert "changed.json" in str(error.value)


@EVERY
def test_every_field_is_needed(mechanism, tmp_path):
    def paths(value, prefix=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield f"{prefix}{key}"
                yield from paths(inner, f"{prefix}{key}.")

    document = documents(mechanism, tmp_path)
    for path in paths(document["mechanism"]):
        changed = json.loads(json.dumps(document))
        inner, last = at(changed["mechanism"], path)
        del inner[last]
        with pytest.raises(dp.DataError, match=rf"{re.escape(last)}|sources must be those"):
            dp.load(written(stamped(changed), tmp_path))


def refusal(path):
    try:
        dp.load(path)
    except dp.DataError as error:
        return str(error)
    return None


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats(allow_nan=False, width=64)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_no_file_leads_to_another_exception(tmp_path_factory, data):
    """A random place is replaced or cut; the checksum fits, or the text is cut anywhere."""
    folder = tmp_path_factory.mktemp("fuzz")
    document = documents(EXAMPLES[data.draw(st.sampled_from(list(EXAMPLES)))], folder)
    if data.draw(st.booleans()):
        text = json.dumps(document)
        path = folder / "cut.json"
        path.write_text(text[: data.draw(st.integers(0, len(text) - 1))])
    else:
        place, key = document["mechanism"], data.draw(st.sampled_from(list(document["mechanism"])))
        while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
        place[key] = data.draw(anything)
        path = written(stamped(document), folder)
    assert str(path) in (refusal(path) or str(path))

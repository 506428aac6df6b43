"""The project's checks: `nox` runs lint and tests, `nox -s NAME` one of them, `nox --list` shows all."""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests"]

OLDER = {"haswell": "+avx2,+fma", "x86-64-v2": ""}  # processors and their features: AVX2 with FMA, SSE without
STUDIES = ("map", "decision-feedback", "two-events", "counters", "noise")
PROGRAMS = ("adapting", "airports")  # studies that are programs
PICTURES = (
    "map/winners.png",
    "map/rmse-over-lag.png",
    "map/rmse-over-epsilon.png",
    "map/paths.png",
    "decision-feedback/winners.png",
    "decision-feedback/rmse-over-epsilon.png",
    "two-events/rmse-over-min-separation.png",
    "counters/rmse-over-epsilon.png",
    "noise/winners.png",
    "adapting/adapting.png",
    "airports/airports.png",
)
PEERS = {  # each in an environment of its own, as they pin against each other
    "jax": (
        "jax-privacy==2.0.0",
        "jax==0.10.2",
        "optax==0.2.8",
        "dp-accounting==0.6.0",
        "numpy==2.4.6",
        "scipy==1.17.1",
    ),
    "opendp": ("opendp==0.16.0", "numpy==2.4.6"),
}
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # for all: threads that wait for one another count as time of the processor
EVALUATED = [
    *("--time", "scheduled_departure", "--by", "origin", "--period", "5min"),
    *("--target", "moving-average:12", "--epsilon", "1", "--delta", "1e-6"),
]
PATIENT = ("-o", "faulthandler_timeout=14400")  # seconds of a test, where tests take minutes
OPTIONAL = ("plot", "progress", "pandas", "parquet", "completion")  # extras of the command line
PERFORMANCE, COMPARED = "docs/measurements/performance", "docs/measurements/compare"  # figures and their pictures
KERNELS = "dpfast/_kernels"  # a path: to find a package by its name, coverage imports NumPy, too early


def lowest_supported() -> list[str]:
    """The requirements of the package and its command line, each held at its declared lower bound."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    optional = [requirement for extra in OPTIONAL for requirement in extras[extra]]
    declared = [*project["dependencies"], *optional]
    return [requirement.replace(">=", "==") + ".*" for requirement in declared]


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and types."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Tests and doctests."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def nojit(session: nox.Session) -> None:
    """Tests of the kernels and of what runs them, as plain Python.

    Every line and branch of the kernels is counted, together with those that only the compiler runs.
    """
    session.install("-e", ".[test]")
    count = ["--numprocesses=auto", "--durations=10", f"--cov={KERNELS}", "--cov-branch"]
    count += ["--dist=worksteal"]  # workers share a long file: as plain Python, one may take longer than all others
    fast = ["-m", "not slow_nojit and not long", "--cov-report="]
    python = ["tests/_kernels", "tests/mechanisms/test_mechanism.py", *fast]
    session.run("pytest", *python, *count, *session.posargs, env={"NUMBA_DISABLE_JIT": "1"})
    tracing = [f"tests/_kernels/test_{name}.py" for name in ("simd", "denormals", "jit", "kernel_calls")]
    report = ["--cov-append", "--cov-report=term-missing:skip-covered", "--cov-fail-under=100"]
    session.run("pytest", *tracing, *count, *report, *session.posargs)


@nox.session
def statistics(session: nox.Session) -> None:
    """Statistics on many more numbers than among the tests: random numbers, stopping rules, adapting."""
    session.install("-e", ".[test]")
    session.run("pytest", "-m", "long", *PATIENT, *session.posargs)


@nox.session
def studies(session: nox.Session) -> None:
    """The studies of examples/, and of each the table and the pictures that docs/measurements/studies.md shows."""
    session.install("-e", ".[cli]")
    made = Path(session.create_tmp())
    for name in STUDIES:
        session.run("dpfast", "study", f"examples/{name}.toml", "--out", str(made / name))
    for program in PROGRAMS:
        session.run("python", f"examples/{program}.py", "--out", str(made / program))
    tables = (*(f"{study}/study.md" for study in STUDIES), *(f"{program}/{program}.md" for program in PROGRAMS))
    for name in (*tables, *PICTURES):
        there = Path("docs/measurements/studies", name)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / name, there)


@nox.session
def crash(session: nox.Session) -> None:
    """Streams and sweeps that are killed at every point of what they do, and at many random times."""
    session.install("-e", ".[test]")
    session.run("pytest", "-m", "crash", *PATIENT, *session.posargs)


@nox.session
def engines(session: nox.Session) -> None:
    """Stores in PostgreSQL, and engines that publish through them: with a real server, killed at every point.

    What a reader has counted is a table in docs/. PostgreSQL and Java come from Debian's packages where they are
    missing, for which it must run as root.
    """
    programs = list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    missing = ["postgresql"] * (not programs) + ["default-jre-headless"] * (shutil.which("java") is None)
    if missing:
        session.run("apt-get", "update", external=True)
        session.run("apt-get", "install", "--yes", "--no-install-recommends", *missing, external=True)
    session.install("-e", ".[test,postgres,bytewax,spark]")
    report = f"{session.create_tmp()}/engines.xml"
    session.run("pytest", "-m", "engines", f"--junitxml={report}", *PATIENT, *session.posargs)
    if not session.posargs:
        session.run("python", "-m", "benchmarks.harness.kills_table", report)


@nox.session
@nox.parametrize("processor", list(OLDER))
def portability(session: nox.Session, processor: str) -> None:
    """Tests of the kernels and of what runs them, compiled for older processors; the same bits, or those of nojit."""
    session.install("-e", ".[test]")
    session.run(
        "pytest",
        "tests/_kernels",
        *(f"tests/filters/test_{name}.py" for name in ("filter", "array_filter", "filter_stream")),
        "tests/mechanisms/test_mechanism.py",
        "tests/simulation/test_monte_carlo.py",
        "--numprocesses=auto",
        *session.posargs,
        env={
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": OLDER[processor],
            "NUMBA_CACHE_DIR": str(Path(session.create_tmp()) / "numba"),
        },
    )


@nox.session(python="3.11")
def minimums(session: nox.Session) -> None:
    """Tests with the oldest Python and the oldest dependencies that are supported."""
    session.install("-e", ".[test]", *lowest_supported())
    session.run("pip", "check")
    # Old releases still use what their own, newer, dependencies deprecate.
    session.run("pytest", "-W", "ignore::DeprecationWarning", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks beside goals and bars, as a table, in docs/ too; `-- -k NAME` runs some of them."""
    session.install("-e", ".[test]", *PEERS["jax"])
    results = f"{session.create_tmp()}/benchmarks.json"
    # the designs have no goals, and take longer than the rest
    chosen = session.posargs or ["--ignore=benchmarks/designs/bench_design.py"]
    options = ["--benchmark-only", f"--benchmark-json={results}", "--benchmark-columns=median,iqr,rounds"]
    if not session.posargs:
        grow_stores(session)
    session.run("pytest", "benchmarks", *options, *chosen)
    session.run("python", "-m", "benchmarks.harness.results_table", results, *["--partial"] * bool(session.posargs))


@nox.session
def growth(session: nox.Session) -> None:
    """Time and memory over samples, streams, order, taps and steps, as pictures in docs/measurements; some minutes."""
    session.install("-e", ".[test]")
    found = f"{PERFORMANCE}/growth.json"
    session.run("python", "-m", "benchmarks.growth.measure", found, env=ONE_THREAD)
    session.run("python", "-m", "benchmarks.growth.picture", found, PERFORMANCE)
    grow_stores(session)


def grow_stores(session: nox.Session) -> None:
    """Measure stores over streams and steps, and draw them."""
    found = f"{PERFORMANCE}/stores.json"
    session.run("python", "-m", "benchmarks.growth.stores", found, env=ONE_THREAD)
    session.run("python", "-m", "benchmarks.growth.stores_picture", found, PERFORMANCE)


@nox.session
def compare(session: nox.Session) -> None:
    """Side by side with jax-privacy and OpenDP: errors and speed, in docs/ and the README too; half an hour."""
    session.install("-e", ".[test]")
    made = Path(session.create_tmp())
    peers = {name: environment(session, made / name, pinned) for name, pinned in PEERS.items()}
    task, speed = made / "task.json", made / "speed.json"
    session.run("python", "-m", "benchmarks.peers.targets", str(task))
    runs = {"ours": "python", "peer_jax_privacy": peers["jax"], "peer_opendp": peers["opendp"]}
    for module, python in runs.items():
        out = str(made / f"{module}.json")
        session.run(python, "-m", f"benchmarks.peers.{module}", str(task), out, external=True, env=ONE_THREAD)
    rows, behind = [str(made / f"{x}.json") for x in runs], str(made / "behind.json")
    session.run("python", "-m", "benchmarks.peers.behind", str(task), behind, *rows[1:], env=ONE_THREAD)
    rows.append(behind)
    session.run("python", "-m", "benchmarks.peers.oracles", *rows)
    session.run("python", "-m", "benchmarks.peers.speed", peers["jax"], peers["opendp"], str(speed), env=ONE_THREAD)
    session.run("python", "-m", "benchmarks.peers.comparison_table", str(speed), *rows)
    session.run("python", "-m", "benchmarks.peers.pictures", f"{COMPARED}/compare.json", COMPARED)


def environment(session: nox.Session, folder: Path, pinned: tuple[str, ...]) -> str:
    """The Python of an environment with these packages, which is made once."""
    python = str(folder.absolute() / "bin" / "python")
    if not Path(python).exists():
        session.run("python", "-m", "venv", str(folder))
    session.run(python, "-m", "pip", "install", "--quiet", *pinned, external=True)
    return python


@nox.session
def package(session: nox.Session) -> None:
    """A wheel and an sdist that install and pass the tests alone: from the sdist's files, without its package.

    `-- tests/cli` runs some of the tests.
    """
    made = Path(session.create_tmp()).absolute()
    dist, alone = made / "dist", made / "alone"
    for folder in (dist, alone):
        shutil.rmtree(folder, ignore_errors=True)
    session.install("build")
    session.run("python", "-m", "build", "--outdir", str(dist), ".")
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    shutil.unpack_archive(sdist, alone)
    (tree,) = alone.iterdir()
    shutil.rmtree(tree / "dpfast")
    selected = session.posargs or ["tests"]
    for name, kind in {"wheel": wheel, "sdist": sdist}.items():
        python = environment(session, made / f"{name}-{kind.stat().st_mtime_ns}", (f"{kind}[test]",))
        with session.chdir(tree):
            found = "import dpfast, sys; sys.exit('site-packages' not in dpfast.__file__)"
            session.run(python, "-c", found, external=True)
            session.run(python, "-m", "pytest", "-q", "-n", "2", *selected, external=True)
            selected = ["tests/cli/test_main.py"]  # the same files are in both: a second time they need not all run


@nox.session
def docs(session: nox.Session) -> None:
    """The site, offline: the code of all pages runs, warnings are errors, a browser opens pages and a report.

    What was executed is kept: the next time only pages whose code has changed run. `-- --no-browser` leaves out the
    last step, for which Chromium comes from Debian's packages where it is missing, as root.
    """
    browser = "--no-browser" not in session.posargs
    if browser and shutil.which("chromedriver") is None:
        session.run("apt-get", "update", external=True)
        packages = ["chromium", "chromium-driver"]
        session.run("apt-get", "install", "--yes", "--no-install-recommends", *packages, external=True)
    session.install("-e", ".[cli,docs]")
    made = Path(session.create_tmp()).absolute()
    source, site = made / "source", made / "site"
    if source.exists():  # pages that are gone now, but not what sphinx-gallery has made
        for path in (*source.rglob("*.md"), *source.glob("*/*.py")):
            path.unlink()
    shutil.copytree("docs", source, dirs_exist_ok=True)
    env = ONE_THREAD | {"PYTHONWARNINGS": "ignore:Unknown section:UserWarning"}  # Model: docs/_ext moves it
    options = ["-W", "--keep-going", "-q", "-E", "-a"]  # executions are kept by themselves
    options += ["-d", str(made / "doctrees")]  # not a part of the site
    session.run("python", "-m", "sphinx", *options, "-b", "html", str(source), str(site), env=env)
    session.run("python", "-m", "benchmarks.site.links", str(site))
    session.run("python", "-m", "benchmarks.site.page_code", "docs", env=env)
    if browser:
        session.run("python", "-m", "benchmarks.site.browser", str(site), str(made / "screenshots"))
        session.run("python", "-m", "benchmarks.site.report_page", str(made / "screenshots"))


@nox.session
def readme(session: nox.Session) -> None:
    """The picture of the README, and every table of it and of docs/measurements: example, log, benchmarks, peers."""
    session.install("-e", ".[cli]")
    made = Path(session.create_tmp())
    example, evaluation = (str(made / name) for name in ("example", "evaluation"))
    session.run("dpfast", "example", "--out", example)
    log = "examples/nyc_departures_2013.csv.gz"
    session.run("dpfast", "evaluate", log, *EVALUATED, "--out", evaluation)
    session.run("python", "-m", "benchmarks.harness.measured_tables", example, evaluation)
    session.run("python", "examples/front_picture.py", "docs/picture.png")
    session.notify("bench")
    session.notify("compare")

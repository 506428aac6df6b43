"""The pages of the reference: every public object by the room that it is from, and every command with its options."""

import contextlib
import io
from pathlib import Path

ROOMS = {
    "filters": ("Targets", "A target says what should be published: a filter over all time, or a sum over a horizon."),
    "privacy": ("Privacy", "This is the guarantee that is asked for; it decides how much noise it takes."),
    "signals": ("Signals", "These are models of the private stream, and logs of events."),
    "mechanisms": (
        "Mechanisms",
        "A mechanism says what is published, how the output is estimated from it, and with what error.",
    ),
    "design": (
        "Designs",
        "Functions that make a mechanism of a target, a privacy demand and a model, and bounds below which none goes.",
    ),
    "simulation": (
        "Simulation",
        "Functions that simulate mechanisms to find their errors: for studies, never for release.",
    ),
    "releases": (
        "Releases",
        "These publish real data in exact integers, so that floating point cannot undermine the guarantee.",
    ),
    "reports": ("Reports", "These draw pictures and write pages of what was found."),
    "_support": ("Errors and warnings", "Each message says what to do about it."),
}


def names_by_room():
    import dpfast
    from dpfast._support.lazy_names import stub_imports

    homes = stub_imports(Path(dpfast.__file__).with_suffix(".pyi"))
    found = {room: [] for room in ROOMS}
    for name, module in homes.items():
        found[module.split(".")[1]].append(name)
    assert sorted(x for names in found.values() for x in names) == dpfast.__all__
    return {room: sorted(names, key=str.lower) for room, names in found.items()}


def api_page():
    parts = [
        "API",
        "===",
        "",
        "This page lists every public object, in the order of the work: *target → privacy → signal → mechanism →",
        "design → simulate | release → report*.",
        "",
        ".. currentmodule:: dpfast",
        "",
    ]
    for room, names in names_by_room().items():
        title, words = ROOMS[room]
        parts += [title, "-" * len(title), "", words, "", ".. autosummary::", "   :toctree: objects", ""]
        parts += [f"   {name}" for name in names] + [""]
    return "\n".join(parts)


def help_text(*words):
    from dpfast.cli.main import build_parser

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        build_parser().parse_args([*words, "--help"])
    return text.getvalue().rstrip()


def commands_page():
    import os

    from dpfast.cli.main import build_parser

    os.environ["COLUMNS"] = "100"
    parser = build_parser()
    actions = next(x for x in parser._actions if x.dest == "command")
    words = "This page has what `dpfast COMMAND --help` says."
    parts = ["# Commands", "", words, "", "```text", help_text(), "```", ""]
    for name in actions.choices:
        parts += [f"## dpfast {name}", "", "```text", help_text(name), "```", ""]
    return "\n".join(parts)


def write(app, config):
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    for name, text in {"api.rst": api_page(), "commands.md": commands_page()}.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}

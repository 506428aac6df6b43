"""``dpfast design`` for several streams together, the inputs of one target: the settings, and the run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.settings_file import construct, replace_hyphens
from dpfast.cli.channel_options import ADJACENCIES, REACH
from dpfast.cli.design_model import make_models
from dpfast.cli.output import write_files
from dpfast.design.channel_target_specs import mixes_streams, parse_matrix
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.reports.channels_comparison import ChannelsAsked, report_channels

_ONE_STREAM = {"minimize": "mean", "batch": False, "simulate": False}  # what there is for one stream alone


def is_for_several(settings: Mapping[str, Any]) -> bool:
    """Tell whether the streams have names, or the target is one of several."""
    return "groups" in settings or mixes_streams(settings["target"])


def run_for_several(settings: Mapping[str, Any], command: str) -> str:
    """Design all that can serve, write the files, and return the table."""
    asked, folder = read_asked(settings), OutputFolder(settings["out"])
    choose = settings.get("choose")
    text = report_channels(asked, folder, choose=choose, command=command, progress=sys.stderr.isatty())
    return write_files(folder, text)


def read_asked(settings: Mapping[str, Any]) -> ChannelsAsked:
    """Make of the settings what is asked for; models may be fitted to a log for it.

    Raises
    ------
    ValueError
        For what there is for one stream alone, where nothing says which streams one person reaches, and for names and
        models that do not fit the target.
    """
    for name, only in _ONE_STREAM.items():
        if settings[name] != only:
            raise ValueError(f"{name} must be left out for several streams, got {settings[name]!r}")
    if settings["sources"]:
        raise ValueError(
            f"sources must be of the model alone for several streams, got {min(settings['sources'])!r}: all the rest "
            "counts as assumed"
        )
    names = _read_names(settings)
    return ChannelsAsked(
        parse_matrix(settings["target"], len(names)),
        _read_privacy(settings),
        make_models(settings, names),
        names,
        settings["lag"],
        settings.get("unit"),
        settings["tolerance"],
    )


def _read_names(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the streams; of rows without names, numbers."""
    target = settings["target"]
    if "groups" not in settings:
        if isinstance(target, str) or not target or not isinstance(target[0], Sequence):
            raise ValueError(
                f"groups must be given with the target {target!r}, which is of several streams: --groups A,B"
            )
        return tuple(f"input {i + 1}" for i in range(len(target[0])))
    names = settings["groups"]
    good = isinstance(names, list) and all(isinstance(x, str) and x and x.isprintable() for x in names)
    if not good or not names or len(set(names)) < len(names):
        raise validation.fail("groups", "a list of distinct printable names", names)
    return tuple(names)


def _read_privacy(settings: Mapping[str, Any]) -> Privacy:
    if "adjacency" not in settings:
        raise ValueError(
            "adjacency must be given for several streams, as it has no default; it says which of them one person "
            f"reaches. {REACH}"
        )
    adjacency = settings["adjacency"]
    if isinstance(adjacency, str):
        adjacency = replace_hyphens(adjacency)
    validation.choice("adjacency", adjacency, ADJACENCIES)
    given = {x: settings[x] for x in ONE_STREAM_FIELDS if x in settings}
    return construct("privacy", Privacy, {**given, "adjacency": adjacency})

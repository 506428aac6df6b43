"""Reading back what a store has published: nothing is computed from data, and nothing is spent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import PlaceLike, check_place
from dpfast.releases.batch import Release
from dpfast.releases.composed_releases import compose_guarantee, load_plans
from dpfast.releases.feed.missed_bins import count_missed
from dpfast.releases.integer.design_words import describe_design
from dpfast.releases.model_check.adapted_estimates import adapt_estimates, check_adaptable
from dpfast.releases.model_check.verdict import FirstPruned, check_growing, check_whole
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.published_steps import declared_length
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import NAME, ReleaseStore

Folder = str | os.PathLike[str]


def read_release(
    path: PlaceLike,
    release: int | str | None = None,
    *,
    published: Folder | None = None,
    witness: PlaceLike | None = None,
    adopt: bool = False,
    adapt: bool = False,
) -> Release:
    """Read back what a store has published: values, estimates and the guarantee.

    It needs no data and no mechanism, publishes nothing and spends nothing, as often as you call it. Use it where a
    program ended between the release and the use of its result, or to use a release again.

    Parameters
    ----------
    path : path-like or Postgres
        The private store of :func:`release`, :func:`open_stream` or ``dpfast release``, which nobody else has open.
    release : int or str, optional
        Number of the release in the store, counted from 1, or its name; the last one by default.
    published : path-like, optional
        The folder of what is public, where it is not the default one.
    witness : path-like or Postgres, optional
        The second witness of the store: what is read is as new as it says, or refused. Who only reads may do without.
    adopt : bool
        As for :func:`release`.
    adapt : bool
        Fit the receiver to v as well, and return what it estimates as `adapted`, whether that was asked for when it was
        published or not.

    Returns
    -------
    Release
        Of a stream too: ``first`` is its first step, and ``estimate[:, t]`` is of step ``first + t``. `times` and
        `groups` are there where the store declares them, as every store of the command does.

    Raises
    ------
    ReleaseError
        Where there is no store, nothing was released in it, or it cannot be opened.
    ValueError
        For a release that the store does not have; the message lists those that it has.

    Notes
    -----
    *Privacy.* All that is returned was published. The guarantee is that of the release together with all others of the
    store that have inputs of the same steps, later ones too.

    Examples
    --------
    >>> import dpfast as dp, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = dp.release(mechanism, np.array([0, 2, 1]), folder + "/store", dp.Inputs(0, 20))
    ...     again = dp.read_release(folder + "/store")
    >>> (again.privatized == result.privatized).all(), (again.estimate == result.estimate).all(), again.first
    (np.True_, np.True_, 0)
    """
    if release is not None and (isinstance(release, bool) or not isinstance(release, int | str)):
        raise validation.fail("release", "the number or the name of a release, or None for the last one", release)
    with open_existing(path, published, witness=witness, adopt=adopt) as store:
        return read_entry(store, choose_release(store, release), adapt=adapt)


def open_existing(
    path: PlaceLike, published: Folder | None = None, *, witness: PlaceLike | None = None, adopt: bool = False
) -> ReleaseStore:
    """Open a store that is there, and begin none."""
    place = check_place("path", path)
    if isinstance(place, Path) and not os.path.lexists(place / NAME):
        raise ReleaseError(f"there is no store in {path} to read from: give the private folder, which holds {NAME}")
    return ReleaseStore.open(path, published, adopt=adopt, witness=witness, reading=True)


def choose_release(store: ReleaseStore, release: int | str | None) -> Earlier:
    """Return the release of a number or a name, or the last one."""
    releases = store.releases()
    if not releases:
        raise ReleaseError(
            f"nothing was released in the store {store.path} so far: release into it first, or give another one"
        )
    for entry in releases[::-1]:
        if release in (None, entry.name if isinstance(release, str) else entry.id):
            return entry
    there = "; ".join(f"{x.title}, {x.steps}" for x in releases)
    raise ValueError(f"release must be one that the store {store.path} has, got {release!r}: {there}")


def read_entry(store: ReleaseStore, entry: Earlier, *, adapt: bool = False) -> Release:
    """Read all of a release that a store has."""
    plan, releases = load_plans([entry])[entry.id], store.releases()
    lag = plan.lag or 0
    live = entry.kind == "live"
    others = [x for x in releases if x.id != entry.id]
    shared = [x for x in others if entry.shares(x)]
    first, end = store.first_kept(entry.id), entry.first + store.length(entry.id)
    v, estimate = store.read(entry.id, first, end - first)
    aligned = estimate[:, lag:] if live else estimate  # the first columns of a stream are of times before it
    groups = None if store.declaration is None else store.declaration.fields.get("groups")
    n = v.shape[-1] - (lag if entry.closed or not live else 0)  # behind them there are declared zeros
    whole = first == entry.first
    if adapt:
        check_adaptable(plan, n if whole else 0)
    evidence = plan.evidence(v, n) if whole else FirstPruned(plan.model, n)
    check = (check_growing if live else check_whole)(evidence)
    return Release(
        first,
        plan.shaped(v),
        aligned,
        plan.predicted_rmse_if_model_holds,
        compose_guarantee(plan, others, shared, store.unchecked, _spans_of(store, entry, plan.memory)),
        check,
        entry.id,
        entry.name,
        bin_edges(store.declaration, first, aligned.shape[1]),
        None if groups is None else tuple(groups),
        plan.explained_if_model_holds,
        None if store.declaration is None else store.declaration.fields,
        ledger=store.spent.said(entry.id),
        adapted=adapt_estimates(plan, v, n, check) if adapt else None,
        output_rmse_if_model_holds=plan.output_rmse_if_model_holds,
        released=plan.released(first - entry.first, v.shape[-1], n if entry.closed or not live else None),
        channels=None if groups is None else plan.channel_names(groups),
        outputs=None if groups is None else plan.output_names(groups),
        missed=_count_missed(store) if live else 0,
        design=describe_design(plan.mechanism),
        constant_rmse_if_model_holds=plan.constant_rmse_if_model_holds,
    )


def _count_missed(store: ReleaseStore) -> int:
    """Count the bins that the command has marked as missed, beside what it published."""
    period = None if store.declaration is None else store.declaration.fields.get("period_us")
    return 0 if period is None else count_missed(store.published, int(period))


def _spans_of(store: ReleaseStore, entry: Earlier, memory: int) -> PersonSpans | None:
    """Return the spans of persons in which a release has steps, where the store protects persons."""
    state = store.persons()
    if state is None:
        return None
    n = entry.count if entry.closed else declared_length(store)
    return PersonSpans.of(PersonBounds(**state.terms), memory, entry.first, n)


def bin_edges(declaration: Declaration | None, first: int, count: int) -> NDArray[np.datetime64] | None:
    """Return the left edges of the bins of some steps, where they are declared."""
    fields = {} if declaration is None else declaration.fields
    if fields.get("period_us") is None or fields.get("origin") is None:
        return None
    origin = int(np.datetime64(fields["origin"], "us").astype(np.int64))
    steps = np.arange(first, first + count, dtype=np.int64)
    left: NDArray[np.int64] = origin + int(fields["period_us"]) * steps
    return left.astype("datetime64[us]")

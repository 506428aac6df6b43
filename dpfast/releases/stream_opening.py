"""Opening a stream: it begins at step 0, or goes on with the mechanism that it has run so far."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.releases.arbiters.place import PlaceLike
from dpfast.releases.composed_releases import declared_bounds
from dpfast.releases.integer.exact_base import ExactBase, check_mechanism, demand_content
from dpfast.releases.integer.exact_forms import as_exact, exact_or_none, load_exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.last_block import NOT_DECLARED, End, LastBlockChoice, check_last_block, demand_of
from dpfast.releases.ledger.ledger import Ledger, as_ledger
from dpfast.releases.noise import NoiseOfLaws
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.published_steps import live_release
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream


def open_stream(
    mechanism: AnyMechanism | ExactBase,
    path: PlaceLike,
    inputs: Inputs | None = None,
    *,
    published: str | os.PathLike[str] | None = None,
    tolerance: float = 1e-3,
    adopt: bool = False,
    persons: Persons | None = None,
    ledger: Ledger | PlaceLike | None = None,
    last_block: LastBlockChoice | None = None,
    n_steps: int | None = None,
    keep_steps: int | None = None,
    replay_steps: int = 0,
    epoch: int | None = None,
    witness: PlaceLike | None = None,
) -> Stream:
    r"""Open a stream: begin it at step 0, or go on where it was left or interrupted.

    It publishes v_t = Σ_k g_k x_{t-k} + n_t with integers x of the values, integer taps g and exact discrete
    Gaussian noise n, one draw a step, ever; estimates from v alone. Of block sums v is the sum of each block, when it
    ends, with exact noise on the integers; a stream may be left anywhere in a block, and :meth:`Stream.close` drops an
    unfinished one. With ``last_block="publish"`` one that the declared last step leaves unfinished is published there:
    leaving, a crash and closing before it publish nothing of it. Every step is on the disk before it is returned.

    Parameters
    ----------
    mechanism : Mechanism or ExactMechanism
        None of its inputs fitted to private data, with a causal receiver: no smoother.
    path : path-like or Postgres
        A private folder, made with mode 0700: it holds the last inputs.
    inputs : Inputs, optional
        What is declared of the data; an ExactMechanism has its own.
    published : path-like, optional
        The folder of what is public: the guarantee and a witness, which tells if the store is an old copy. By
        default beside the store, its name with "-published".
    tolerance : float
        As in :func:`exact`.
    adopt : bool
        Go on with a store that was copied, moved or written over by a copy, after the original is gone for good.
    persons : Persons, optional
        Protect persons: Events are pushed, of which those are kept that the bounds of mechanism and inputs allow each
        person. Without it the guarantee is per event.
    ledger : Ledger or path-like, optional
        Enter what the stream costs, for all its life, in this ledger before its first step; beyond its cap it is
        refused. Needed at every opening of a stream that has been entered in one.
    last_block : {"drop", "publish"}, optional
        For block sums alone, what becomes of a block that the last step leaves unfinished, as in :func:`exact`; by
        default that of an ExactBlockSums, and "drop". It is the same at every opening.
    n_steps : int, optional
        The steps of the stream with "publish", declared before the first one; pushing further ones is refused.
    keep_steps : int, optional
        Keep what was published at the last so many steps, at least, for :meth:`Stream.read`, and delete it before; by
        default all of it is kept. What the stream needs to go on, and a chain of hashes over all that it published,
        stay in any case. It may be another number at every opening. What needs all of v is refused behind it:
        :meth:`Stream.adapted`, and the comparison with the model.
    replay_steps : int
        So many of the last steps may be delivered again, as engines of streams do after a crash: their inputs stay in
        the store, besides those that the filter needs, and are compared where steps are pushed again with `first`.
        Older steps that are pushed again are read back without a look at the inputs. It may be another number at every
        opening. Inputs that are stored for longer can be stolen for longer.
    epoch : int, optional
        The number of this writer, where whoever starts writers numbers them: one that is not higher than that of the
        last writer is refused, so that a writer that was replaced cannot come back. By default it is the next one.
    witness : path-like or Postgres, optional
        A second witness, elsewhere than the store and what is published: it tells where both were set back together, as
        by the snapshot of a machine. A folder, or a place in a database, which any number of stores may have in common.
        A store that has one is not written without it.

    Returns
    -------
    Stream

    Raises
    ------
    ReleaseError
        Where the store is in use, open to others, damaged, copied, behind its witness, or of another mechanism; for a
        smoother, and for a design that depends on private data.
    ValueError
        For arguments of another kind.

    Notes
    -----
    *Privacy.* As `guarantee` of the stream says, for all that it ever publishes, across crashes and restarts. A store
    and a witness that are set back together, say by the snapshot of a whole machine, cannot be told from new ones:
    keep `published` out of it.

    Examples
    --------
    >>> import dpfast as dp, numpy as np, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with dp.open_stream(mechanism, folder + "/store", dp.Inputs(0, 20)) as stream:
    ...         v = stream.push(np.array([3, 1, 2])).privatized
    ...     with dp.open_stream(mechanism, folder + "/store", dp.Inputs(0, 20)) as stream:
    ...         stream.position, (stream.read(0, 3).privatized == v).all()
    (3, np.True_)
    """
    given = exact_or_none(mechanism)
    check_mechanism(mechanism if given is None else given.mechanism)
    account = as_ledger(ledger)
    replay_steps, keep_steps = check_history(replay_steps, keep_steps)
    store = ReleaseStore.open(path, published, adopt=adopt, epoch=epoch, witness=witness)
    end = End(last_block, n_steps)
    return open_in_store(
        store,
        mechanism,
        inputs,
        tolerance,
        persons=persons,
        ledger=account,
        end=end,
        keep_steps=keep_steps,
        replay_steps=replay_steps,
    )


def check_history(replay_steps: int, keep_steps: int | None) -> tuple[int, int | None]:
    """Return how many steps may be delivered again, and how many are kept, where the one allows the other."""
    replay_steps = validation.integer("replay_steps", replay_steps, 0)
    if keep_steps is not None:
        keep_steps = validation.integer("keep_steps", keep_steps, 1)
        if keep_steps < replay_steps:
            must_be = (
                f"at least replay_steps ({replay_steps}): what is delivered again is answered by what was published"
            )
            raise validation.fail("keep_steps", must_be, keep_steps)
    return replay_steps, keep_steps


def open_in_store(
    store: ReleaseStore,
    mechanism: AnyMechanism | ExactBase,
    inputs: Inputs | None,
    tolerance: float,
    declared: Mapping[str, Any] | None = None,
    *,
    adopt: bool = False,
    persons: Persons | None = None,
    ledger: Ledger | None = None,
    seen: PrivateCounts | None = None,
    end: End = NOT_DECLARED,
    keep_steps: int | None = None,
    replay_steps: int = 0,
) -> Stream:
    """Open the stream of an open store, which is closed with it, or by an error.

    `declared` and `adopt` are as for :meth:`ReleaseStore.declare`; of events of persons `seen` counts, for the
    operator, what is left out.
    """
    try:
        if declared is not None:
            store.declare(declared, adopt=adopt)
        entry = live_release(store)
        plan = (
            as_exact(mechanism, inputs, tolerance, *end)
            if entry is None
            else _resume_plan(entry, mechanism, inputs, tolerance, end)
        )
        store.hold(declared_bounds(plan))
        stream = Stream(store, plan, NoiseOfLaws.of(plan.drawn_laws), persons, ledger, seen, keep_steps, replay_steps)
        stream.prepare()
        return stream
    except BaseException:
        store.abandon()
        raise


def _resume_plan(
    entry: Earlier, mechanism: AnyMechanism | ExactBase, inputs: Inputs | None, tolerance: float, end: End
) -> ExactBase:
    """Return the mechanism that the stream has run so far, to the last bit, where it is the one that is asked for."""
    plan = load_exact(entry.configuration)
    if (given := exact_or_none(mechanism)) is not None:
        wanted, found = as_exact(given, inputs, tolerance, *end).configuration, plan.configuration
    else:
        # not its taps: another machine rounds a design otherwise
        if not isinstance(inputs, Inputs):
            raise validation.fail("inputs", "an Inputs, which says what the data are", inputs)
        n_steps = check_last_block(mechanism, *end)
        wanted, found = demand_content(mechanism, inputs, tolerance) | demand_of(n_steps), plan.demand
    if fields := differing_fields(json.loads(json.dumps(wanted)), json.loads(json.dumps(found))):
        raise ReleaseError(
            f"mechanism must be that of the stream, got one that differs in {', '.join(fields)}: open it with what it "
            "was begun with, or begin a new one in a store of its own, with data that were never published"
        )
    return plan


def differing_fields(a: Any, b: Any, name: str = "") -> list[str]:
    """Return the names of fields in which two JSON documents differ."""
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return [] if a == b else [name]
    inner = ((x, f"{name}.{x}".removeprefix(".")) for x in sorted(a.keys() | b.keys()))
    return [found for x, path in inner for found in differing_fields(a.get(x), b.get(x), path)]

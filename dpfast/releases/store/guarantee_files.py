"""What all releases of a store promise, as its guarantee files say it: for people, and for machines."""

from __future__ import annotations

import json

from dpfast.releases.store.declaration import Declaration, unchecked_text
from dpfast.releases.store.earlier_releases import Earlier


def state_guarantees(releases: list[Earlier], declaration: Declaration | None = None) -> tuple[str, str]:
    """State what all releases of a store promise, for people and for machines.

    Each promises it for events at its own steps, up to the last one that covers the whole store: that one holds for
    those before. Events at steps that a later one published too are for that one, which is composed with those before
    it.
    """
    texts: dict[str, list[Earlier]] = {}
    covering = max((i for i, x in enumerate(releases) if x.whole), default=-1)
    holds = [releases[max(i, covering)] for i in range(len(releases))]
    for entry, promise in zip(releases, holds, strict=True):
        texts.setdefault(promise.guarantee, []).append(entry)
    again = {x.id: [y.id for y in releases[max(i, covering) + 1 :] if x.shares(y)] for i, x in enumerate(releases)}
    parts = [
        "\n".join([*(f"{x.title}, {x.steps}{_except_text(again[x.id])}:" for x in entries), "", text, ""])
        for text, entries in texts.items()
    ]
    content = [
        {"release": x.id, "kind": x.kind, "first": x.first, "steps": None if x.kind == "live" else x.count}
        | ({} if x.name is None else {"name": x.name})
        | ({"published_again_by": again[x.id]} if again[x.id] else {})
        | {"guarantee": json.loads(promise.guarantee_json)}
        for x, promise in zip(releases, holds, strict=True)
    ]
    document = {"format": "dpfast-guarantees", "version": 1, "releases": content}
    if declaration is not None:
        document["declaration"] = json.loads(declaration.to_json())
        if names := (*declaration.unknown, *declaration.unchecked):
            parts.append(f"Not checked: {unchecked_text(names)}.\n")
    return "\n".join(parts), json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _except_text(again: list[int]) -> str:
    """Say for which events a guarantee is not, where later releases have published some of its steps too."""
    if not again:
        return ""
    which = f"release{'s' * (len(again) > 1)} {' and '.join(map(str, again))}"
    return f", but for events at steps that {which} published too, whose guarantee is below"

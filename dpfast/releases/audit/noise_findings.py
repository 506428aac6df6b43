"""What is found in the noise itself: releases of known zeros, looked at by every test of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpfast.releases.audit import noise_statistics as tests
from dpfast.releases.audit.expected_laws import ExpectedLaw, expect
from dpfast.releases.audit.findings import SURELY, Finding
from dpfast.releases.audit.known_zeros import Silence
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers


def examine_noise(plan: ExactBase, miss: float) -> list[Finding]:
    """Test what is published of known zeros, with a probability `miss` of a false alarm for each test.

    Where values have different laws, each law is tested for itself with its part of `miss`; correlations are those of
    all values together, each in standard deviations of its own law.
    """
    silence, laws = Silence.publish(plan), [expect(x) for x in plan.drawn_laws]
    noises = [silence.noise_of(i) for i in range(len(laws))]
    first, second, *rest = (tests.standardize(x, silence.laws, laws) for x in silence.series)
    scores = first, second, *rest

    def least(p_value: Callable[[Integers, ExpectedLaw], float]) -> float:
        return min(1.0, len(laws) * min(map(p_value, noises, laws)))

    looked_at = {
        "residues": least(tests.residues_p_value),
        "published without noise": least(tests.zeros_p_value),
        "shape": least(tests.law_p_value),
        "correlation between steps": tests.steps_p_value(scores),
        "correlation between streams": tests.streams_p_value(scores),
        "correlation between releases": tests.releases_p_value(first, second),
    }
    return [
        _examine_size(noises, laws, miss),
        *(
            Finding(
                target="release",
                attack=f"known zeros, {name}",
                trials=sum(x.size for x in noises),
                quantity="p-value",
                found=p_value,
                claim=miss,
            )
            for name, p_value in looked_at.items()
        ),
    ]


def _examine_size(noises: Sequence[Integers], laws: Sequence[ExpectedLaw], miss: float) -> Finding:
    """Bound σ from above; of several laws that one's which comes nearest to being too small."""
    each = miss / len(laws)
    found, noise, law = min(
        ((law.std_bound(noise, each), noise, law) for noise, law in zip(noises, laws, strict=True)),
        key=lambda x: x[0] / x[2].std,
    )
    return Finding(
        target="release",
        attack="known zeros, second moment",
        trials=noise.size,
        quantity="σ at most",
        found=found,
        reachable=law.std / (1 - law.largest_lack(noise.size, each, 0.5)),
        claim=law.std,
        lack=law.largest_lack(noise.size, each, SURELY),
    )

"""What is found in the noise itself: releases of known zeros, looked at by every test of noise."""

from __future__ import annotations

from dpfast.releases.audit import noise_statistics as tests
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.audit.findings import SURELY, Finding
from dpfast.releases.audit.known_zeros import Silence
from dpfast.releases.integer.exact_base import ExactBase


def examine_noise(plan: ExactBase, miss: float) -> list[Finding]:
    """Test what is published of known zeros, with a probability `miss` of a false alarm for each test."""
    silence, law = Silence.publish(plan), expect(plan.law)
    noise = silence.noise
    of_sigma = Finding(
        target="release",
        attack="known zeros, second moment",
        trials=noise.size,
        quantity="σ at most",
        found=law.std_bound(noise, miss),
        reachable=law.std / (1 - law.largest_lack(noise.size, miss, 0.5)),
        claim=law.std,
        lack=law.largest_lack(noise.size, miss, SURELY),
    )
    looked_at = {
        "residues": tests.residues_p_value(noise, law),
        "published without noise": tests.zeros_p_value(noise, law),
        "shape": tests.law_p_value(noise, law),
        "correlation between steps": tests.steps_p_value(silence.series, law),
        "correlation between streams": tests.streams_p_value(silence.series, law),
        "correlation between releases": tests.releases_p_value(*silence.batches, law),
    }
    return [
        of_sigma,
        *(
            Finding(
                target="release",
                attack=f"known zeros, {name}",
                trials=noise.size,
                quantity="p-value",
                found=p_value,
                claim=miss,
            )
            for name, p_value in looked_at.items()
        ),
    ]

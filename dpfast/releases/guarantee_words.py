"""The words and letters of a guarantee, explained for a reader who knows neither signal processing nor privacy."""

from __future__ import annotations

from collections.abc import Mapping

from dpfast.releases import odds

_WORDS = {
    "streams per person": (
        "step, stream",
        (
            "a stream is a series of counts, such as those of one airport; a step is one place in it, such as five "
            "minutes"
        ),
    ),
    "rounding": (
        "unit",
        "values are counted in whole units, and the noise is a whole number of them",
    ),
    "squared sensitivity": (
        "Δ²",
        (
            "how much what is protected can change the numbers to which noise is added (squared sensitivity): the "
            "largest sum of the squares of all changes"
        ),
    ),
    "(ε, δ)": (
        "ε and δ",
        (
            "they say how much can be learned at most: probabilities differ by a factor of at most e^ε (1.11 where "
            "ε, epsilon, is 0.1; 2.72 where it is 1; 20.1 where it is 3), and by δ, delta, on top of it; the "
            "smaller both are, the more private"
        ),
    ),
    "zCDP": (
        "ρ",
        (
            "the same loss in another measure, zero-concentrated differential privacy (zCDP); the ρ, rho, of "
            "several releases add up"
        ),
    ),
    "Gaussian DP": (
        "μ",
        (
            "the same loss in a third measure: the two cases are as hard to tell apart as two normal "
            "distributions, of which one is shifted by μ, mu, standard deviations"
        ),
    ),
    "groups": (
        "groups",
        ("several people together, or somebody with several times what is protected, are protected less: with this ε"),
    ),
    "spans": (
        "span",
        "a stretch of steps, in which the bounds on one person hold; in the next one they begin anew",
    ),
    "prefilter": (
        "taps, SHA-256",
        (
            "taps are the whole numbers by which values of successive steps are multiplied before they are added "
            "up and get their noise; SHA-256 is a fingerprint that shows whether they are the same ones"
        ),
    ),
}
_NOISE = "random numbers, which are added and kept secret, to hide what is protected"
_LAWS = {
    "discrete Gaussian": "is a law of whole numbers around 0, and σ, sigma, is their standard deviation",
    "two-sided geometric": "is a law of whole numbers, of which one further from 0 is e^rate times less probable",
    "canonical": "is a law of whole numbers by a table of their probabilities",
    "randomised response": "gives answers that are false now and then",
}


def explain_words(lines: Mapping[str, str]) -> dict[str, str]:
    """Explain the words and letters in some lines of a guarantee, in the order of the lines.

    Parameters
    ----------
    lines : mapping of str to str
        As :meth:`Guarantee.items` has them.

    Examples
    --------
    >>> list(explain_words({"protected": "one event", "rounding": "values are ...", "zCDP": "ρ = 1/2"}))
    ['unit', 'ρ']
    """
    words = _WORDS | {"noise": ("noise", _explain_noise(lines.get("noise", "")))}
    return dict(words[name] for name in lines if name in words)


def _explain_noise(drawn: str) -> str:
    """Explain the laws of the noise that a line names, and no others."""
    laws = (f"{name} {meaning}" for name, meaning in _LAWS.items() if name in drawn)
    return "; ".join([_NOISE, *laws])


def say_odds(epsilon: float, delta: float) -> str:
    """Say what somebody can come to think who thought it as likely as not, without overstating the protection.

    Examples
    --------
    >>> say_odds(1.0, 0.0).replace(odds.FIXED, " ")
    'somebody who thought this 50 % likely can think it 26.8 % to 73.2 % likely afterwards, without exception'
    """
    low, high = odds.format_bounds(*odds.bound_probability(1, epsilon))
    but = "but for what δ allows" if delta else "without exception"
    return f"somebody who thought this 50 % likely can think it {low} to {high} likely afterwards, {but}"

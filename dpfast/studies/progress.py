"""What a person sees of a sweep under way: a bar."""

from typing import Self


class Progress:
    """Nothing yet."""

    def __init__(self, shown: bool, n_cases: int) -> None:
        self.shown, self.n_cases = shown, n_cases

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def designed(self, done: int, total: int) -> None:
        """Designs."""

    def update(self, samples_done: int, samples_expected: int, cases_done: int, widest: float) -> None:
        """Samples."""

"""A blind comparison of two pictures: which is better, when nobody knows which is which?

In each round the two lie left and right in an order drawn at random, and one is chosen. If there
were no visible difference, each would be chosen with probability 1/2, so that the number of times
that the first one is chosen has a binomial distribution. The p value is the probability of a count
at least as unlikely as that which came out: 7 of 8 has p = 2 (8 + 1) / 256 = 0.070.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

ROUNDS = 8  # with fewer than six rounds no result could be below `CONVINCING`

CONVINCING = 0.05  # the usual bar, below which chance is no good explanation


@dataclass
class BlindTest:
    rounds: int = ROUNDS
    seed: int | None = None
    order: list[bool] = field(init=False)
    """For each round whether the first picture lies on the left."""
    chosen_first: int = 0  # how often the first picture was chosen so far
    done: int = 0  # rounds that were answered

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.order = [draw.random() < 0.5 for _ in range(self.rounds)]

    @property
    def over(self) -> bool:
        return self.done == self.rounds

    @property
    def first_is_left(self) -> bool:
        """Whether the first picture lies on the left in the round to be answered."""
        return self.order[self.done]

    def choose(self, *, left: bool) -> None:
        self.chosen_first += left == self.first_is_left
        self.done += 1

    @property
    def p_value(self) -> float:
        """Probability of a count as uneven or more, if there were no visible difference."""
        return two_sided(self.chosen_first, self.done)

    def conclude(self, first: str, second: str) -> str:
        count = self.chosen_first
        more, name = max((count, first), (self.done - count, second), key=lambda pair: pair[0])
        if 2 * more == self.done:
            return f"Each was chosen {more} times of {self.done}: no difference was seen."
        verdict = (
            "this is unlikely to be chance" if self.p_value < CONVINCING else "this may be chance"
        )
        return (
            f"{name} was chosen in {more} of {self.done} rounds: p = {self.p_value:.3f}, {verdict}."
        )


def two_sided(count: int, rounds: int) -> float:
    """Return the p value of `count` of `rounds`, each with probability 1/2."""
    likely = math.comb(rounds, count)
    as_unlikely = (math.comb(rounds, k) for k in range(rounds + 1))
    return sum(each for each in as_unlikely if each <= likely) / 2.0**rounds

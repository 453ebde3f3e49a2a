"""The gains that differences are amplified by: 1, 2, 5, 10, 20 … 50000."""

from __future__ import annotations

GAINS = tuple(figure * 10**power for power in range(5) for figure in (1, 2, 5))

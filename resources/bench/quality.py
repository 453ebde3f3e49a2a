"""Writes the pages about the quality of denoisers: pictures, kinds of noise, and volumes.

Run from the root of the checkout: python resources/bench/quality.py
"""

from __future__ import annotations

import denoisers
import noise_kinds
import volume_denoisers

if __name__ == "__main__":
    for page in (denoisers, noise_kinds, volume_denoisers):
        page.main()

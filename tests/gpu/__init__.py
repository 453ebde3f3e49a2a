"""Tests that need a GPU: left out without one, failing without one when ``REQUIRE_GPU=1``.

They time launches and watch the card's memory, so they run one at a time (no ``-n``). The
contract first compiles every specialisation it needs, on all cores; ``-k FILTER`` limits it.
"""

"""Tests that need a GPU: skipped without one, failing without one when ``REQUIRE_GPU=1``.

The contract is large: ``pytest -n 12 tests/gpu/test_gpu_contract.py``. The others time launches
and watch memory, so they run one at a time.
"""

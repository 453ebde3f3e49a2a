"""The merging networks of ``networks.cuh``, by the 0-1 principle."""

from __future__ import annotations

import ctypes

import pytest

from tests.backends.emulated import build, needs_compiler

pytestmark = [needs_compiler, pytest.mark.slow]

_GLUE = """
// Lists of zeros and ones, of which COUNT results from FIRST on are read: a wrong case, or 0.
template <int M, int N, int FIRST, int COUNT>
int differing()
{
    for (int a = 0; a <= M; ++a)
        for (int b = 0; b <= N; ++b) {
            Sorted<M> left;
            Sorted<N> right;
            for (int i = 0; i < M; ++i) left.at[i] = i >= M - a ? HIGH : LOW;
            for (int i = 0; i < N; ++i) right.at[i] = i >= N - b ? HIGH : LOW;
            const auto part = merge_part<FIRST, COUNT>(left, right);
            for (int i = 0; i < COUNT; ++i)
                if (part.at[i] != (FIRST + i >= M + N - a - b ? HIGH : LOW)) return M * 100 + N;
        }
    return 0;
}

template <int M, int N>
int differing_of_sizes()
{
    if (const int wrong = differing<M, N, 0, M + N>()) return wrong;
    if (const int wrong = differing<M, N, (M + N) / 2, 1>()) return wrong;
    if (const int wrong = differing<M, N, (M + N) / 3, (M + N + 2) / 3>()) return wrong;
    if constexpr (N < 6) return differing_of_sizes<M, N + 1>();
    else if constexpr (M < 6) return differing_of_sizes<M + 1, 1>();
    else return 0;
}

extern "C" int run() { return differing_of_sizes<1, 1>(); }
extern "C" int run_large()
{
    return differing<16, 16, 0, 32>() + differing<32, 16, 7, 34>() + differing<18, 8, 8, 10>();
}

// Pairs of whole numbers of eleven bits, one pair in each half of a word.
extern "C" int exchange_all()
{
    for (unsigned a = 0; a < 2048; ++a)
        for (unsigned b = 0; b < 2048; ++b) {
            unsigned low = a | b << 16, high = b | a << 16;
            exchange_by_additions(low, high);
            if (low != min(a, b) * 0x10001u || high != max(a, b) * 0x10001u) return 1;
        }
    return 0;
}
"""

_EXTREMES = {8: ("0", "255"), 16: ("0", "65535"), 32: ("-3.4e38f", "1e-45f")}


@pytest.mark.parametrize(("bits", "share"), [(8, 0), (8, 60), (8, 100), (16, 100), (32, 60)])
def test_merges_order_zeros_and_ones(bits: int, share: int) -> None:
    low, high = _EXTREMES[bits]
    defines = {"SIZE": 5, "TUNED": 1, "SAMPLE_BITS": bits, "ADDED_EXCHANGES": share, "STEPS": 1}
    defines |= {"BLOCK_COLUMNS": 128, "BLOCK_ROWS": 1}
    glue = f"const Value LOW = {low}, HIGH = {high};\n" + _GLUE
    if bits != 8:  # only bytes are exchanged as 16-bit floats
        glue = glue.partition("// Pairs of whole")[0]
    library = build(
        "median",
        "median_tuned",
        tuple((name, str(value)) for name, value in defines.items()),
        behind=glue,
    )
    run: ctypes._NamedFuncPointer = library.run
    assert run() == 0
    assert library.run_large() == 0
    if (bits, share) == (8, 100):  # of each share the same
        assert library.exchange_all() == 0

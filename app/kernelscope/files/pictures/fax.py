"""Fax codes in TIFF: CCITT Groups 3 and 4, and modified Huffman rows.

After ITU-T Recommendations T.4 and T.6 and TIFF 6.0, sections 10 and 11. The codes have no
checksum, and common decoders replace codes that they do not know by white. This decoder accepts
only data as the recommendations define them: known codes, each row as wide as the page, the number
of rows of the page, and nothing after them. Damage that leaves such data cannot be detected.

Some rows of Group 4 begin with a white and a black run of no pixels, to which the next row may
refer. Only encoders that work in runs write them, and libtiff accepts them. Runs of no pixels
within a row are refused, because programs disagree about them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import kernel
from kernelscope.files.formats import Unreadable

HUFFMAN, GROUP_3, GROUP_4 = 2, 3, 4  # the compressions, as TIFF numbers them

NAMES = {HUFFMAN: "modified Huffman", GROUP_3: "CCITT Group 3", GROUP_4: "CCITT Group 4"}

TWO_DIMENSIONS = 1  # the bit of Group 3's options for rows that refer to the previous row

# Code words of runs of 0, 1, 2, ... 63 pixels, then of 64, 128, ... 1728 pixels.
_WHITE = """
00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100
110101 101010 101011 0100111 0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011
0100100 0011000 00000010 00000011 00011010 00011011 00010010 00010011 00010100 00010101
00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100 00000101
00001010 00001011 01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001
01011010 01011011 01001010 01001011 00110010 00110011 00110100
11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100
011001101 011010010 011010011 011010100 011010101 011010110 011010111 011011000 011011001
011011010 011011011 010011000 010011001 010011010 011000 010011011
"""
_BLACK = """
0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100
00000111 000011000 0000010111 0000011000 0000001000 00001100111 00001101000 00001101100
00000110111 00000101000 00000010111 00000011000 000011001010 000011001011 000011001100
000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011
000011010100 000011010101 000011010110 000011010111 000001101100 000001101101 000011011010
000011011011 000001010100 000001010101 000001010110 000001010111 000001100100 000001100101
000001010010 000001010011 000000100100 000000110111 000000111000 000000100111 000000101000
000001011000 000001011001 000000101011 000000101100 000001011010 000001100110 000001100111
0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101
0000001101100 0000001101101 0000001001010 0000001001011 0000001001100 0000001001101
0000001110010 0000001110011 0000001110100 0000001110101 0000001110110 0000001110111
0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011
0000001100100 0000001100101
"""
# Runs of 1792, 1856, ... 2560 pixels of either colour.
_LONG = """
00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101
000000010110 000000010111 000000011100 000000011101 000000011110 000000011111
"""
# Vertical modes: a change lies 3 pixels to the left ... 3 to the right of that in the row above.
_MODES = "0000010 000010 010 1 011 000011 0000011"
_PASS, _HORIZONTAL, _EXTENSION = 8, 9, 10
_OTHER_MODES = {_PASS: "0001", _HORIZONTAL: "001", _EXTENSION: "0000001"}

_RUN_BITS, _MODE_BITS = 13, 7
(_WHOLE, _BAD_CODE, _TOO_WIDE, _EMPTY_RUN, _CUT_OFF, _UNCOMPRESSED, _FEW_ROWS, _NO_MARK, _MORE) = (
    range(9)
)
_FAULTS = {
    _BAD_CODE: "are damaged in row {row} of {rows}: a code there means nothing",
    _TOO_WIDE: "are damaged in row {row} of {rows}: it does not have the width of the page",
    _EMPTY_RUN: "are ambiguous in row {row} of {rows}: a run there has no pixels",
    _CUT_OFF: "are cut off in row {row} of {rows}",
    _UNCOMPRESSED: "use the uncompressed mode in row {row} of {rows}, which is not supported",
    _FEW_ROWS: "end before row {row} of {rows}",
    _NO_MARK: "are damaged in row {row} of {rows}: the mark of its beginning is missing",
    _MORE: "are damaged: something follows the last of {rows} rows",
}


def decode(
    data: bytes, rows: int, width: int, compression: int, options: int = 0
) -> NDArray[np.bool_]:
    """Decode a strip or a tile of a page; the first pixel is in the highest bit.

    `options`: the tag T4Options of a Group 3 page. The result is true in black runs.
    """
    two = compression == GROUP_3 and bool(options & TWO_DIMENSIONS)
    source = np.frombuffer(data + bytes(4), np.uint8)  # padded: codes are read 13 bits at a time
    pixels = np.zeros((rows, width), np.bool_)
    row, fault = _decode(source, len(data) * 8, pixels, compression, two, *_tables())
    if fault != _WHOLE:
        text = _FAULTS[fault].format(row=row + 1, rows=rows)
        raise Unreadable(
            f"its fax data ({NAMES[compression]}) {text}.",
            "Get the file again, or save it as PNG with a program that repairs fax pages.",
        )
    return pixels


@functools.cache
def _tables() -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return white runs, black runs, and modes by the next bits: 16 * value + length of code.

    0 if no code begins with these bits. Runs of 64 and more are followed by another code.
    """
    lengths = [*range(64), *range(64, 1792, 64), *range(1792, 2561, 64)]
    modes = dict(enumerate(_MODES.split())) | _OTHER_MODES
    return (
        _table(_RUN_BITS, dict(zip(lengths, (_WHITE + _LONG).split(), strict=True))),
        _table(_RUN_BITS, dict(zip(lengths, (_BLACK + _LONG).split(), strict=True))),
        _table(_MODE_BITS, modes),
    )


def _table(bits: int, codes: dict[int, str]) -> NDArray[np.int32]:
    table = np.zeros(2**bits, np.int32)
    for value, code in codes.items():
        free = bits - len(code)
        start = int(code, 2) << free
        table[start : start + (1 << free)] = 16 * value + len(code)
    return table


@kernel
def _peek(data: Any, place: int, count: int) -> int:
    """Return the `count` bits, up to 13, that begin with bit number `place`."""
    byte = place >> 3
    word = (int(data[byte]) << 16) | (int(data[byte + 1]) << 8) | int(data[byte + 2])
    return (word >> (24 - count - (place & 7))) & ((1 << count) - 1)


@kernel
def _run(data: Any, place: int, most: int, table: Any) -> tuple[int, int, int]:
    """Return the length of a run, the place of the next code, and the error."""
    total = 0
    while True:
        entry = table[_peek(data, place, _RUN_BITS)]
        if entry == 0:
            return total, place, _BAD_CODE
        place += entry & 15
        total += entry >> 4
        if total > most:
            return total, place, _TOO_WIDE
        if entry >> 4 < 64:
            return total, place, _WHOLE


@kernel
def _row_alone(
    data: Any, place: int, width: int, changes: Any, two: bool, white: Any, black: Any
) -> tuple[int, int, int]:
    """Decode a row of runs into the places where the colour changes; return their number."""
    at, count, dark = 0, 0, False
    while at < width:
        length, place, fault = _run(data, place, width - at, black if dark else white)
        if fault != _WHOLE:
            return count, place, fault
        at += length
        dark = not dark
        if not two and count and changes[count - 1] == at:  # changes at one place cancel out
            count -= 1
        else:
            changes[count] = at
            count += 1
            if count + 4 > len(changes):
                return count, place, _TOO_WIDE
    return count, place, _WHOLE


@kernel
def _row_by_reference(  # noqa: C901 - compiled by Numba as one loop
    data: Any,
    place: int,
    width: int,
    changes: Any,
    above: Any,
    white: Any,
    black: Any,
    modes: Any,
) -> tuple[int, int, int]:
    """Decode a row that refers to the changes in the row above, which end with three `width`."""
    at, count, dark = -1, 0, False  # The row begins before its first pixel.
    near = 0
    while at < width:
        entry = modes[_peek(data, place, _MODE_BITS)]
        if entry == 0:
            return count, place, _BAD_CODE
        place += entry & 15
        mode = entry >> 4
        if mode == _EXTENSION:
            return count, place, _UNCOMPRESSED
        if mode == _HORIZONTAL:
            at = max(at, 0)
            if count + 6 > len(changes):  # runs without end that have no pixels
                return count, place, _TOO_WIDE
            for _ in range(2):
                length, place, fault = _run(data, place, width - at, black if dark else white)
                if fault != _WHOLE:
                    return count, place, fault
                at += length
                dark = not dark
                changes[count] = at
                count += 1
            continue
        # The first change above, to the right, towards the other colour: b1 of the standard.
        while near > 0 and above[near - 1] > at:
            near -= 1
        near += (near & 1) != dark
        while above[near] <= at and above[near] < width:
            near += 2
        if mode == _PASS:
            at = above[near + 1]
            if at == width:  # the row is complete
                return count, place, _TOO_WIDE
            continue
        target = above[near] + mode - 3
        if target <= at or target > width:
            return count, place, _TOO_WIDE
        at = target
        dark = not dark
        changes[count] = at
        count += 1
    return count, place, _WHOLE


@kernel
def _by_colour(changes: Any, count: int, width: int, kept: Any) -> int:
    """Keep the changes of a row that its pixels show, without runs of no pixels; return how many.

    A row may begin with such runs, or end with one: all decoders agree about these.
    """
    number = 0
    for change in range(count):
        at = changes[change]
        if number and 0 < at < width and kept[number - 1] == at:
            number -= 1
        else:
            kept[number] = at
            number += 1
    return number


@kernel
def _end_of_line(data: Any, place: int, end: int) -> int:
    """Return the place after eleven or more zeros and a one, or -1 if the bits differ."""
    start = place
    while place < end and not _peek(data, place, 1):
        place += 1
    return place + 1 if place < end and place - start >= 11 else -1


@kernel
def _rest(data: Any, place: int, end: int, compression: int, tagged: bool) -> int:
    """Return the error after the last row, where only end marks and zeros may follow."""
    marks = 0
    while compression != HUFFMAN:
        after = _end_of_line(data, place, end)
        if after < 0:
            break
        place = after + tagged
        marks += 1
        if marks == 2:
            return _WHOLE
    while place < end:
        if _peek(data, place, 1):
            return _MORE
        place += 1
    return _WHOLE


@kernel
def _decode(  # noqa: C901 - compiled by Numba as one loop
    data: Any,
    end: int,
    pixels: Any,
    compression: int,
    two: bool,
    white: Any,
    black: Any,
    modes: Any,
) -> tuple[int, int]:
    """Paint the black runs of all rows; return the row that failed, and its error."""
    rows, width = pixels.shape
    changes, above = np.empty(2 * width + 8, np.int64), np.empty(2 * width + 8, np.int64)
    # By the recommendation, changes are those that pixels show. Some programs also count both ends
    # of a run of no pixels: `other`. Where it matters in the next row, the data are ambiguous.
    other, again = np.empty(2 * width + 8, np.int64), np.empty(2 * width + 8, np.int64)
    above[:4] = width
    differs = False
    place, marked = 0, False
    for row in range(rows):
        alone = compression != GROUP_4
        if compression == GROUP_3:
            after = _end_of_line(data, place, end)
            if after >= 0 and _end_of_line(data, after + two, end) == after + two + 12:
                return row, _FEW_ROWS
            # Some files have no marks at all.
            if (row > 0 and marked != (after >= 0)) or (two and after < 0):
                return row, (_NO_MARK if place < end else _CUT_OFF)
            marked = after >= 0
            if marked:
                place = after
            if two:
                alone = _peek(data, place, 1) == 1
                place += 1
        elif compression == GROUP_4 and _end_of_line(data, place, end) == place + 12:
            return row, _FEW_ROWS
        if alone:
            count, place, fault = _row_alone(data, place, width, changes, two, white, black)
        else:
            begin = place
            count, place, fault = _row_by_reference(
                data, begin, width, changes, above, white, black, modes
            )
            if differs and (count, place, fault) != _row_by_reference(
                data, begin, width, again, other, white, black, modes
            ):
                return row - 1, _EMPTY_RUN
            for change in range(count if differs else 0):
                if changes[change] != again[change]:
                    return row - 1, _EMPTY_RUN
        if place > end or (fault == _BAD_CODE and place + _RUN_BITS > end):
            return row, _CUT_OFF
        if fault != _WHOLE:
            return row, fault
        if compression == HUFFMAN:
            padding = -place & 7
            if _peek(data, place, padding):
                return row, _TOO_WIDE
            place += padding
        changes[count : count + 3] = width
        for change in range(0, count, 2):
            pixels[row, changes[change] : changes[change + 1]] = True
        changes, other = other, changes
        number = _by_colour(other, count, width, above)
        above[number : number + 3] = width
        differs = number != count
    fault = _rest(data, place, end, compression, two)
    return rows - 1, fault

"""Arrays as texts of JSON: few numbers compressed together, many byte by byte, as far as that shortens them."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MANY: Final = 2**14  # numbers, whose first bytes, second bytes, ... are kept apart: noise makes the low ones random
SAMPLE: Final = 2**12  # bytes that tell whether compressing shortens all
FULL: Final = np.uint8(255)  # the highest byte of small negative numbers
RANDOM: Final = 0.9  # of their length, or more, is left of random ones


def packed_array(array: NDArray[Any], dtype: str) -> str | list[str]:
    """The numbers as one text, many as one for each byte of a number, the lowest first."""
    numbers = np.ascontiguousarray(array, dtype=dtype)
    if numbers.size < MANY:
        return _text(zlib.compress(numbers.tobytes(), 1))
    planes = np.ascontiguousarray(numbers.reshape(-1, 1).view(np.uint8).T)
    _without_sign(planes, dtype)
    return [_text(_compressed(plane)) for plane in planes]


def unpacked_array(packed: str | list[str], dtype: str) -> NDArray[Any]:
    """The numbers from `packed_array`, in one dimension."""
    if isinstance(packed, str):
        raw = np.frombuffer(_bytes(packed), dtype=dtype)
    else:
        planes = np.array([np.frombuffer(_bytes(plane), dtype=np.uint8) for plane in packed])
        _without_sign(planes, dtype)
        raw = np.ascontiguousarray(planes.T).view(dtype).ravel()
    return raw.astype(raw.dtype.newbyteorder("="))


def _without_sign(planes: NDArray[np.uint8], dtype: str) -> None:
    """Take the bits that fill up small negative numbers out of all bytes but the highest, or put them back."""
    if np.dtype(dtype).kind == "i":
        planes[:-1] ^= (planes[-1] == FULL) * FULL


def _compressed(plane: NDArray[np.uint8]) -> bytes:
    """Bytes as zlib has them: as they are where a sample is random, and runs of equal ones shortened elsewhere."""
    sample = plane[:: len(plane) // SAMPLE].tobytes()
    is_random = len(zlib.compress(sample, 1)) > RANDOM * len(sample)
    deflate = zlib.compressobj(0 if is_random else 1, strategy=zlib.Z_RLE)
    return deflate.compress(plane.data) + deflate.flush()


def _text(packed: bytes) -> str:
    return base64.b64encode(packed).decode("ascii")


def _bytes(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))

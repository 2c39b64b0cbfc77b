"""Probabilistic quantisation with an optional rotation (Konecny et al. 2016, Sec. 3, "sketched updates").

    each tensor h of the update, in [lo, hi]:   step = (hi - lo) / (2^bits - 1),   x = (h - lo) / step
    client:  sends lo, hi and, for each number, floor(x) + 1 with probability x - floor(x), else floor(x)
    server:  lo + step times the number sent;   its mean is h, its variance at most step^2 / 4

`rotate` turns h by random signs and a Hadamard matrix, padded with zeros to a power of two, before that and back
after it: numbers become alike in size and the range short, but the padding is sent too. rho < 1 sends that share of
each tensor's (rotated) numbers, scaled up by its inverse. The order is rotate, subsample, quantise, and back.

Departures from the paper: none. (It leaves open how numbers are packed: one string of bits for all tensors.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, UInt8, UInt16

from fedcohort import ranges
from fedcohort.codec.base import Codec
from fedcohort.codec.wire import SEED, Numbers, Wire, count, flatten, seed_of, shared_draws, subset, unflatten
from fedcohort.flat import Block, Layout
from fedcohort.hook import Vector
from fedcohort.ledger import NUMBER

Values = Float[np.ndarray, "_n"]
Codes = UInt16[np.ndarray, "_n"]
QUIET = np.errstate(invalid="ignore")  # an update that is not finite is left out by the engine, which says so


def quantise(h: Values, bits: int, u: Values) -> tuple[Float32[np.ndarray, "2"], Codes]:
    """Return (lo, hi) and the level of each number; u: U[0, 1) each.

    Without a range all levels are 0: lo is the constant.
    """
    ends = np.array([h.min(), h.max()], dtype=np.float32)
    step = _step(ends, bits)
    if not 0 < step < np.inf:
        return ends, np.zeros(len(h), dtype=np.uint16)
    levels = np.floor((h - float(ends[0])) / step + u)
    return ends, np.clip(levels, 0, 2**bits - 1).astype(np.uint16)


@QUIET
def dequantise(ends: Float32[np.ndarray, "2"], codes: Codes, bits: int) -> Values:
    """Return lo + step times the levels; not finite where an end isn't."""
    return float(ends[0]) + _step(ends, bits) * codes


def _step(ends: Float32[np.ndarray, "2"], bits: int) -> float:
    return (float(ends[1]) - float(ends[0])) / ((1 << bits) - 1)


def pack_bits(codes: Codes, bits: int) -> UInt8[np.ndarray, "_b"]:
    """Pack the lowest `bits` bits of each number, one after the other, into bytes."""
    table = np.empty((len(codes), bits), dtype=np.uint8)
    for bit in range(bits):
        table[:, bit] = (codes >> np.uint16(bit)) & np.uint16(1)
    return np.packbits(table, bitorder="little")


def unpack_bits(string: UInt8[np.ndarray, "_b"], bits: int, n: int) -> Codes:
    """Return the first n numbers of what `pack_bits` made."""
    table = np.unpackbits(string, count=n * bits, bitorder="little").reshape(n, bits)
    codes = np.zeros(n, dtype=np.uint16)
    for bit in range(bits):
        codes |= table[:, bit].astype(np.uint16) << np.uint16(bit)
    return codes


@QUIET
def hadamard(x: Values) -> Values:
    """H x with the orthonormal Walsh-Hadamard matrix, len(x) a power of two: its own inverse. O(n log n).

    H is (1, 1; 1, -1) in each bit of the index. Each pass works on the last bit and makes it the first, so that after
    as many passes as there are bits all have had their turn and stand where they stood.
    """
    y = x
    for _ in range(len(x).bit_length() - 1):
        a, b = y[::2], y[1::2]
        y = np.concatenate([a + b, a - b])
    rotation: Values = y / np.sqrt(len(x))
    return rotation


@dataclass(frozen=True)
class Sketch:
    """The linear part of one tensor of n numbers.

    Attributes:
        signs: [its padded length], None for no rotation.
        kept: which of the rotated numbers are sent, None for all.
        length: how many there are.
    """

    n: int
    length: int
    signs: Values | None
    kept: np.ndarray | None

    def forth(self, h: Values) -> Values:
        """What is quantised, of h [n]."""
        if self.signs is not None:
            h = hadamard(self.signs * np.pad(h, (0, self.length - self.n)))
        return h if self.kept is None else h[self.kept] * (self.length / len(self.kept))

    def back(self, x: Values) -> Values:
        """The tensor, [n]."""
        if self.kept is not None:
            values, x = x, np.zeros(self.length)
            x[self.kept] = values
        return x if self.signs is None else (self.signs * hadamard(x))[: self.n]


@dataclass(frozen=True)
class Quant(Codec):
    """The codec, with its options.

    Attributes:
        bits: of a number.
        rotate: by random signs and a Hadamard matrix.
        rho: share of the numbers that is sent.
    """

    bits: int
    rotate: bool
    rho: float

    def __post_init__(self) -> None:
        ranges.integer("bits", self.bits, "[1, 16]")
        ranges.flag("rotate", self.rotate)
        ranges.number("rho", self.rho, "(0, 1]")

    def bytes_up(self, layout: Layout) -> int:
        """bits / 8 for each number sent, 8 for each tensor's ends, 8 for the seed where anything is drawn."""
        return -(-self._numbers(layout) * self.bits // 8) + 2 * NUMBER * len(layout.parameters) + SEED * self._draws

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return unflatten(self.decode(self.encode(delta, layout, rng), layout), layout, delta)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """The seed where it is needed, ends [tensors, 2], and a string of bits."""
        own = rng()
        values, seed = flatten(delta, layout).astype(np.float64), seed_of(own)
        ends = np.empty((len(layout.parameters), 2), dtype=np.float32)
        codes = np.empty(self._numbers(layout), dtype=np.uint16)
        start = 0
        for i, block in enumerate(layout.parameters):
            h = self._sketch(block, seed).forth(values[block.offset : block.offset + block.size])
            ends[i], codes[start : start + len(h)] = quantise(h, self.bits, own.random(len(h)))
            start += len(h)
        string = pack_bits(codes, self.bits)
        return (seed, ends, string) if self._draws else (ends, string)

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        ends, string = wire[-2:]
        codes = unpack_bits(string, self.bits, self._numbers(layout))
        out = np.empty(layout.n_params, dtype=np.float32)
        start = 0
        for both, block in zip(ends, layout.parameters, strict=True):
            stop = start + self._encode(block)
            x = dequantise(both, codes[start:stop], self.bits)
            out[block.offset : block.offset + block.size] = self._sketch(block, wire[0]).back(x)
            start = stop
        return out

    @property
    def _draws(self) -> bool:
        return self.rotate or self.rho < 1

    def _length(self, block: Block) -> int:
        return 1 << (block.size - 1).bit_length() if self.rotate else block.size

    def _encode(self, block: Block) -> int:
        return count(self.rho, self._length(block))

    def _numbers(self, layout: Layout) -> int:
        return sum(self._encode(block) for block in layout.parameters)

    def _sketch(self, block: Block, seed: np.ndarray) -> Sketch:
        """seed: read where anything is drawn."""
        n, length = block.size, self._length(block)
        if not self._draws:
            return Sketch(n, length, None, None)
        rng = shared_draws(seed, block)
        signs = rng.choice((-1.0, 1.0), length) if self.rotate else None
        return Sketch(n, length, signs, subset(self.rho, length, rng) if self.rho < 1 else None)

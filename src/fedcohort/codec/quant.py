"""Stochastic quantisation with an optional rotation (Konecny et al. 2016, "sketched updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 3.

    h:  a tensor of the update, in [lo, hi]
    step:  (hi - lo) / (2^bits - 1)
    level:  x = (h - lo) / step
    client:  sends lo, hi and, for each number, floor(x) + 1 with probability x - floor(x), else floor(x)
    server:  lo + step times the number sent, which has the mean h and a variance of at most step^2 / 4

`rotate` multiplies h by random signs and a Hadamard matrix, padded with zeros to a power of two, and the server inverts
it: numbers become similar in size and their range short, but the padding is sent too. rho < 1 sends that share of each
tensor's (rotated) numbers, scaled by its inverse. The order is rotate, subsample, quantise.

Departures from the paper: none. (It does not say how numbers are packed: one bit string for all tensors.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, UInt8, UInt16

from fedcohort import ranges
from fedcohort.codec.base import WireCodec
from fedcohort.codec.wire import SEED, Numbers, Wire, count_sent, draw_seed, draw_sent_mask, flatten, shared_generator
from fedcohort.flat import Block, Layout
from fedcohort.hook import Vector
from fedcohort.ledger import NUMBER

Values = Float[np.ndarray, "_n"]
Codes = UInt16[np.ndarray, "_n"]
ALLOW_NAN = np.errstate(invalid="ignore")  # the engine leaves out an update that is not finite, with a message


def quantise(h: Values, bits: int, u: Values) -> tuple[Float32[np.ndarray, "2"], Codes]:
    """Quantise numbers stochastically; return their range (lo, hi) as float32, and each number's level, uint16 [n].

    Where lo = hi all levels are 0, and lo is the constant.

    Args:
        h: the numbers, [n].
        bits: bits of a level.
        u: draws from U[0, 1), [n].
    """
    value_range = np.array([h.min(), h.max()], dtype=np.float32)
    step = _level_step(value_range, bits)
    if not 0 < step < np.inf:
        return value_range, np.zeros(len(h), dtype=np.uint16)
    levels = np.floor((h - float(value_range[0])) / step + u)
    return value_range, np.clip(levels, 0, 2**bits - 1).astype(np.uint16)


@ALLOW_NAN
def dequantise(value_range: Float32[np.ndarray, "2"], codes: Codes, bits: int) -> Values:
    """Return lo + step times the levels; not finite where lo or hi is not."""
    return float(value_range[0]) + _level_step(value_range, bits) * codes


def _level_step(value_range: Float32[np.ndarray, "2"], bits: int) -> float:
    return (float(value_range[1]) - float(value_range[0])) / ((1 << bits) - 1)


def pack_bits(codes: Codes, bits: int) -> UInt8[np.ndarray, "_b"]:
    """Return the lowest `bits` bits of each number of `codes`, packed into bytes."""
    table = np.empty((len(codes), bits), dtype=np.uint8)
    for bit in range(bits):
        table[:, bit] = (codes >> np.uint16(bit)) & np.uint16(1)
    return np.packbits(table, bitorder="little")


def unpack_bits(packed_bits: UInt8[np.ndarray, "_b"], bits: int, n: int) -> Codes:
    """Return the n numbers of `bits` bits each from the bytes of `pack_bits`."""
    table = np.unpackbits(packed_bits, count=n * bits, bitorder="little").reshape(n, bits)
    codes = np.zeros(n, dtype=np.uint16)
    for bit in range(bits):
        codes |= table[:, bit].astype(np.uint16) << np.uint16(bit)
    return codes


@ALLOW_NAN
def hadamard(x: Values) -> Values:
    """Return H x with the orthonormal Walsh-Hadamard matrix, which is its own inverse, in O(n log n).

    len(x) is a power of two. H is (1, 1; 1, -1) in each bit of the index. Each pass transforms the last bit and makes
    it the first. After as many passes as there are bits all are transformed, in their original order.
    """
    y = x
    for _ in range(len(x).bit_length() - 1):
        a, b = y[::2], y[1::2]
        y = np.concatenate([a + b, a - b])
    rotation: Values = y / np.sqrt(len(x))
    return rotation


@dataclass(frozen=True)
class LinearPart:
    """The linear part of the encoding of one tensor of n numbers: a random rotation and a random subsample.

    Attributes:
        n: numbers of the tensor.
        length: numbers after the rotation, with padding.
        signs: random signs, [length], None for no rotation.
        sent: positions of the rotated numbers that are sent, None for all.
    """

    n: int
    length: int
    signs: Values | None
    sent: np.ndarray | None

    def encode_linear(self, h: Values) -> Values:
        """Return the rotated and subsampled numbers of a tensor h [n], which are quantised next."""
        if self.signs is not None:
            h = hadamard(self.signs * np.pad(h, (0, self.length - self.n)))
        return h if self.sent is None else h[self.sent] * (self.length / len(self.sent))

    def decode_linear(self, x: Values) -> Values:
        """Return the tensor [n] from its rotated and subsampled numbers x: the inverse of `encode_linear`."""
        if self.sent is not None:
            values, x = x, np.zeros(self.length)
            x[self.sent] = values
        return x if self.signs is None else (self.signs * hadamard(x))[: self.n]


@dataclass(frozen=True)
class Quant(WireCodec):
    """Stochastic quantisation of updates to a few bits per number, an upload codec.

    Attributes:
        bits: bits of a number.
        rotate: whether tensors are multiplied by random signs and a Hadamard matrix.
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
        """Return the bytes of an upload: bits / 8 for each number sent, 8 for each tensor's range, 8 for a seed."""
        return -(-self._n_sent(layout) * self.bits // 8) + 2 * NUMBER * len(layout.parameters) + SEED * self._uses_seed

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """Return the arrays to send: the seed if one is needed, the ranges [tensors, 2], and the levels as bits."""
        client_rng = rng()
        values, seed = flatten(delta, layout).astype(np.float64), draw_seed(client_rng)
        value_range = np.empty((len(layout.parameters), 2), dtype=np.float32)
        codes = np.empty(self._n_sent(layout), dtype=np.uint16)
        start = 0
        for i, block in enumerate(layout.parameters):
            h = self._linear_part(block, seed).encode_linear(values[block.offset : block.offset + block.size])
            value_range[i], codes[start : start + len(h)] = quantise(h, self.bits, client_rng.random(len(h)))
            start += len(h)
        packed_bits = pack_bits(codes, self.bits)
        return (seed, value_range, packed_bits) if self._uses_seed else (value_range, packed_bits)

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        value_range, packed_bits = wire[-2:]
        codes = unpack_bits(packed_bits, self.bits, self._n_sent(layout))
        out = np.empty(layout.n_params, dtype=np.float32)
        start = 0
        for block_range, block in zip(value_range, layout.parameters, strict=True):
            stop = start + self._sent_length(block)
            x = dequantise(block_range, codes[start:stop], self.bits)
            out[block.offset : block.offset + block.size] = self._linear_part(block, wire[0]).decode_linear(x)
            start = stop
        return out

    @property
    def _uses_seed(self) -> bool:
        return self.rotate or self.rho < 1

    def _rotated_length(self, block: Block) -> int:
        return 1 << (block.size - 1).bit_length() if self.rotate else block.size

    def _sent_length(self, block: Block) -> int:
        return count_sent(self.rho, self._rotated_length(block))

    def _n_sent(self, layout: Layout) -> int:
        return sum(self._sent_length(block) for block in layout.parameters)

    def _linear_part(self, block: Block, seed: np.ndarray) -> LinearPart:
        """Return the rotation and subsample of a tensor, which client and server derive from the same seed."""
        n, length = block.size, self._rotated_length(block)
        if not self._uses_seed:
            return LinearPart(n, length, None, None)
        rng = shared_generator(seed, block)
        signs = rng.choice((-1.0, 1.0), length) if self.rotate else None
        return LinearPart(n, length, signs, draw_sent_mask(self.rho, length, rng) if self.rho < 1 else None)

"""Stochastic quantisation with an optional rotation (Konecny et al. 2016, "sketched updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 3.

    h:  a tensor of the update, in [lo, hi]
    level_step:  (hi - lo) / (2^bits - 1)
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
from fedcohort.codec import wire
from fedcohort.codec.base import WireCodec
from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import Vector
from fedcohort.ledger import BYTES_PER_NUMBER

Reals = Float[np.ndarray, "_n"]
Levels = UInt16[np.ndarray, "_n"]
IGNORE_NAN = np.errstate(invalid="ignore")  # the engine leaves out an update that is not finite, with a message


def quantise(numbers: Reals, bits_per_level: int, uniform_draws: Reals) -> tuple[Float32[np.ndarray, "2"], Levels]:
    """Quantise numbers stochastically; return their minimum and maximum, and the level of each, uint16 [n].

    If all numbers are equal, or one is not finite, all levels are 0.

    Args:
        numbers: the numbers, [n].
        bits_per_level: bits of a level.
        uniform_draws: draws from U[0, 1), [n].
    """
    value_range = np.array([numbers.min(), numbers.max()], dtype=np.float32)
    level_step = _quantisation_step(value_range, bits_per_level)
    if not 0 < level_step < np.inf:
        return value_range, np.zeros(len(numbers), dtype=np.uint16)
    levels = np.floor((numbers - float(value_range[0])) / level_step + uniform_draws)
    return value_range, np.clip(levels, 0, 2**bits_per_level - 1).astype(np.uint16)


@IGNORE_NAN
def dequantise_levels(value_range: Float32[np.ndarray, "2"], levels: Levels, bits_per_level: int) -> Reals:
    """Return the numbers that the levels stand for, minimum + step x level, [n]; not finite if the range is not.

    Args:
        value_range: minimum and maximum of the original numbers.
        levels: level of each number, uint16 [n].
        bits_per_level: bits of a level.
    """
    return float(value_range[0]) + _quantisation_step(value_range, bits_per_level) * levels


def _quantisation_step(value_range: Float32[np.ndarray, "2"], bits_per_level: int) -> float:
    return (float(value_range[1]) - float(value_range[0])) / ((1 << bits_per_level) - 1)


def pack_bits(levels: Levels, bits_per_level: int) -> UInt8[np.ndarray, "_b"]:
    """Return the lowest `bits_per_level` bits of each number of `levels`, packed into bytes."""
    bit_table = np.empty((len(levels), bits_per_level), dtype=np.uint8)
    for bit_position in range(bits_per_level):
        bit_table[:, bit_position] = (levels >> np.uint16(bit_position)) & np.uint16(1)
    return np.packbits(bit_table, bitorder="little")


def unpack_bits(packed_bits: UInt8[np.ndarray, "_b"], bits_per_level: int, n_levels: int) -> Levels:
    """Return the numbers that `pack_bits` packed into bytes, uint16 [n_levels].

    Args:
        packed_bits: the bytes.
        bits_per_level: bits of each number.
        n_levels: number of numbers.
    """
    unpacked_bits = np.unpackbits(packed_bits, count=n_levels * bits_per_level, bitorder="little")
    bit_table = unpacked_bits.reshape(n_levels, bits_per_level)
    levels = np.zeros(n_levels, dtype=np.uint16)
    for bit_position in range(bits_per_level):
        levels |= bit_table[:, bit_position].astype(np.uint16) << np.uint16(bit_position)
    return levels


@IGNORE_NAN
def hadamard_transform(x: Reals) -> Reals:
    """Return H x with the orthonormal Walsh-Hadamard matrix H, which is its own inverse, in O(n log n).

    The length of x is a power of two. H is (1, 1; 1, -1) in each bit of the index. Each pass transforms the last bit
    and makes it the first. After as many passes as there are bits, all bits are transformed, in their original order.
    """
    transformed_values = x
    for _ in range(len(x).bit_length() - 1):
        even_entries, odd_entries = transformed_values[::2], transformed_values[1::2]
        transformed_values = np.concatenate([even_entries + odd_entries, even_entries - odd_entries])
    return np.asarray(transformed_values / np.sqrt(len(x)))


@dataclass(frozen=True)
class TensorSketch:
    """The linear part of the encoding of one tensor: a random rotation and a random subsample.

    Attributes:
        n_numbers: number of entries of the tensor.
        rotated_length: number of entries after the rotation, with padding.
        random_signs: random signs of the rotation, [rotated_length]; None without rotation.
        sent_positions: positions of the rotated numbers that are sent, int64; None if all are sent.
    """

    n_numbers: int
    rotated_length: int
    random_signs: Reals | None
    sent_positions: np.ndarray | None

    def rotate_and_subsample(self, h: Reals) -> Reals:
        """Return the rotated and subsampled numbers of a tensor h [n], which are quantised next."""
        if self.random_signs is not None:
            h = hadamard_transform(self.random_signs * np.pad(h, (0, self.rotated_length - self.n_numbers)))
        if self.sent_positions is None:
            return h
        return np.asarray(h[self.sent_positions] * (self.rotated_length / len(self.sent_positions)))

    def unrotate_and_fill(self, x: Reals) -> Reals:
        """Return the tensor [n] that the server decodes from the rotated and subsampled numbers x."""
        if self.sent_positions is not None:
            sent_values, x = x, np.zeros(self.rotated_length)
            x[self.sent_positions] = sent_values
        return x if self.random_signs is None else (self.random_signs * hadamard_transform(x))[: self.n_numbers]


@dataclass(frozen=True)
class Quant(WireCodec):
    """Stochastic quantisation of updates to a few bits per number, an upload codec.

    Attributes:
        bits: bits of a quantised number.
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
        """Return the bytes of an upload: bits / 8 for each number sent, 8 for each tensor's range, 8 for a seed.

        Args:
            layout: names and shapes of the network's tensors.
        """
        bytes_of_levels, bytes_per_range = -(-self._count_sent_numbers(layout) * self.bits // 8), 2 * BYTES_PER_NUMBER
        return bytes_of_levels + bytes_per_range * len(layout.parameters) + wire.SEED_BYTES * self._sends_seed

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> wire.SentArrays:
        """Return the arrays to send: the seed if one is needed, the ranges [tensors, 2], and the levels as bits.

        Args:
            delta: the update, [P].
            layout: names and shapes of the network's tensors.
            rng: function that returns the client's generator, for the seed and the rounding.
        """
        client_rng = rng()
        update_values, seed = wire.to_index_order(delta, layout).astype(np.float64), wire.draw_seed(client_rng)
        tensor_value_ranges = np.empty((len(layout.parameters), 2), dtype=np.float32)
        levels = np.empty(self._count_sent_numbers(layout), dtype=np.uint16)
        sent_start = 0
        for i, block in enumerate(layout.parameters):
            tensor_numbers = update_values[block.offset : block.offset + block.size]
            sketched_numbers = self._make_tensor_sketch(block, seed).rotate_and_subsample(tensor_numbers)
            sent_stop = sent_start + len(sketched_numbers)
            uniform_draws = client_rng.random(len(sketched_numbers))
            tensor_value_ranges[i], levels[sent_start:sent_stop] = quantise(sketched_numbers, self.bits, uniform_draws)
            sent_start = sent_stop
        sent_arrays = (tensor_value_ranges, pack_bits(levels, self.bits))
        return (seed, *sent_arrays) if self._sends_seed else sent_arrays

    def decode(self, sent_arrays: wire.SentArrays, layout: Layout) -> wire.Float32Vector:
        tensor_value_ranges, packed_bits = sent_arrays[-2:]
        levels = unpack_bits(packed_bits, self.bits, self._count_sent_numbers(layout))
        decoded_update = np.empty(layout.n_params, dtype=np.float32)
        sent_start = 0
        for tensor_value_range, block in zip(tensor_value_ranges, layout.parameters, strict=True):
            sent_stop = sent_start + self._sent_tensor_length(block)
            sketched_numbers = dequantise_levels(tensor_value_range, levels[sent_start:sent_stop], self.bits)
            tensor_numbers = self._make_tensor_sketch(block, sent_arrays[0]).unrotate_and_fill(sketched_numbers)
            decoded_update[block.offset : block.offset + block.size] = tensor_numbers
            sent_start = sent_stop
        return decoded_update

    @property
    def _sends_seed(self) -> bool:
        return self.rotate or self.rho < 1

    def _rotated_length(self, block: TensorBlock) -> int:
        return 1 << (block.size - 1).bit_length() if self.rotate else block.size

    def _sent_tensor_length(self, block: TensorBlock) -> int:
        return wire.count_sent_numbers(self.rho, self._rotated_length(block))

    def _count_sent_numbers(self, layout: Layout) -> int:
        return sum(self._sent_tensor_length(block) for block in layout.parameters)

    def _make_tensor_sketch(self, block: TensorBlock, sketch_seed: np.ndarray) -> TensorSketch:
        """Return the rotation and subsample of the tensor at `block`, which follow from `sketch_seed`, uint64 [1]."""
        n_numbers, rotated_length = block.size, self._rotated_length(block)
        if not self._sends_seed:
            return TensorSketch(n_numbers, rotated_length, None, None)
        rng = wire.client_and_server_rng(sketch_seed, block)
        random_signs = rng.choice((-1.0, 1.0), rotated_length) if self.rotate else None
        sent_positions = wire.draw_tensor_positions(self.rho, rotated_length, rng) if self.rho < 1 else None
        return TensorSketch(n_numbers, rotated_length, random_signs, sent_positions)

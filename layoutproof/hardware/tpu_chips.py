"""The TPU generations: one table, one entry for each, with everything that any part of this program knows of a chip.

A new generation is one more entry here. All numbers are for one TensorCore as JAX counts them: a v4 or v5p chip is one
device with two cores ("megacore"), a 7x chip is two devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.hardware.facts import Fact
from layoutproof.hardware.tpu_described import described

KIB, MIB = 1 << 10, 1 << 20
_GIGA, _TERA = 10**9, 10**12
_PACKED = frozenset({1, 2, 4})


@dataclass(frozen=True, slots=True)
class SparseCore:
    """The SparseCores of a generation, as one Pallas kernel may use them.

    cores: SparseCores.  subcores: vector subcores of each; it has one scalar subcore.  lanes: of 32 bits in a vector.
    vmem: bytes of a core's memory that its subcores share: the vector memory of each, and `VMEM_SHARED`.
    smem: bytes of the scalar memory of a vector subcore.
    """

    cores: int
    subcores: int
    lanes: int
    vmem: int
    smem: int = 2046 * 4

    def __str__(self) -> str:
        return (
            f"{self.cores} with {self.subcores} subcores of {self.lanes} lanes, {self.vmem} bytes, {self.smem} of SMEM"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One generation.

    name: the canonical name.
    aliases: other names that are accepted, in lower case: those of the compiler, and device kinds less `TPU`.
    nicknames: names in use that are not accepted, with this chip as what they most likely mean: marketing names, and
        Cloud's accelerator types.
    kind: the device kind as JAX spells it.
    topology: one chip, as `jax.experimental.topologies.get_topology_desc` takes it.
    devices: of JAX that each chip of a described topology is.

    packed_rows: the fewest rows of a tile, in rows of 32 bits.
    sub_byte: whether elements narrower than 8 bits are stored packed; if not, each takes a byte.
    large_tiles: widths in bits whose tile grows to 8 rows of 32 bits where the extent divides evenly.

    cores: TensorCores that one Pallas call may use.
    hbm: bytes of the largest array accepted as a program's only argument; one chip. A v4 in megacore mode has 31484 MiB
        instead (libtpu 0.0.42.1).
    vmem: bytes that the windows of one Pallas kernel may take together when it raises its own limit.
    vmem_scoped: the same for a kernel that asks for no limit.
    vmem_begin: the scratch and the windows of a kernel begin in VMEM at multiples of so many bytes.
    fetches: whether XLA fetches inputs of a call as a whole into VMEM that the call leaves free.
    smem: bytes of scalar memory.
    bandwidth: of HBM, bytes a second.  bf16, int8, fp8: operations a second on elements of this type, 0 = the chip has
        no unit for them.
    multiplies: multiplications of bf16 that the matrix units of one core begin in a cycle, 0 = not known. Four units of
        128 x 128 are published for v5e and v5p. For v6e and 7x units of 256 x 256 are counted in the compiler's own
        simulation: a matmul of 4096^3 in bf16, blocks of 1024, takes 302,165 and 301,800 cycles (libtpu 0.0.52), more
        than four could need (262,144) and fewer than three (349,526). `tpu_info.py` of jax 0.10.2 lists two for both.

    stores: vector registers of 4 KiB that a core adds to and stores in a cycle, rounded down, 0 = not known. By the
        same simulation: a scratch of 512 more registers, to which each program adds, takes 512 cycles more on v5e and
        v5p, 214 on v6e and 145 on 7x (libtpu 0.0.52, 2026-11-26).

    link_bandwidth: bytes a second that one link between chips carries in each direction, 0 = not known. Where a source
        gives a chip's bandwidth in both directions, it is that by twice its links: 4 in a plane, 6 in space.
    closes: a direction of a slice with a multiple of so many chips may be closed to a ring, no other is; 1 = not known.

    sparse: its SparseCores, None = it has none that Pallas uses.

    `_SOURCES` says for each of them where it comes from.
    """

    name: str
    aliases: tuple[str, ...] = ()
    nicknames: tuple[str, ...] = ()
    kind: str
    topology: str
    devices: int = 1
    packed_rows: int = 1
    sub_byte: bool = True
    large_tiles: frozenset[int] = _PACKED | {8}
    cores: int = 1
    hbm: int
    vmem: int
    vmem_scoped: int = 16 * MIB
    vmem_begin: int = 512
    fetches: bool = False
    smem: int = 1 * MIB
    bandwidth: int
    bf16: int
    int8: int = 0
    fp8: int = 0
    multiplies: int = 0
    stores: int = 0
    link_bandwidth: int = 0
    closes: int = 1
    sparse: SparseCore | None = None

    def peak(self, bits: int, floating: bool = True) -> int:
        """Operations a second on elements of `bits` bits; those of bf16 where the chip has no unit of its own."""
        own = 0 if bits > 8 else self.fp8 if floating else self.int8
        return own or self.bf16

    def stored(self, bits: int) -> int:
        """Bits that an element of `bits` bits takes in memory."""
        return bits if self.sub_byte else max(bits, 8)


def _shown(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(map(str, sorted(value))) or "none"
    return "none" if value is None else str(value)


_TABLE = (
    Chip(
        name="v2", kind="TPU v2", topology="v2:1x1", devices=2,
        packed_rows=2, sub_byte=False, large_tiles=frozenset(),
        hbm=7660 * MIB, vmem=16 * MIB, vmem_begin=4 * KIB, smem=16 * KIB, bandwidth=358 * _GIGA, bf16=23 * _TERA,
    ),
    Chip(
        name="v3", kind="TPU v3", topology="v3:1x1", devices=2,
        packed_rows=2, sub_byte=False, large_tiles=frozenset(),
        hbm=15852 * MIB, vmem=16 * MIB, vmem_begin=4 * KIB, smem=16 * KIB, bandwidth=412_500_000_000, bf16=70 * _TERA,
    ),
    Chip(
        name="v4", aliases=("v4megacore",), kind="TPU v4", topology="v4:1x1x1", devices=2, cores=2,
        hbm=15613 * MIB, vmem=16 * MIB, bandwidth=615 * _GIGA, bf16=137_500_000_000_000,
        link_bandwidth=50 * _GIGA, closes=4,
    ),
    Chip(
        name="v4lite", aliases=("v4i",), kind="TPU v4 lite", topology="v4 lite:1x1", large_tiles=_PACKED,
        hbm=7932 * MIB, vmem=16 * MIB, bandwidth=614 * _GIGA, bf16=137 * _TERA,
    ),
    Chip(
        name="v5e", aliases=("v5lite",), nicknames=("v5litepod",), kind="TPU v5 lite", topology="v5e:1x1",
        hbm=16124 * MIB, vmem=128 * MIB, bandwidth=820 * _GIGA, bf16=197 * _TERA, int8=394 * _TERA,
        multiplies=4 * 128 * 128, stores=1, link_bandwidth=50 * _GIGA, closes=16,
    ),
    Chip(
        name="v5p", aliases=("v5",), kind="TPU v5", topology="v5p:1x1x1", cores=2,
        hbm=98022 * MIB, vmem=65472 * KIB, bandwidth=1230 * _GIGA, bf16=229_500_000_000_000, int8=459 * _TERA,
        multiplies=4 * 128 * 128, stores=1, link_bandwidth=100 * _GIGA, closes=4,
        sparse=SparseCore(4, 16, 8, 8 * MIB - 4),
    ),
    Chip(
        name="v6e", aliases=("v6lite",), nicknames=("trillium", "v6"), kind="TPU v6 lite", topology="v6e:1x1",
        hbm=31990 * MIB, vmem=131008 * KIB, vmem_scoped=32 * MIB,
        bandwidth=1640 * _GIGA, bf16=920 * _TERA, int8=1840 * _TERA, fp8=920 * _TERA, multiplies=4 * 256 * 256,
        stores=2, link_bandwidth=100 * _GIGA, closes=16, sparse=SparseCore(2, 16, 8, 4 * MIB - 4),
    ),
    Chip(
        name="7x", nicknames=("v7x", "v7", "ironwood"), kind="TPU7x", topology="tpu7x:1x1x1", devices=2,
        hbm=97010 * MIB, vmem=65472 * KIB, vmem_scoped=32 * MIB, fetches=True,
        bandwidth=3700 * _GIGA, bf16=1155 * _TERA, fp8=2300 * _TERA, multiplies=4 * 256 * 256,
        stores=3, link_bandwidth=100 * _GIGA, sparse=SparseCore(2, 16, 16, 8 * MIB - 4),
    ),
)  # fmt: skip

_TPU_INFO = ("jax 0.10.2", "jax/_src/pallas/mosaic/tpu_info.py")
_SOURCES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "kind": ("libtpu 0.0.52", "the device of a described topology, as tpu_info.py of jax 0.10.2 spells it"),
        "topology": ("libtpu 0.0.52", "the name is taken"),
        "devices": ("libtpu 0.0.52", "the devices of a described topology of 2x2 chips"),
        "packed_rows": ("libtpu 0.0.52", "the default layout of f32[1,128]"),
        "sub_byte": ("libtpu 0.0.52", "the default layout of s4[64,256]"),
        "large_tiles": ("libtpu 0.0.52", "default layouts of 256 rows, and of 257"),
        "cores": _TPU_INFO,
        "hbm": ("libtpu 0.0.52", "arrays as the only argument of a program, to 1 MiB"),
        "vmem": ("libtpu 0.0.52", "windows of a kernel that asks for 1 GiB, to 16 KiB"),
        "vmem_scoped": ("libtpu 0.0.52", "windows of a kernel that asks for nothing, to 16 KiB"),
        "vmem_begin": ("libtpu 0.0.52", "a window behind a scratch of f32[1,128], against one alone"),
        "fetches": ("libtpu 0.0.52", "inputs of 64 KiB to 64 MiB of a call by itself, that its result stays in HBM"),
        "multiplies": ("libtpu 0.0.52", "published for v5e and v5p; cycles of a matmul of 4096^3 in its simulation"),
        "link_bandwidth": (
            "published",
            "of a chip in both directions: 400, 1200, 800 GB/s by Cloud TPU's pages of v5e, v5p and v6e, 1200 GB/s by "
            "the announcement of 7x; of v4 Jouppi and others, TPU v4, ISCA 2023, table 4: six links of 50 GB/s",
        ),
        "closes": (
            "published",
            "How To Scale Your Model (jax-ml/scaling-book at 0819a7d8c5, tpus.md, lines 143 and 147): v5e and v6e in a "
            "direction of 16; v4 and v5p in slices of whole cubes of 4 x 4 x 4; nothing is said of 7x",
        ),
        "stores": ("libtpu 0.0.52", "cycles of a kernel that adds to a scratch, in its simulation"),
        "sparse": ("libtpu 0.0.52", "scratch of a kernel to 4 KiB, and the bound that it names; counts of tpu_info.py"),
        **dict.fromkeys(("smem", "bandwidth", "bf16", "int8", "fp8"), _TPU_INFO),
    }
)
"""Field of `Chip` -> (who said its values, how they were found). All but those of JAX are the same of libtpu 0.0.42.1,
but for `_EARLIER`, `fetches`, `multiplies` and `stores`, of which that version was not asked."""

_EARLIER: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "hbm": MappingProxyType(
            {
                "v2": 7661 * MIB, "v3": 15853 * MIB, "v4": 15614 * MIB, "v4lite": 7933 * MIB, "v5e": 16125 * MIB,
                "v5p": 98040 * MIB, "v6e": 31995 * MIB, "7x": 97019 * MIB,
            }
        ),
        "vmem": MappingProxyType({"7x": 64 * MIB}),
    }
)  # fmt: skip
"""Field -> chip -> what libtpu 0.0.42.1 said, which later versions do not."""

FACTS = (
    *(
        Fact(name, str(value), "libtpu 0.0.42.1", _SOURCES[name][1], chip)
        for name, values in _EARLIER.items()
        for chip, value in values.items()
    ),
    *(
        Fact(name, _shown(getattr(chip, name)), version, source, chip.name)
        for chip in _TABLE
        for name, (version, source) in _SOURCES.items()
    ),
)
"""Each number of the table as a fact."""

CHIPS: Mapping[str, Chip] = MappingProxyType({chip.name: chip for chip in _TABLE})
"""Every generation that the compiler knows, by canonical name."""

_ALIASES: Mapping[str, str] = MappingProxyType({alias: chip.name for chip in _TABLE for alias in chip.aliases})

OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {**_ALIASES, **{nickname: chip.name for chip in _TABLE for nickname in chip.nicknames}}
)
"""Names in use other than the canonical ones, with what they mean or most likely mean."""


def generation(name: str) -> str:
    """The canonical name of a TPU generation: v2 v3 v4 v4lite v5e v5p v6e 7x.

    Takes the compiler's names and device kinds too, in any case and spacing. `v4 megacore` is `v4`, because it lays
    out arrays the same. Raises LayoutError, listing the known names, on any other.

    >>> generation("v5e"), generation("TPU v5 lite"), generation("TPU v5"), generation("tpu7x")
    ('v5e', 'v5e', 'v5p', '7x')
    >>> generation("v7x")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: unknown TPU generation 'v7x'; did you mean '7x'? ...
    """
    if name in CHIPS:
        return name
    plain = "".join(str(name).lower().split()).replace("-", "").replace("_", "").removeprefix("tpu")
    plain = _ALIASES.get(plain, plain)
    if plain not in CHIPS:
        if why := described(name):
            raise LayoutError(why)
        raise unknown_name("TPU generation", name, CHIPS, OTHER_NAMES)
    return plain


def chip_of(name: str) -> Chip:
    """The generation of a name; names and errors as for `generation`.

    >>> chip_of("TPU v5 lite").bandwidth
    820000000000
    """
    return CHIPS[generation(name)]

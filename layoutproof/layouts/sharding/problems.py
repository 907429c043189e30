"""What may be wrong with a sharding, its mesh, and a sharded array."""

from __future__ import annotations

from layoutproof.core.message import Template

AFTER_ALONE = Template("sharding.after_alone", "unexpected '{word}' after the sharding: give one sharding alone")
AFTER_MESH = Template("sharding.after_mesh", "unexpected '{word}' after the mesh")
AFTER_SHARDING = Template("sharding.after_sharding", "unexpected '{word}' after the sharding")
AFTER_SPEC = Template("sharding.after_spec", "unexpected '{word}' after the partition specification")
AXIS_PART = Template("sharding.axis_part", "'{name}':({pre}){size}: a part of an axis has (at least 1) and at least 2")
AXIS_QUOTES = Template("sharding.axis_quotes", "an axis is written in quotes: '{word}', or None")
AXIS_TWICE = Template("sharding.axis_twice", "the axis {name!r} is used twice")
CONTRADICTION = Template("sharding.contradiction", "{one} and {other} contradict each other: a sharding is of one kind")
DEVICES_FORM = Template(
    "sharding.devices_form", "devices is how many there are, or the distinct numbers of all; got {value}"
)
DEVICES_NEED_SHAPE = Template("sharding.devices_need_shape", "devices are said of a sharded array: give its shape too")
DEVICES_TWICE = Template("sharding.devices_twice", "devices=[..] is given twice, as <=[..] and otherwise (XLA aborts)")
DEVICE_BEYOND = Template("sharding.device_beyond", "{sharding} names device {devices}, but there are only {count}")
DEVICE_COUNT = Template("sharding.device_count", "{sharding} has {count} devices, but it is said to be on {said}")
DEVICE_NEGATIVE = Template("sharding.device_negative", "device {device} is negative")
DEVICE_NUMBERS = Template("sharding.device_numbers", "device numbers are integers, at least 0; got {numbers}")
DEVICE_OF_MAXIMAL = Template("sharding.device_of_maximal", "device= belongs to maximal: devices=[..] lists them all")
EXTENT_FORM = Template("sharding.extent_form", "an extent is an integer, at least 0, or a size expression, not {value}")
FORM = Template("sharding.form", "a sharding is a text such as {{devices=[2,2]<=[4]}}, not {value}")
GIVEN_TWICE = Template("sharding.given_twice", "{name} is given twice")
HOW_MANY_DEVICES = Template(
    "sharding.how_many_devices",
    "{sharding} does not say over how many devices: write for instance '{named} on 8 devices'",
)
IDS_FORM = Template("sharding.ids_form", "device_ids is a list of device numbers, not {ids}")
KEY = Template("sharding.key", "a sharding has no key {key}; its keys: {keys}")
KIND_MISSING = Template("sharding.kind_missing", "a sharding says what it is: replicated, manual, .. or devices=[..]")
MAXIMAL = Template("sharding.maximal", "{sharding}: a maximal subgroup has no defined meaning")
MAXIMAL_DEVICES = Template(
    "sharding.maximal_devices", "a maximal sharding has one device, {devices} are given: device=3"
)
MESH_AXIS_NAME = Template(
    "sharding.mesh_axis_name", "a mesh axis has a name without quotes, backslashes and line ends, not {name!r}"
)
MESH_AXIS_SIZE = Template(
    "sharding.mesh_axis_size", "mesh axis {name!r} has size {size!r}; a size is an integer, at least 1"
)
MESH_COUNT = Template("sharding.mesh_count", "the mesh has {sizes} devices but device_ids {reshape}")
MESH_DEVICES = Template(
    "sharding.mesh_devices", "the mesh is on devices {devices}, which a sharding alone cannot say: give a shape"
)
MESH_DEVICES_ONCE = Template("sharding.mesh_devices_once", "the mesh has {sizes} devices, each once; got {numbers}")
MESH_FORM = Template(
    "sharding.mesh_form", "a mesh is a mapping of axis names to sizes such as {{x: 2, y: 4}}, not {value}"
)
MESH_KEYS = Template("sharding.mesh_keys", "unreduced and device_ids go with mesh; a sharding's text has its own")
MESH_LIST = Template("sharding.mesh_list", "the mesh has {sizes} devices but device_ids lists {devices}")
MESH_NO_AXIS = Template("sharding.mesh_no_axis", "the mesh has no axis '{name}'; its axes: {known}")
MESH_RANK = Template("sharding.mesh_rank", "over {max_rank} mesh axes")
MESH_WITHOUT_AXES = Template("sharding.mesh_without_axes", "{word} over a mesh without axes (XLA aborts)")
MOST_LISTED = Template(
    "sharding.most_listed", "{tiles} has over {most_listed} devices, too many to list them one by one"
)
NAMES_DEVICES = Template("sharding.names_devices", "a {kind} sharding names no devices")
NO_AXIS = Template("sharding.no_axis", "the mesh has no axis {name!r}; {have}{near}")
NO_DEVICE = Template("sharding.no_device", "{sharding}: device {device} is not one of {count} devices")
NO_DEVICES = Template("sharding.no_devices", "{count} devices: there is at least 1")
NO_MEMORY = Template("sharding.no_memory", "the layout of {layout} says nothing of memory")
NO_PLACE = Template("sharding.no_place", "{sharding} says nothing of where elements are")
OF_ARRAY = Template(
    "sharding.of_array", "a sharding places the elements of an array; say which: 'f32[64,128] sharded {sharding}'"
)
ONE_ARRAY = Template("sharding.one_array", "a sharded shape is one array, not a tuple, token or opaque")
ONE_SHARDING = Template("sharding.one_sharding", "one array has one sharding, not a tuple of them")
REPLICATE_TWICE = Template(
    "sharding.replicate_twice", "last_tile_dim_replicate and last_tile_dims=.. exclude each other (XLA aborts)"
)
SBP_COMMAS = Template("sharding.sbp_commas", "entries of an SBP signature are separated by commas")
SBP_COUNT = Template("sharding.sbp_count", "{count} entries for {names} mesh axes; each axis has one")
SBP_ENTRY = Template("sharding.sbp_entry", "an SBP entry is split(k), broadcast or partial_sum")
SBP_FORM = Template("sharding.sbp_form", "an SBP signature is written (split(0), broadcast)")
SBP_MESH = Template(
    "sharding.sbp_mesh",
    "an SBP signature has one entry per mesh axis; say which: '(split(0), broadcast) on mesh['x'=2,'y'=2]'",
)
SBP_SPLIT = Template("sharding.sbp_split", "split({most}) of an array with {rank} dimensions")
SBP_TEXT = Template("sharding.sbp_text", "sbp is a text such as (split(0), broadcast), not {value}")
SHAPE_FORM = Template("sharding.shape_form", "a shape is a text such as f32[64,128] or a list of extents, not {value}")
SPEC_ENTRY = Template("sharding.spec_entry", "an entry of spec is null, an axis name or a list of them, not {entry}")
SPEC_FORM = Template("sharding.spec_form", "spec is a list with one entry per array dimension, not {spec}")
SPEC_NO_AXIS = Template("sharding.spec_no_axis", "the mesh has no axis {name!r}; its axes: {names}")
SPEC_RANK = Template("sharding.spec_rank", "{dims} entries for an array with {rank} dimensions")
SUBGROUPS = Template("sharding.subgroups", "{subgroups} subgroups but only {dims} tile dimensions")
TEXT_FORM = Template("sharding.text_form", "sharding is a text such as {{devices=[2,2]<=[4]}}, not {written}")
TILES_COUNT = Template(
    "sharding.tiles_count",
    "[{dims}] has {count} tiles but {devices} devices are listed, and a list has two at least: a "
    "single device is written {{maximal device=0}}",
)
TILES_NEGATIVE = Template("sharding.tiles_negative", "the number of tiles of a dimension is not negative")
TILE_NAME = Template("sharding.tile_name", "T(..) names dimension {number}, but the reshape has 0..{reshape}")
TILE_PERM = Template("sharding.tile_perm", "T(..) has {perm} dimensions and the reshape has {reshape}")
TILE_RANK = Template("sharding.tile_rank", "{sharding} has tiles for {found} dimensions, the array has {rank}")
TUPLE = Template("sharding.tuple", "a tuple of {elements} shardings has no map of its own; ask about one element")
UNCONSTRAINED = Template("sharding.unconstrained", "UNCONSTRAINED says nothing of where elements are: {why}")
UNREDUCED_FORM = Template("sharding.unreduced_form", "unreduced is a list of axis names, not {unreduced}")
WORD = Template(
    "sharding.word",
    "'{word}' is no part of a sharding: write devices=, replicated, maximal device=, manual, unknown "
    "or unreduced, then perhaps last_tile_dim_replicate, last_tile_dims=, shard_as, shard_like, metadata=",
)
DEVICE_TWICE = Template("sharding.device_twice", "device {device} is listed twice: every tile has a device of its own")
NO_PERMUTATION = Template("sharding.no_permutation", "T({perm}) is not a permutation of 0..{last}")
TILES_EMPTY = Template("sharding.tiles_empty", "[{dims}]: every dimension has at least 1 tile")
TILES_LISTED = Template("sharding.tiles_listed", "[{dims}] has {tiles} tiles but {devices} devices are listed")
TILES_NUMBERED = Template(
    "sharding.tiles_numbered", "[{dims}] has {tiles} tiles but <=[{reshape}] numbers {devices} devices"
)

"""What may be wrong with the processes, folders and places that a compiler is asked with."""

from __future__ import annotations

from layoutproof.core.message import Template

DASK_WITHOUT_SCHEDULER = Template(
    "compiler.dask_without_scheduler",
    "--backend dask needs --scheduler, the address of the cluster, e.g. tcp://10.0.0.1:8786",
)
KEY_IN_FOLDER = Template(
    "compiler.key_in_folder", "the key of its entries lies in the folder itself; name another folder by {option}"
)
KEY_SIZE = Template("compiler.key_size", "not a key of {bytes} bytes: remove it, and a new one is made")
MEMORY_OF_JOBS = Template("compiler.memory_of_jobs", "{problem}; with fewer --jobs each has more memory")
NOTHING_OF_NAME = Template("compiler.nothing_of_name", "{module} has no {name!r}{closest}")
NO_DASK = Template("compiler.no_dask", "--backend dask needs Dask: pip install distributed")
NO_LIBTPU_AT = Template(
    "compiler.no_libtpu_at",
    "no libtpu.so at {folder}; pip install --no-deps --target FOLDER libtpu==VERSION makes a folder",
)
NO_PLAIN_NAME = Template(
    "compiler.no_plain_name",
    "{place} is no class of that module; a file names a function by its plain name, or as a method of a class",
)
NO_PYTHON_PROCESS = Template("compiler.no_python_process", "a Python process for {what} cannot be started: {error}")
NO_RAY = Template("compiler.no_ray", "--backend ray needs Ray: pip install ray")
NO_SCHEDULER = Template("compiler.no_scheduler", "no Dask scheduler answers at {scheduler}: {error}")
OTHER_FOLDER = Template("compiler.other_folder", "{problem}; or name another folder by {option}")
PLACE = Template(
    "compiler.place",
    "a function is named by its plain name, or as a method of a class of its module, not {found!r}",
)
SECRET = Template(
    "compiler.secret",
    "{name} has {count} characters, and a secret needs {least}: make one by `openssl rand -hex 32`",
)
STANDARD_LIBRARY = Template(
    "compiler.standard_library",
    "{place} is defined in {module}, Python's own library: a file names functions of yours",
)
TRACE_DENIED = Template(
    "compiler.trace_denied",
    "{file} lies outside of the repository {root}, and what a file names is run from inside only; to trace it, name it "
    "on the command line: layoutproof kernels {place}",
)

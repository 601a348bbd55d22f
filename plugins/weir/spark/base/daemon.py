"""The process that forks the Python workers of a session on a server of `serve`.

It has loaded what they all load, once, and bounds their memory, which Spark does on clusters only.
"""

import importlib
import os
import resource
import sys

from pyspark.daemon import manager
from pyspark.util import _parse_memory

# What a worker may map; its libraries are 1.4 GB of it. The variable says otherwise, such as "8g".
MEMORY = os.environ.get("SPARK_PYTHON_MEMORY", "4g")
_LOADED = ("numpy", "pandas", "pyarrow.parquet", "pyarrow.dataset")


def main() -> None:
    """Serve Spark's requests for workers, until it ends."""
    most = _parse_memory(MEMORY) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for name in (*_LOADED, *(sys.argv[1:2] or ["pyspark.worker"])):
        importlib.import_module(name)
    # A program with other code sends its own, which must not find this one in its place.
    for name in [one for one in sys.modules if one.partition(".")[0] == "weir"]:
        del sys.modules[name]
    manager()


if __name__ == "__main__":
    main()

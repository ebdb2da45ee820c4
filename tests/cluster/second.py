# SPDX-License-Identifier: Apache-2.0
"""A cluster of its own for the tests of one file, where the shared one is not made for them."""
import contextlib
import shutil
import tempfile
from pathlib import Path

from conftest import Cluster


@contextlib.contextmanager
def cluster(*options):
    home = Path(tempfile.mkdtemp(prefix="oomretry-test-"))
    home.chmod(0o755)
    one = Cluster(home / "c", *options)
    try:
        one.start()
        yield one
    finally:
        one.stop()
        shutil.rmtree(home, ignore_errors=True)

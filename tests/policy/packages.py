# SPDX-License-Identifier: Apache-2.0
"""The frameworks' own sources, to hold policies against: packages are fetched without their
dependencies, never imported, and read with ast. OOMRETRY_PACKAGES names a directory that keeps them.
Where one cannot be had (no network), the test that needs it is skipped and says so."""
import ast
import functools
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

FETCH_S = 60


@functools.lru_cache(maxsize=None)
def _kept():
    given = os.environ.get("OOMRETRY_PACKAGES")
    return Path(given) if given else Path(tempfile.mkdtemp(prefix="oomretry-packages-"))


@functools.lru_cache(maxsize=None)
def _fetch(requirement):
    """(the wheel, or None and why not)"""
    name, version = requirement.split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(_kept().glob(pattern)):
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1",
                 "--timeout", "10", "--disable-pip-version-check", "--only-binary", ":all:",
                 "--dest", _kept(), requirement],
                text=True, capture_output=True, timeout=FETCH_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return next(iter(_kept().glob(pattern)), None), "pip left nothing"


class Package:
    def __init__(self, requirement):
        path, why = _fetch(requirement)
        if path is None:
            pytest.skip(f"{requirement} cannot be had here: {why}")
        self.zip = zipfile.ZipFile(path)

    def texts(self, *parts):
        """The files whose path has one of these in it."""
        for entry in self.zip.namelist():
            if any(part in entry for part in parts):
                yield entry, self.zip.read(entry).decode(errors="replace")

    def trees(self, *parts):
        for entry, text in self.texts(*parts):
            if entry.endswith(".py"):
                yield ast.parse(text)

    def names(self, *parts):
        """Flags of argparse, and fields of dataclasses and pydantic models, spelled with _."""
        found = set()
        for tree in self.trees(*parts):
            for node in ast.walk(tree):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found.add(node.target.id)
                elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                    found |= {plain(arg.value) for arg in node.args
                              if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
        return found


def plain(name):
    return name.lstrip("-+").replace("-", "_")

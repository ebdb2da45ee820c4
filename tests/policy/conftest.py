# SPDX-License-Identifier: Apache-2.0
"""Policies as administrators handle them: the built oomctl on a database of its own."""
import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OOMRETRY_BUILD", REPO / "build")).absolute()


class Policies:
    def __init__(self, directory):
        self.directory = directory
        self.db = directory / "oomretry.db"
        self.env = dict(os.environ, TMPDIR=str(directory), HOME=str(directory))
        self.env.pop("VISUAL", None)

    def command(self, *words):
        return [str(BUILD / "bin/oomctl"), "policy", *words, "--db", str(self.db)]

    def run(self, *words, code=0, editor=None, **more):
        env = dict(self.env, EDITOR=str(editor)) if editor else self.env
        done = subprocess.run(self.command(*words), env=env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False, **more)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def editor(self, body, name="editor"):
        """A program that changes the file that it is given, as an administrator would."""
        path = self.directory / name
        path.write_text("#!/usr/bin/python3\nimport os, sys, time\npath = sys.argv[1]\n"
                        "text = open(path).read()\n" + body + "\nopen(path, 'w').write(text)\n")
        path.chmod(0o755)
        return path


@pytest.fixture(scope="session", autouse=True)
def built():
    if not (BUILD / "bin/oomctl").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")


@pytest.fixture
def policies(tmp_path):
    return Policies(tmp_path)

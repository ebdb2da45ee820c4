# SPDX-License-Identifier: Apache-2.0
"""`make install`, as a package is made."""
import os
import re
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OOMRETRY_BUILD", REPO / "build"))
PREFIX = "/opt/oomretry-1"


def make(stage, target):
    subprocess.run(["make", "-s", "-C", REPO, f"BUILD={BUILD}", f"DESTDIR={stage}", f"PREFIX={PREFIX}",
                    target], check=True, stdout=subprocess.DEVNULL)


def test_a_staged_tree_names_itself(tmp_path):
    make(tmp_path, "install")
    tree = tmp_path / PREFIX.lstrip("/")
    unit = (tree / "lib/systemd/system/oomagent.service").read_text()
    assert f"ExecStart={PREFIX}/sbin/oomagent\n" in unit
    line = (tree / "share/oomretry/examples/plugstack.conf").read_text().splitlines()[-1]
    assert line == f"optional {PREFIX}/lib/slurm/spank_oomretry.so prefix={PREFIX} default=off"
    for path in [tree / "lib/systemd/system/oomagent.service",
                 *(tree / "share/oomretry/examples").iterdir()]:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert "/usr/local" not in "\n".join(lines), path
    doc = tree / "share/doc/oomretry"
    for page in [doc / "README.md", *(doc / "docs").iterdir()]:
        for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text()):
            assert (page.parent / link).exists(), (page, link)
    make(tmp_path, "uninstall")
    left = [path for path in tree.rglob("*") if not path.is_dir()]
    assert left == []

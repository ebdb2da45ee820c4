# SPDX-License-Identifier: Apache-2.0
"""The table "Kinds of jobs" of docs/restarts.md, row by row: the table is the test."""
import concurrent.futures
import os
import tempfile
from pathlib import Path

import pytest

import kinds
from conftest import OWNER, REPO

AT_ONCE = 6
COLUMNS = ("kind", "cause", "mode", "states", "ways", "starts", "dependents")


def table():
    rows, inside = [], False
    for line in (REPO / "docs/restarts.md").read_text().splitlines():
        inside = line.startswith("## Kinds of jobs") or (inside and not line.startswith("## "))
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if inside and line.startswith("|") and len(cells) == len(COLUMNS):
            rows.append(dict(zip(COLUMNS, cells)))
    return rows[2:]


def label(row):
    return f"{row['kind']}-{row['cause']}-{row['mode']}".replace(" ", "_")


@pytest.fixture(scope="module")
def outcomes(cluster):
    """All rows, several at once."""
    def play(row):
        work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
        os.chown(work, OWNER.pw_uid, OWNER.pw_gid)
        work.chmod(0o755)

        def script(text, name="job.sh"):
            (work / name).write_text(text)
            (work / name).chmod(0o755)
            return work / name
        try:
            return kinds.play(cluster, work, script, row["kind"], row["cause"], row["mode"])
        except AssertionError as failure:
            outputs = "".join(f"--- {path.name}\n{path.read_text(errors='replace')}"
                              for path in sorted(work.glob("*.out")))
            return f"{failure}\n{outputs}"
    rows = [row for row in table() if cluster.memory_limits or "host" not in row["cause"]]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(map(label, rows), pool.map(play, rows)))


@pytest.mark.parametrize("row", table(), ids=label)
def test_row(outcomes, row):
    if label(row) not in outcomes:
        pytest.skip("no memory cgroup here")
    expected = {key: row[key] for key in ("states", "ways", "starts", "dependents")}
    assert outcomes[label(row)] == expected

# SPDX-License-Identifier: Apache-2.0
"""The table "Kinds of jobs" of docs/restarts.md, row by row: the table is the test."""
import concurrent.futures
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

import kinds
from book import Book
from conftest import OWNER, REPO, wait_for

AT_ONCE = 10
COLUMNS = ("kind", "cause", "mode", "states", "ways", "starts", "output", "dependents")


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


def test_every_cell_is_in_the_table():
    rows = [(row["kind"], row["cause"], row["mode"]) for row in table()]
    assert len(rows) == len(set(rows))
    assert set(rows) == kinds.cells()


class Row:
    """One row of the table, being played."""

    def __init__(self, cluster, book, row):
        self.cluster, self.book, self.row, self.kind = cluster, book, row, row["kind"]
        self.work = Path(tempfile.mkdtemp(prefix="w", dir=cluster.dir.parent))
        os.chown(self.work, OWNER.pw_uid, OWNER.pw_gid)
        self.work.chmod(0o755)
        self.job = self.after = None

    def script(self, text, name="job.sh"):
        (self.work / name).write_text(text)
        (self.work / name).chmod(0o755)
        return self.work / name

    def submit(self):
        self.job, self.after = kinds.submit(self.cluster, self.work, self.script, self.kind,
                                            self.row["cause"], self.row["mode"])

    def failing(self):
        return any("OutOfMemoryError" in path.read_text(errors="replace")
                   for path in self.work.glob("*.out"))

    def outcome(self):
        try:
            return kinds.outcome(self.cluster, self.book, self.work, self.job, self.after, self.kind)
        except AssertionError as failure:
            outputs = "".join(f"--- {path.name}\n{path.read_text(errors='replace')}"
                              for path in sorted(self.work.glob("*.out*")))
            return f"{failure}\n{outputs}"


def play(row):
    row.submit()
    if row.row["cause"] == "slurmstepd killed":
        wait_for(row.failing, "the trainer to fail", 120)
        # A task of an array has an id of its own.
        kinds.kill_step(row.cluster, kinds.runs(row.work)[0][0])
    return row.outcome()


def play_without_agent(cluster, rows):
    """The agent is killed while all these jobs run, and comes back after they have failed for want
    of a decision: the head's open attempts are found, and the jobs are started again."""
    for row in rows:
        row.submit()
    wait_for(lambda: all(row.failing() for row in rows), "the trainers to fail", 120)
    os.killpg(cluster.record["daemons"]["oomagent"]["pid"], signal.SIGKILL)
    for row in rows:
        row.script("", "go")
    wait_for(lambda: all(kinds.watched(row.job, row.kind).state == "FAILED" for row in rows),
             "the jobs to fail", pause_s=1)
    cluster.devcluster("restart", "oomagent")


@pytest.fixture(scope="module")
def outcomes(cluster):
    """All rows, many at once; those that need the agent away are started when all others have
    ended."""
    book = Book(cluster)
    began = time.monotonic()
    rows = [Row(cluster, book, row) for row in table()
            if cluster.memory_limits or "host" not in row["cause"]]
    away = [row for row in rows if row.row["cause"] == "agent away"]
    others = sorted((row for row in rows if row not in away),
                    key=lambda row: row.row["cause"] != "slurmstepd killed")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip((label(row.row) for row in others), pool.map(play, others)))
        play_without_agent(cluster, away)
        found.update(zip((label(row.row) for row in away), pool.map(Row.outcome, away)))
    print(f"{len(rows)} rows in {time.monotonic() - began:.0f} s")
    return found


@pytest.mark.parametrize("row", table(), ids=label)
def test_row(outcomes, row):
    if label(row) not in outcomes:
        pytest.skip("no memory cgroup here")
    expected = {key: row[key] for key in ("states", "ways", "starts", "output", "dependents")}
    assert outcomes[label(row)] == expected

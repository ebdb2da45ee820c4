# SPDX-License-Identifier: Apache-2.0
"""membomb under a real memory cgroup: the kernel kills it, and it fits with fewer workers."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

BOMB = Path(__file__).resolve().parent / "membomb"
LIMIT_MIB = 192


@pytest.fixture
def cgroup():
    """A cgroup with a memory limit, version 1 or 2, or a skip that says why not."""
    if os.geteuid() != 0:
        pytest.skip("a memory cgroup needs root")
    name = f"oomretry-{uuid.uuid4().hex[:8]}"
    for base, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = base / name
        try:
            group.mkdir()
            (group / limit).write_text(str(LIMIT_MIB << 20))
        except OSError:
            if group.exists():
                group.rmdir()
            continue
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            if (group / swap).exists():
                (group / swap).write_text(str(LIMIT_MIB << 20) if "memsw" in swap else "0")
        yield group
        group.rmdir()
        return
    pytest.skip("this machine lets nobody limit memory by a cgroup")


def run(group, *arguments):
    def enter():
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return subprocess.run(
        [str(BOMB), *arguments],
        preexec_fn=enter,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_killed_then_fits(cgroup):
    big = run(cgroup, "--num-workers", "4", "--worker-mib", "64")
    assert big.returncode == -9
    small = run(cgroup, "--num-workers", "1", "--worker-mib", "64")
    assert small.returncode == 0 and "done" in small.stdout


def test_a_killed_child(cgroup):
    done = run(cgroup, "--num-workers", "3", "--worker-mib", "96", "--children", "--seconds", "3")
    assert done.returncode in (1, -9)
    assert run(cgroup, "--num-workers", "1", "--worker-mib", "96", "--children").returncode == 0

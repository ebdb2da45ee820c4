# SPDX-License-Identifier: Apache-2.0
"""oomctl ray: what it says to people, and what it hands on to `ray job submit`."""
import json
import os
import subprocess

import pytest

from ray_harness import BUILD


def oomctl(*words, **env):
    return subprocess.run([str(BUILD / "bin/oomctl"), "ray", *words], text=True, check=False,
                          env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("words, says", [
    (["--oom-retries=3", "--", "x"], "did you mean --oom-retry?"),
    (["--oom-max-retries=x", "--", "x"], "--oom-max-retries needs a number"),
    (["--oom-max-retries", "--", "x"], "--oom-max-retries needs a number"),
    (["--oom-grace=-1", "--", "x"], "--oom-grace needs a number"),
    (["--oom-allow=all", "--", "x"], '--oom-allow needs "training"'),
    (["--oom-retry=", "--", "x"], "--oom-retry needs a word"),
    (["--", "--metadata-json", "{x", "--", "x"], "--metadata-json is no JSON object"),
    (["--"], "Usage"),
])
def test_mistakes(words, says):
    done = oomctl("submit", *words)
    assert done.returncode == 2 and says in done.stderr, done


@pytest.fixture
def fake_ray(tmp_path):
    """Prints its arguments, a line each."""
    (tmp_path / "ray").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    (tmp_path / "ray").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_what_is_handed_on(fake_ray):
    done = oomctl("submit", "--oom-retry=relax", "--oom-max-retries=2", "--oom-grace=0",
                  "--oom-allow=training", "--oom-dry-run", "--", "--working-dir", ".",
                  '--metadata-json={"team":"a","oom_retry":"off"}', "--", "python", "t.py",
                  "--metadata-json", "its own", **fake_ray)
    words = done.stdout.splitlines()
    assert words[:3] == ["job", "submit", "--metadata-json"]
    assert json.loads(words[3]) == {
        "team": "a", "oom_retry": "relax", "oom_max_retries": "2", "oom_grace_s": "0",
        "oom_allow": "training", "oom_dry_run": "true"}
    assert words[4:] == ["--working-dir", ".", "--", "python", "t.py", "--metadata-json", "its own"]


def test_under_oomrun(fake_ray):
    done = oomctl("submit", "--", "python", "t.py", OOMRETRY_ATTEMPT="1", SLURM_JOB_ID="7", **fake_ray)
    words = done.stdout.splitlines()
    assert json.loads(words[3]) == {"oom_retry": "auto", "oom_supervisor": "oomrun",
                                    "slurm_job_id": "7"}
    assert words[4:] == ["--", "python", "t.py"] and "owns the retry" in done.stderr


def test_list_without_clusters(tmp_path):
    config = tmp_path / "oomretry.conf"
    config.write_text("role: head\n")
    done = oomctl("list", OOMRETRY_CONFIG=str(config))
    assert done.returncode == 2 and "no ray_clusters are configured" in done.stderr
    config.write_text('ray_clusters: ["http://127.0.0.1:9"]\n')
    done = oomctl("list", OOMRETRY_CONFIG=str(config))
    assert done.returncode == 1 and "no answer from http://127.0.0.1:9" in done.stderr

# SPDX-License-Identifier: Apache-2.0
"""The plugin on its own: what reaches the batch step, what stays as it was, what the agent hears.

Where a test looks at what the supervisor is given, a recorder stands in for oomrun; the plugin and
the launcher are the built ones."""
import json
import os
import socket
import subprocess
import time

import pytest

from conftest import Job, OWNER, install, wait_for

# Says what it was given, restores the script as oomrun does, and becomes it.
RECORDER = """#!/usr/bin/python3
import json, os, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(0)
script = sys.argv[2]
with open(script, "r+b") as file:
    first, rest = file.read().split(b"\\n", 1)
    file.seek(0); file.write(rest); file.truncate()
given = {"restart": os.environ.get("SLURM_RESTART_COUNT"), "argv": sys.argv[1:], "first": first.decode(),
         "env": {k: v for k, v in os.environ.items() if k.startswith("OOMRETRY_")},
         "carriers": [k for k in os.environ if "SPANK" in k and "OOM" in k.upper()]}
print("given", json.dumps(given), flush=True)
os.execv(script, sys.argv[2:])
"""


@pytest.fixture(scope="session")
def recorder(cluster):
    """A prefix whose oomrun is the recorder."""
    prefix = install(cluster.dir.with_name("recorder"), ("lib", "libexec"))
    (prefix / "bin").mkdir()
    oomrun = prefix / "bin" / "oomrun"
    oomrun.write_text(RECORDER)
    oomrun.chmod(0o755)
    return prefix


def given(job):
    """What the recorder wrote, or None when the job ran without supervisor."""
    job.wait()
    for line in job.output().splitlines():
        if line.startswith("given "):
            return json.loads(line.removeprefix("given "))
    return None


def policy(job):
    record = given(job)
    return record["env"]["OOMRETRY_POLICY"] if record else None


# --- how a job opts in ---------------------------------------------------------------------------

OPT_IN = [
    # arguments, #SBATCH line, environment, site defaults, policy or None
    ([], "", {}, "", None),
    (["--oom-retry"], "", {}, "", "auto"),
    (["--oom-retry=relax"], "", {}, "", "relax"),
    (["--oom-retry=off"], "", {}, "", None),
    ([], "--oom-retry", {}, "", "auto"),
    ([], "--oom-retry=areal", {}, "", "areal"),
    (["--oom-retry=off"], "--oom-retry=areal", {}, "", None),
    ([], "", {"SBATCH_OOM_RETRY": "auto"}, "", "auto"),
    ([], "", {"SBATCH_OOM_RETRY": ""}, "", None),
    (["--oom-retry=verl"], "", {"SBATCH_OOM_RETRY": "relax"}, "", "verl"),
    ([], "", {}, "default=auto", "auto"),
    ([], "", {}, "default=off", None),
    (["--oom-retry=off"], "", {}, "default=auto", None),
    ([], "", {"SBATCH_OOM_RETRY": "off"}, "default=auto", None),
    (["--export=NONE", "--oom-retry=relax"], "", {}, "", "relax"),
    (["--export=HOME"], "--oom-retry=relax", {}, "", "relax"),
    (["--export=NONE"], "", {"SBATCH_OOM_RETRY": "slime"}, "", "slime"),
    (["--export=NIL", "--oom-retry=off"], "", {}, "default=auto", None),
    # Slurm hands over nothing of these without --oom-retry.
    (["--oom-mode=requeue", "--oom-max-retries=2"], "", {}, "", None),
]


def test_opt_in(cluster, recorder, work, script):
    for site in {row[3] for row in OPT_IN}:
        jobs = {}
        with cluster.plugstack(cluster.plugin_line(recorder, site)):
            for number, (arguments, line, env, where, expected) in enumerate(OPT_IN):
                if where == site:
                    path = script(f"#!/bin/bash\n{'#SBATCH ' + line if line else ''}\ntrue\n",
                                  f"{number}.sh")
                    jobs[number] = cluster.sbatch(work, "--mem=50", *arguments, path, env=env)
            seen = {number: policy(job) for number, job in jobs.items()}
        assert seen == {number: OPT_IN[number][4] for number in jobs}


def test_settings_reach_the_supervisor(cluster, recorder, work, script):
    path = script("#!/bin/bash\n#SBATCH --oom-retry --oom-mode=inplace\necho \"$0 $@\"\n")
    with cluster.plugstack(cluster.plugin_line(recorder, "max_retries=7 mode=resubmit "
                                               "config=/etc/oomretry/site.conf")):
        job = cluster.sbatch(work, "--oom-allow=training", "--export=NONE", path, "one", "two words",
                             env={"SBATCH_OOM_DRY_RUN": "1"})
        record = given(job)
    spooled = record["argv"][1]
    assert record["argv"] == ["--slurm", spooled, "one", "two words"]
    assert record["first"] == f"#!{recorder}/libexec/oomretry/oomstart"
    assert record["env"] == {
        "OOMRETRY_POLICY": "auto", "OOMRETRY_MODE": "inplace", "OOMRETRY_ALLOW": "training",
        "OOMRETRY_MAX_RETRIES": "7", "OOMRETRY_DRY_RUN": "1",
        "OOMRETRY_SCRIPT_BYTES": str(path.stat().st_size),
        "OOMRETRY_SUBMITTED": f"--output={work}/%25j.out",
        "OOMRETRY_SOCKET": str(cluster.socket), "OOMRETRY_CONFIG": "/etc/oomretry/site.conf"}
    assert record["carriers"] == []
    assert f"{spooled} one two words\n" in job.output()


def test_settings_stay_over_a_requeue(cluster, listener, recorder, work, script):
    path = script("#!/bin/bash\n[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 100\n")
    with cluster.plugstack(cluster.plugin_line(recorder, agent_socket=listener.path)):
        job = cluster.sbatch(work, "--export=NONE", "--oom-retry=relax", "--oom-max-retries=2",
                             "--open-mode=append", path)
        wait_for(lambda: "given" in job.output(), "the first run")
        assert cluster.run("scontrol", "requeue", job.id).returncode == 0
        wait_for(lambda: job.record()["Restarts"] == "1", "the requeue")
        job.wait()
    assert listener.report_of(job, "task_exit", restart="1")["status"] == "0"
    runs = [json.loads(line.removeprefix("given ")) for line in job.output().splitlines()
            if line.startswith("given ")]
    assert [run["restart"] for run in runs] == [None, "1"]
    for run in runs:
        assert run["first"].endswith("oomstart")
        assert (run["env"]["OOMRETRY_POLICY"], run["env"]["OOMRETRY_MAX_RETRIES"]) == ("relax", "2")


def test_kinds_of_jobs(cluster, recorder, work, script):
    """Array tasks, a heterogeneous job, a script on standard input, --wrap."""
    with cluster.plugstack(cluster.plugin_line(recorder)):
        done = cluster.run("sbatch", "--parsable", "-o", work / "array-%a.out", "--array=3,7",
                           "--mem=50", "--oom-retry", "--wrap", "echo task", cwd=work)
        assert done.returncode == 0, done.stderr
        for index in "3", "7":
            assert policy(Job(cluster, f"{done.stdout.strip()}_{index}",
                              work / f"array-{index}.out")) == "auto"
        het = cluster.sbatch(work, script("#!/bin/bash\n#SBATCH --mem=50 --oom-retry=relax\n"
                                          "#SBATCH hetjob\n#SBATCH --mem=60\necho het\n"))
        assert policy(het) == "relax"
        stdin = cluster.sbatch(work, text_in="#!/bin/bash\n#SBATCH --oom-retry=slime\necho in\n")
        assert policy(stdin) == "slime"
        done = cluster.run("srun", "-Q", "--mem=50", "--oom-retry", "echo", "step")
        assert done.stdout == "step\n", done.stderr


INVALID = [
    ("--oom-retry=../../etc", "must be auto, off, or the name of a policy"),
    ("--oom-retry=" + "x" * 33, "must be auto, off, or the name of a policy"),
    ("--oom-max-retries=-1", "must be a number from 0 to 100"),
    ("--oom-max-retries=5x", "must be a number from 0 to 100"),
    ("--oom-mode=inline", "must be auto, inplace, requeue or resubmit"),
    ("--oom-allow=everything", "must be training"),
]


@pytest.mark.parametrize("option,message", INVALID)
def test_submitter_reads_why_a_value_is_refused(cluster, work, script, option, message):
    for arguments, line in ([option], ""), ([], option):
        path = script(f"#!/bin/bash\n#SBATCH -J x {line}\ntrue\n")
        done = cluster.run("sbatch", "-o", "/dev/null", *arguments, path, cwd=work)
        assert done.returncode != 0
        name, value = option.split("=", 1)
        assert f"oomretry: {name}={value}"[:70] in done.stderr and message in done.stderr


def test_options_that_have_no_effect_are_named(cluster, work):
    """Those of the command line: variables may be in a profile, for the jobs that opt in."""
    words = "the --oom-* options have no effect without --oom-retry"
    submit = ("sbatch", "-o", "/dev/null", "--wrap", "true")
    assert words in cluster.run(*submit[:1], "--oom-mode=requeue", *submit[1:], cwd=work).stderr
    assert cluster.run(*submit, cwd=work, env={"SBATCH_OOM_MODE": "requeue"}).stderr == ""


def test_wrong_variable_is_named_and_ignored(cluster, recorder, work, script):
    with cluster.plugstack(cluster.plugin_line(recorder)):
        done = cluster.run("sbatch", "--parsable", "--wait", "-o", work / "out", "--oom-retry",
                           script("#!/bin/sh\ntrue\n"), cwd=work,
                           env={"SBATCH_OOM_MODE": "sideways"})
    assert done.returncode == 0
    assert "SBATCH_OOM_MODE=sideways must be auto, inplace, requeue or resubmit" in done.stderr
    assert "OOMRETRY_MODE" not in (work / "out").read_text()


def test_forged_carriers_do_no_harm(cluster, recorder, work, script):
    """Whoever writes the variables by hand skips sbatch's check; the job still runs."""
    forged = {"_SLURM_SPANK_OPTION_oomretry_oom_mode": "x" * 600,
              "SLURM_SPANK_OOMRETRY_SETTINGS": "policy=../.. mode=x max_retries=99999999999 "
                                               + "y" * 3000,
              "SLURM_SPANK_OOMRETRY_SUBMITTED": "z" * 20000,
              "OOMRETRY_SOCKET": "/tmp/evil"}
    path = script("#!/bin/bash\necho ran; env | grep -c '^OOMRETRY' || true\n")
    with cluster.plugstack(cluster.plugin_line(recorder)):
        job = cluster.sbatch(work, path, env=forged)
        assert job.wait()["JobState"] == "COMPLETED"
    assert job.output() == "ran\n0\n"


def test_job_of_a_job_is_not_opted_in(cluster, recorder, work, script):
    inner = script("#!/bin/bash\ncat \"$0\"; env | grep OOM\n", "inner.sh")
    path = script(f"#!/bin/bash\nsbatch --wait -o {work}/inner.out {inner}\n")
    with cluster.plugstack(cluster.plugin_line(recorder)):
        job = cluster.sbatch(work, "--oom-retry", path)
        assert given(job)
    assert (work / "inner.out").read_text() == inner.read_text()


# --- nothing changes for the others --------------------------------------------------------------

SHOW_SCRIPT = """#!/bin/bash
stat -c '%U %G %a %h' "$0"; ls -lad "$(dirname "$0")"/* "$(dirname "$0")"/.[a-z]* 2>/dev/null | wc -l
cat "$0"
"""


def test_not_opted_in_is_the_same_script(cluster, work, script):
    path = script(SHOW_SCRIPT)
    job = cluster.sbatch(work, path)
    job.wait()
    with cluster.plugstack(""):
        bare = cluster.sbatch(work, path)
        bare.wait()
    assert job.output() == bare.output()
    assert job.output().endswith(path.read_text())


def test_opted_in_script_is_whole_and_its_owners(cluster, recorder, work, script):
    """Restored, it is the same file: bytes, owner, mode, alone in its directory."""
    path = script(SHOW_SCRIPT + "#" * 100000 + "\n")
    with cluster.plugstack(cluster.plugin_line(recorder)):
        job = cluster.sbatch(work, "--oom-retry", path)
        assert given(job)
    with cluster.plugstack(""):
        bare = cluster.sbatch(work, path)
        bare.wait()
    assert job.output().split("\n", 1)[1] == bare.output()


# --- oomrun that does not start ------------------------------------------------------------------

BROKEN = {
    "absent": None,
    "not executable": (0o644, "#!/bin/sh\nexit 0\n"),
    "fails": (0o755, "#!/bin/sh\nexit 1\n"),
    "crashes": (0o755, "#!/bin/sh\nkill -SEGV $$\n"),
    "no interpreter": (0o755, "#!/nonexistent/interpreter\n"),
    "not a program": (0o755, "\x7fELF garbage"),
    "hangs": (0o755, "#!/bin/sh\nexec sleep 1000\n"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_plain_script_runs_without_oomrun(cluster, work, script, kind):
    prefix = install(cluster.dir.with_name("broken-" + kind.replace(" ", "-")), ("lib", "libexec"))
    (prefix / "bin").mkdir()
    if BROKEN[kind]:
        mode, text = BROKEN[kind]
        (prefix / "bin/oomrun").write_text(text)
        (prefix / "bin/oomrun").chmod(mode)
    path = script("#!/bin/bash -x\necho \"$0 $LINENO $*\"; cat \"$0\"; exit 3\n")
    with cluster.plugstack(cluster.plugin_line(prefix)):
        job = cluster.sbatch(work, "--oom-retry", path, "a", "b c")
        record = job.wait()
    assert (record["JobState"], record["ExitCode"]) == ("FAILED", "3:0")
    assert "slurm_script 2 a b c\n" in job.output()
    assert job.output().endswith(path.read_text() + "+ exit 3\n")


def test_tried_again_when_it_was_killed(cluster, work, script, recorder):
    """A job that was queued again would run without its change, and fail as before."""
    prefix = install(cluster.dir.with_name("killed-once"), ("lib", "libexec"))
    (prefix / "bin").mkdir()
    (prefix / "bin/oomrun").write_text(
        f'#!/bin/sh\nif [ ! -e {work}/killed ]; then touch {work}/killed; kill -KILL $$; fi\n'
        f'exec {recorder}/bin/oomrun "$@"\n')
    (prefix / "bin/oomrun").chmod(0o755)
    with cluster.plugstack(cluster.plugin_line(prefix)):
        job = cluster.sbatch(work, "--oom-retry=relax", script("#!/bin/sh\necho ran\n"))
        assert policy(job) == "relax"
    assert (work / "killed").exists()


def test_prefix_closed_to_the_owner(cluster, work, script, recorder):
    closed = cluster.dir.with_name("closed")
    install(closed / "tree", ("lib", "libexec"))
    (closed / "tree/bin").mkdir()
    (closed / "tree/bin/oomrun").symlink_to(recorder / "bin/oomrun")
    closed.chmod(0o700)
    with cluster.plugstack(cluster.plugin_line(closed / "tree")):
        job = cluster.sbatch(work, "--oom-retry", script("#!/bin/sh\necho ran\n"))
        assert job.wait()["JobState"] == "COMPLETED"
    assert job.output() == "ran\n"


# What Pyxis does to a batch script, as far as it matters here: the host's files are not there.
IMAGE_PLUGIN = """
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <slurm/spank.h>
SPANK_PLUGIN(pyxis, 1)
static int enabled;
static int on_option(int val, const char *arg, int remote) { enabled = 1; return 0; }
int slurm_spank_init(spank_t sp, int ac, char **av)
{
    static struct spank_option option = {"container-image", "IMAGE", "in an image", 1, 0, on_option};
    return spank_option_register(sp, &option);
}
int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
    if (!enabled)
        return 0;
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return -1;
    return mount("none", av[0], "tmpfs", 0, NULL);
}
"""


@pytest.mark.parametrize("site", ["", "default=auto"])
def test_script_that_starts_in_an_image(cluster, recorder, work, script, tmp_path, site):
    """It runs as it would without us, and its owner is told at submission if he asked for more."""
    image = cluster.dir.with_name("image.so")
    (tmp_path / "image.c").write_text(IMAGE_PLUGIN)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", image, tmp_path / "image.c"], check=True)
    path = script("#!/bin/sh\necho ran \"$OOMRETRY_POLICY\"\n")
    with cluster.plugstack(cluster.plugin_line(recorder, site) + f"\nrequired {image} {recorder}"):
        options = ["--container-image=x", *([] if site else ["--oom-retry"])]
        done = cluster.run("sbatch", "--parsable", "-o", work / "%j.out", *options, path, cwd=work)
        job = Job(cluster, done.stdout.strip(), work / f"{done.stdout.strip()}.out")
        record = job.wait()
        assert policy(cluster.sbatch(work, "--oom-retry", path)) == "auto"
    assert (record["JobState"], job.output()) == ("COMPLETED", "ran \n")
    assert ("has no effect" in done.stderr) == (not site)


# --- reports -------------------------------------------------------------------------------------


def test_batch_start_and_exit_are_reported(cluster, listener, recorder, work, script):
    with cluster.plugstack(cluster.plugin_line(recorder, agent_socket=listener.path)):
        path = script("#!/bin/bash\nexit 7\n")
        before = int(time.time())
        job = cluster.sbatch(work, "--oom-retry", path)
        start = listener.report_of(job, "batch_start")
        end = listener.report_of(job, "task_exit")
        assert end["begun"] == "1"
        record = job.wait()
    common = {"version": "1", "job": job.id, "uid": str(OWNER.pw_uid),
              "gid": str(OWNER.pw_gid), "opted": "1"}
    for report in start, end:
        assert common.items() <= report.items()
        assert before <= int(report["time"]) <= time.time()
    assert start["script_bytes"] == str(path.stat().st_size)
    assert start["script"].endswith("/slurm_script")
    assert (end["step"], end["task"], end["status"]) == ("batch", "0", str(7 << 8))
    assert (end["node"], end["restart"]) == (record["BatchHost"], "0")
    assert "array_job" not in end and "het_job" not in end


def test_steps_and_arrays_are_reported(cluster, listener, work, script):
    path = script("#!/bin/bash\nsrun --mem=50 -n 2 bash -c 'exit $SLURM_PROCID'\ntrue\n")
    cluster.sbatch(work, "--array=5", "-n", "2", path)
    reports = [listener.report() for _ in range(3)]
    assert {(r["step"], r["task"], r["status"]) for r in reports} == {
        ("0", "0", "0"), ("0", "1", "256"), ("batch", "0", "0")}
    assert {(r["array_task"], r["opted"]) for r in reports} == {("5", "0")}


def test_memory_counters(cluster, listener, work, script):
    if not cluster.memory_limits:
        pytest.skip("no memory cgroup here")
    hog = "python3 -c 'x = bytearray(%d << 20)'"
    job = cluster.sbatch(work, "--mem=100", script(f"#!/bin/bash\n{hog % 300}\nexit 0\n"))
    report = listener.report_of(job, "task_exit")
    assert (report["status"], report["oom_kill"]) == ("0", "1")
    assert report["limit_bytes"] == str(100 << 20)
    assert 99 << 20 <= int(report["peak_bytes"]) <= 101 << 20

    fits = cluster.sbatch(work, "--mem=100", script(f"#!/bin/bash\n{hog % 60}\n"))
    report = listener.report_of(fits, "task_exit")
    assert report["oom_kill"] == "0"
    assert 60 << 20 < int(report["peak_bytes"]) < 100 << 20

    step = cluster.sbatch(work, "--mem=200",
                          script(f"#!/bin/bash\nsrun --mem=100 {hog % 150}\nexit 0\n"))
    report = listener.report_of(step, "task_exit", step="0")
    assert (report["oom_kill"], report["limit_bytes"]) == ("1", str(100 << 20))
    assert listener.report_of(step, "task_exit", step="batch")["oom_kill"] == "0"


# --- an agent that is not there ------------------------------------------------------------------


def test_agent_away_or_deaf(cluster, recorder, work, script, tmp_path):
    """No socket, a dead one, one that nobody reads until it is full, one of the wrong kind."""
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.bind(str(tmp_path / "full"))
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            filler.sendto(b"x" * 1000, str(tmp_path / "full"))
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.bind(str(tmp_path / "stream"))
    stream.listen()
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(str(tmp_path / "dead"))

    path = script("#!/bin/bash\necho ran; exit 4\n")
    for name in "absent", "full", "stream", "dead":
        with cluster.plugstack(cluster.plugin_line(recorder, agent_socket=tmp_path / name)):
            began = time.monotonic()
            job = cluster.sbatch(work, "--oom-retry", path)
            assert given(job)
            assert job.wait()["ExitCode"] == "4:0", name
            assert job.output().endswith("ran\n")
            assert time.monotonic() - began < 10


def test_plugin_costs_little(cluster):
    """The quickest srun, which passes through the allocator, local and remote contexts. The least
    of several is what the machine's other work disturbs least."""
    def quickest():
        times = []
        for _ in range(7):
            began = time.monotonic()
            done = cluster.run("srun", "-Q", "--mem=50", "true")
            assert done.returncode == 0
            times.append(time.monotonic() - began)
        return min(times)

    with cluster.plugstack(""):
        without = quickest()
    with cluster.plugstack(cluster.plugin_line()):
        with_plugin = quickest()
    assert with_plugin < without + 0.1, (with_plugin, without)


def test_mistakes_in_plugstack_are_logged_by_slurmd(cluster):
    node = cluster.run("sinfo", "-h", "-N", "-o", "%N").stdout.split()[0]
    with cluster.plugstack(cluster.plugin_line(site="defualt=auto mode=sideways")):
        cluster.devcluster("restart", f"slurmd.{node}")
        wait_for(lambda: "mode=sideways" in cluster.log(f"{node}.log"), "slurmd to complain")
    assert '"defualt=auto" is not a setting; ignored' in cluster.log(f"{node}.log")
    cluster.devcluster("restart", f"slurmd.{node}")
    wait_for(lambda: set(cluster.run("sinfo", "-h", "-N", "-n", node, "-o", "%T").stdout.split())
             == {"idle"}, "the node to be back")

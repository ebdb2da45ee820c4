# SPDX-License-Identifier: Apache-2.0
"""What is different in a policy for one partition, account or user: stored in versions like a
policy, user over account over partition over the policy itself, and kept by a lineage."""
import getpass
import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import BUILD

SCALE = "forward.fewer-tokens.scale"
LOG = """Traceback (most recent call last):
  File "relax/backends/megatron/actor.py", line 431, in train_actor
  File "megatron/core/pipeline_parallel/schedules.py", line 402, in forward_step
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


@pytest.fixture
def plan(policies, tmp_path):
    script = tmp_path / "job.sh"
    log = tmp_path / "log"
    log.write_text(LOG)

    def run(*words, flags="--use-dynamic-batch-size --max-tokens-per-gpu 9216 "
                          "--recompute-granularity full --recompute-method uniform "
                          "--recompute-num-layers 1"):
        script.write_text(f"python3 -m relax.entrypoints.train {flags}\n")
        done = subprocess.run([BUILD / "bin/oomctl", "plan", "--json", "--db", policies.db,
                               "--script", script, log, *words], text=True, capture_output=True,
                              env=policies.env, check=False)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)
    return run


def tokens(planned):
    return {edit["knob"]: edit["new"] for edit in planned["edits"]}["--max-tokens-per-gpu"]


def test_user_over_account_over_partition_over_the_policy(policies, plan):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small", "-m", "little cards")
    policies.run("set", "relax", SCALE, "0.75", "--account", "ml")
    policies.run("set", "relax", SCALE, "0.9", "--user", "alice")
    asked = [("partition=big,account=bio,user=bo", "4608", None),
             ("partition=small,account=bio,user=bo", "2304", "partition=small@1"),
             ("partition=small,account=ml,user=bo", "6912", "partition=small@1, account=ml@1"),
             ("partition=small,account=ml,user=alice", "8256",
              "partition=small@1, account=ml@1, user=alice@1"),
             ("partition=small,user=alice", "8256", "partition=small@1, user=alice@1")]
    for whom, new, overrides in asked:
        planned = plan("--for", whom)
        assert tokens(planned) == new, whom
        assert planned["policy"] == "relax@1" and planned.get("overrides") == overrides


def test_show_and_diff_say_what_it_comes_to(policies):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    shown = policies.run("show", "relax", "--for", "partition=small,user=bo")
    assert '{"rung": "fewer-tokens", "scale": 0.25}' in shown.stdout
    assert "relax@1 for partition=small,user=bo: with partition=small@1" in shown.stderr
    assert "no override applies" in policies.run("show", "relax", "--for", "user=bo").stderr
    assert '+        {"rung": "fewer-tokens", "scale": 0.25},' in policies.run(
        "diff", "relax", "--for", "partition=small").stdout
    policies.run("diff", "relax", "--for", "partition=big", code=1)
    assert json.loads(policies.run("show", "relax", "--partition", "small").stdout) == {
        "policy": "relax", "for": {"partition": "small"}, "set": {SCALE: 0.25}}


def test_versions_are_kept_and_rolled_back(policies, plan):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small", "-m", "one")
    policies.run("set", "relax", SCALE, "0.75", "--partition", "small", "-m", "two")
    log = json.loads(policies.run("log", "relax", "--partition", "small", "--json").stdout)
    assert [(row["version"], row["message"], row["active"]) for row in log] == [
        (2, "two", 1), (1, "one", 0)]
    assert {row["author"] for row in log} == {getpass.getuser()}
    assert '-    "forward.fewer-tokens.scale": 0.25' in policies.run(
        "diff", "relax", "--partition", "small").stdout
    policies.run("rollback", "relax", "--partition", "small")
    assert tokens(plan("--for", "partition=small")) == "2304"
    # as `policy list` spells it
    policies.run("unset", "relax:partition=small", SCALE)
    assert tokens(plan("--for", "partition=small")) == "4608"
    listed = {row["name"]: row for row in json.loads(policies.run("list", "--json").stdout)}
    assert listed["relax:partition=small"]["base"] == "relax"
    assert listed["relax:partition=small"]["version"] == 4


def test_what_is_wrong_changes_nothing_and_says_what(policies):
    for words, says in (
            (("forward.fewer-token.scale", "0.5", "--user", "bo"), 'did you mean "fewer-tokens"?'),
            ((SCALE, "7", "--user", "bo"), "must be a number between 0 and 1"),
            (("max_retrys", "2", "--user", "bo"), 'did you mean "max_retries"?'),
            (("consent", "given!", "--user", "bo"), 'did you mean "given"?'),
            ((SCALE, "0.5", "--user", "b/o"), "is no name of a user"),
            ((SCALE, "0.5", "--user", "bo", "--account", "ml"), "one of --partition")):
        assert says in policies.run("set", "relax", *words, code=2).stderr
    assert "no policy" in policies.run("set", "rlax", SCALE, "0.5", "--user", "bo", code=2).stderr
    file = policies.directory / "override.json"
    for text, says in (('{"policy": "relax", "fro": {"user": "bo"}}', 'did you mean "for"?'),
                       ('{"policy": "relax", "for": {"usr": "bo"}}', 'did you mean "user"?'),
                       ('{"policy": "relax", "for": {}}', "must name one partition"),
                       ('{"policy": "relax", "for": {"user": "bo"}, "use": 1}', "true or false"),
                       ('{"policy": "relax", "for": {"user": "bo"}, "set": {"x.y.z": 1}}',
                        'set "x.y.z"')):
        file.write_text(text)
        assert says in policies.run("validate", str(file), code=2).stderr
        assert says in policies.run("import", str(file), code=2).stderr
    assert "relax:" not in policies.run("list").stdout
    assert "unset relax" not in policies.run("unset", "relax", SCALE, code=2).stdout


def test_a_policy_keeps_carrying_its_overrides(policies):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    document = json.loads(policies.run("export", "relax").stdout)
    ladder = document["ladders"]["gpu"]["forward"]
    document["ladders"]["gpu"]["forward"] = [
        entry for entry in ladder if "fewer-tokens" not in json.dumps(entry)]
    draft = policies.directory / "draft.json"
    draft.write_text(json.dumps(document))
    said = policies.run("import", str(draft), code=2).stderr
    assert "the override relax:partition=small would not fit any more" in said
    assert len(json.loads(policies.run("log", "relax", "--json").stdout)) == 1
    # once nothing refers to it, it can go
    policies.run("unset", "relax", "--partition", "small")
    policies.run("import", str(draft))


def test_an_override_that_a_release_left_behind_has_no_effect_and_says_so(policies, plan):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    policies.run("set", "relax", "max_retries", "3", "--user", "bo")
    with sqlite3.connect(policies.db) as db:  # as a release without that rung on the ladder would
        (body,) = db.execute("SELECT body FROM policy_version WHERE name = 'relax'").fetchone()
        document = json.loads(body)
        document["ladders"]["gpu"]["forward"] = ["full-recompute", "recompute-loss"]
        db.execute("INSERT INTO policy_version (name, version, body, author, message, created_ms) "
                   "VALUES ('relax', 2, ?, 'upgrade', 'shipped', 0)", (json.dumps(document),))
        db.execute("UPDATE policy SET version = 2 WHERE name = 'relax'")
    shown = policies.run("show", "relax", "--for", "partition=small,user=bo").stderr
    assert "relax@2 for partition=small,user=bo: with user=bo@1" in shown
    assert "left out relax:partition=small@1" in shown
    assert plan("--for", "partition=small")["rung"] == "recompute-loss"


def test_a_policy_can_be_switched_for_one_of_them(policies, plan):
    policies.run("disable", "relax", "--partition", "small")
    policies.run("enable", "relax", "--user", "alice")
    assert plan("--for", "partition=big")["policy"] == "relax@1"
    assert not plan("--for", "partition=small")["policy"].startswith("relax")
    assert plan("--for", "partition=small,user=alice")["policy"] == "relax@1"
    policies.run("disable", "relax")
    assert not plan("--for", "partition=big")["policy"].startswith("relax")
    assert plan("--for", "partition=big,user=alice")["policy"] == "relax@1"


def test_consent_is_for_the_administrator_to_give_or_take(policies, plan):
    document = json.loads(policies.run("export", "relax").stdout)
    changing = next(name for name, rung in document["rungs"].items()
                    if rung.get("changes_training"))
    document["ladders"]["gpu"]["forward"] = [changing]
    for rung in document["rungs"].values():
        rung.pop("guards", None)
    draft = policies.directory / "draft.json"
    draft.write_text(json.dumps(document))
    policies.run("import", str(draft))

    def why(planned):
        return {skip["rung"]: skip["why"] for skip in planned["skipped"]}.get(changing, "")

    assert "--oom-allow=training" in why(plan("--for", "user=bo"))
    assert "--oom-allow=training" not in why(plan("--for", "user=bo", "--allow", "training"))
    policies.run("set", "relax", "consent", "given", "--account", "ml")
    policies.run("set", "relax", "consent", "never", "--user", "bo")
    assert "--oom-allow=training" not in why(plan("--for", "account=ml,user=alice"))
    assert "--oom-allow=training" in why(plan("--for", "account=ml,user=bo", "--allow", "training"))


TRAINER = """
import sys
tokens = int(sys.argv[sys.argv.index('--max-tokens-per-gpu') + 1])
if tokens > 5000:
    sys.exit('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.')
"""


@pytest.fixture
def supervised(policies, tmp_path):
    (tmp_path / "relax/entrypoints").mkdir(parents=True)
    (tmp_path / "relax/entrypoints/train.py").write_text(TRAINER)
    (tmp_path / "job.sh").write_text(
        f"{sys.executable} relax/entrypoints/train.py --use-dynamic-batch-size \\\n"
        "    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\\n"
        "    --max-tokens-per-gpu 9216\n")

    def run(*words):
        done = subprocess.run([BUILD / "bin/oomrun", "--db", policies.db, *words, "--", "bash",
                               "job.sh"], cwd=tmp_path, env=policies.env, text=True,
                              capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def explain(lineage):
        return subprocess.run([BUILD / "bin/oomctl", "explain", lineage, "--db", policies.db],
                              env=policies.env, text=True, capture_output=True,
                              check=True).stdout
    run.explain = explain
    return run


def test_a_lineage_begins_with_the_overrides_of_its_owner(policies, supervised):
    user = getpass.getuser()
    policies.run("set", "relax", "unknown.fewer-tokens.scale", "0.75", "--user", user)
    code, said = supervised()
    assert code == 0, said
    story = supervised.explain("L1")
    assert f"of relax@1 with the override of user {user}@1 (tokens)" in story
    assert "--max-tokens-per-gpu: 9216 -> 6912" in story
    with sqlite3.connect(policies.db) as db:
        (kept,) = db.execute("SELECT policies FROM lineage").fetchone()
    assert json.loads(kept)[f"relax:user={user}"] == 1


def test_the_retries_of_an_override_bound_the_owners_wish(policies, supervised):
    user = getpass.getuser()
    policies.run("set", "relax", "unknown.fewer-tokens.scale", "0.9", "--user", user)
    policies.run("set", "relax", "max_retries", "1", "--user", user)
    code, said = supervised("--max-retries", "9")
    assert code != 0
    assert "attempt 2 of at most 2" in said
    assert "retries" in said.splitlines()[-1] or "all 1" in said


def test_backtest_of_an_override_concerns_only_its_own(policies, supervised):
    code, said = supervised()
    assert code == 0, said
    draft = policies.directory / "draft.json"
    for user, changes in ((getpass.getuser(), 1), ("somebody-else", 0)):
        draft.write_text(json.dumps({"policy": "relax", "for": {"user": user},
                                     "set": {"rungs.fewer-tokens.scale": 0.9}}))
        told = json.loads(policies.run("backtest", str(draft), "--json", code=changes).stdout)
        assert told["incidents"] == 1 and len(told["changed"]) == changes
    draft.write_text(json.dumps({"policy": "relax", "for": {"user": getpass.getuser()},
                                 "use": False}))
    told = json.loads(policies.run("backtest", str(draft), "--json", code=1).stdout)
    assert told["changed"][0]["would_be"]["rung"] != told["changed"][0]["was"]["rung"]
    assert "relax:" not in policies.run("list").stdout


def test_an_override_goes_elsewhere_by_file(policies, tmp_path):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    file = tmp_path / "small.json"
    file.write_text(policies.run("export", "relax", "--partition", "small").stdout)
    assert 'good (override "relax:partition=small", 1 values)' in policies.run(
        "validate", str(file)).stdout
    assert "nothing changes" in policies.run("import", str(file)).stdout
    file.write_text(file.read_text().replace("small", "tiny"))
    policies.run("import", str(file), "-m", "also there")
    assert "also there" in policies.run("log", "relax", "--partition", "tiny").stdout


def test_two_administrators_of_one_override(policies):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    wait, opened = policies.directory / "go", policies.directory / "open"
    slow = policies.editor(f"""
open({str(opened)!r}, 'w').close()
while not os.path.exists({str(wait)!r}):
    time.sleep(0.02)
text = text.replace('0.25', '0.2', 1)""", name="slow")
    first = subprocess.Popen(policies.command("edit", "relax", "--partition", "small", "--yes"),
                             env=dict(policies.env, EDITOR=str(slow)), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    policies.run("set", "relax", SCALE, "0.75", "--partition", "small", "-m", "second")
    wait.touch()
    _, said = first.communicate(timeout=30)
    assert first.returncode == 2
    assert "the edit began from version 1, but version 2 by" in said
    kept = Path(said.strip().rsplit(" ", 1)[1])
    assert '0.2\n' in kept.read_text()
    # the first override of a subject is a race too: neither may be the base of the other
    body = policies.run("show", "relax", "--partition", "small").stdout
    assert '0.75' in body


def test_an_override_that_is_edited_into_another_is_refused(policies):
    policies.run("set", "relax", SCALE, "0.25", "--partition", "small")
    editor = policies.editor("text = text.replace('\"small\"', '\"large\"', 1)")
    said = policies.run("edit", "relax", "--partition", "small", "--yes", editor=editor,
                        code=2).stderr
    assert "this is relax:partition=large now, not relax:partition=small" in said

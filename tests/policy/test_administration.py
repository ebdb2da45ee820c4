# SPDX-License-Identifier: Apache-2.0
"""oomctl policy: a change is one new version; a wrong, killed or overtaken one changes nothing."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import BUILD, REPO


def versions(policies, name="relax"):
    return json.loads(policies.run("log", name, "--json").stdout)


def active(policies, name="relax"):
    return json.loads(policies.run("show", name, "--json").stdout)


def entry(row, phase, rung):
    for item in row["document"]["ladders"]["gpu"][phase]:
        if item == rung or (isinstance(item, dict) and item["rung"] == rung):
            return item
    raise AssertionError(f"{rung} is not on the ladder for {phase}")


def test_shipped_policies_are_version_1_and_round_trip(policies):
    listed = json.loads(policies.run("list", "--json").stdout)
    shipped = sorted(path.stem for path in (REPO / "policies/frameworks").glob("*.json"))
    assert [row["name"] for row in listed] == shipped
    assert {row["version"] for row in listed} == {1}
    for name in shipped:
        text = policies.run("export", name).stdout
        document = json.loads((REPO / f"policies/frameworks/{name}.json").read_text())
        assert json.loads(text) == document
        # what is shipped is written as it is shown, so that a difference is a difference
        assert text == (REPO / f"policies/frameworks/{name}.json").read_text()


def test_set_changes_one_value_in_one_line(policies):
    said = policies.run("set", "relax", "forward.fewer-tokens.scale", "0.75").stdout
    assert '+        {"rung": "fewer-tokens", "scale": 0.75},' in said
    assert "version 2 is active now" in said
    row = active(policies)
    assert entry(row, "forward", "fewer-tokens") == {"rung": "fewer-tokens", "scale": 0.75}
    assert entry(row, "log_probs", "fewer-tokens") == "fewer-tokens"
    assert versions(policies)[0]["message"] == "forward.fewer-tokens.scale = 0.75"


def test_set_on_a_phase_that_refers_to_another_leaves_that_one(policies):
    policies.run("set", "relax", "backward.fewer-tokens.scale", "0.9", "-m", "gentler")
    row = active(policies)
    assert entry(row, "backward", "fewer-tokens") == {"rung": "fewer-tokens", "scale": 0.9}
    assert entry(row, "forward", "fewer-tokens") == "fewer-tokens"
    assert row["message"] == "gentler"


def test_set_reaches_rungs_knobs_and_other_domains(policies):
    policies.run("set", "relax", "rungs.memory-snapshot-torch.enabled", "true")
    policies.run("set", "areal", "knobs.rollout.max_concurrent_rollouts.floor", "16")
    policies.run("set", "host", "host.any.more-memory.factor", "1.5")
    assert active(policies)["document"]["rungs"]["memory-snapshot-torch"]["enabled"] is True
    knobs = active(policies, "areal")["document"]["knobs"]
    assert knobs["rollout.max_concurrent_rollouts"]["floor"] == 16
    assert active(policies, "host")["document"]["ladders"]["host"]["any"][0] == {
        "rung": "more-memory", "factor": 1.5}


def test_what_is_wrong_changes_nothing_and_says_what(policies):
    for words, says in ((("forward.fewer-tokens.scale", "7"), "must be a number between 0 and 1"),
                        (("forward.fewer-token.scale", "0.5"), 'did you mean "fewer-tokens"?'),
                        (("forwards.fewer-tokens.scale", "0.5"), 'did you mean "forward"?'),
                        (("forward.fewer-tokens.scal", "0.5"), 'did you mean "scale"?'),
                        (("knobs.--max-tokens-per-gpu.floor", "rollot_max_context_len"),
                         'did you mean "rollout_max_context_len"?')):
        assert says in policies.run("set", "relax", *words, code=2).stderr
    broken = policies.directory / "broken.json"
    broken.write_text(policies.run("export", "relax").stdout.replace('"kind"', '"kindd"', 1))
    assert 'did you mean "kind"?' in policies.run("import", str(broken), code=2).stderr
    broken.write_text('{"name": "relax",\n "title": }')
    assert f"{broken}:2:" in policies.run("validate", str(broken), code=2).stderr
    assert len(versions(policies)) == 1


def test_edit_stores_a_version_with_author_and_message(policies):
    editor = policies.editor("text = text.replace('\"scale\": 0.25', '\"scale\": 0.2', 1)")
    policies.run("edit", "relax", "--yes", "-m", "smaller buffers", editor=editor)
    newest = versions(policies)[0]
    assert newest["version"] == 2 and newest["message"] == "smaller buffers"
    assert newest["author"] and newest["author"] != "oomretry"


def test_edit_that_does_not_validate_is_kept_but_not_stored(policies):
    editor = policies.editor("text = text.replace('\"rungs\"', '\"rugns\"', 1)")
    said = policies.run("edit", "relax", "--yes", editor=editor, code=2).stderr
    assert 'unknown key "rugns" (did you mean "rungs"?)' in said
    kept = Path(said.strip().rsplit(" ", 1)[1])
    assert '"rugns"' in kept.read_text()
    assert len(versions(policies)) == 1


def test_edit_without_a_terminal_needs_yes(policies):
    editor = policies.editor("text = text.replace('\"scale\": 0.25', '\"scale\": 0.2', 1)")
    assert "say --yes" in policies.run("edit", "relax", editor=editor, code=1).stderr
    assert len(versions(policies)) == 1


def test_two_administrators_at_once_lose_neither_edit_silently(policies):
    policies.run("list")
    wait = policies.directory / "go"
    slow = policies.editor(f"""
open({str(policies.directory / 'open')!r}, 'w').close()
while not os.path.exists({str(wait)!r}):
    time.sleep(0.02)
text = text.replace('"scale": 0.25', '"scale": 0.2', 1)""", name="slow")
    first = subprocess.Popen(policies.command("edit", "relax", "--yes", "-m", "first"),
                             env=dict(policies.env, EDITOR=str(slow)), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (policies.directory / "open").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    policies.run("set", "relax", "forward.fewer-tokens.scale", "0.75", "-m", "second")
    wait.touch()
    _, said = first.communicate(timeout=30)
    assert first.returncode == 2
    assert "the edit began from version 1, but version 2 by" in said
    assert "nothing was changed" in said
    kept = Path(said.strip().rsplit(" ", 1)[1])
    assert '"scale": 0.2' in kept.read_text()
    assert [row["message"] for row in versions(policies)][:1] == ["second"]


def test_a_killed_edit_leaves_the_old_version_active(policies):
    policies.run("list")
    started = policies.directory / "open"
    editor = policies.editor(f"open({str(started)!r}, 'w').close(); time.sleep(60)")
    edit = subprocess.Popen(policies.command("edit", "relax", "--yes"), stdin=subprocess.DEVNULL,
                            env=dict(policies.env, EDITOR=str(editor)), start_new_session=True)
    deadline = time.monotonic() + 30
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(edit.pid, signal.SIGKILL)
    edit.wait()
    assert [row["active"] for row in versions(policies)] == [1]


def test_rollback_diff_and_log_keep_the_whole_story(policies):
    policies.run("set", "relax", "forward.fewer-tokens.scale", "0.75")
    policies.run("rollback", "relax", "1")
    assert [row["version"] for row in versions(policies)] == [3, 2, 1]
    assert versions(policies)[0]["message"] == "rollback to version 1"
    assert "-        \"fewer-tokens\"," in policies.run("diff", "relax", "1", "2").stdout
    policies.run("diff", "relax", "1", "3", code=1)
    assert "has no version 9" in policies.run("rollback", "relax", "9", code=2).stderr


def test_disabled_policies_are_not_used(policies, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text("python3 -m relax.entrypoints.train --use-dynamic-batch-size "
                      "--max-tokens-per-gpu 9216\n")
    log = tmp_path / "log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")

    def planned():
        done = subprocess.run([BUILD / "bin/oomctl", "plan", "--json", "--db", policies.db,
                               "--script", script, log], text=True, capture_output=True,
                              env=policies.env, check=False)
        return json.loads(done.stdout).get("policy", "")

    assert planned().startswith("relax")
    policies.run("disable", "relax")
    assert not planned().startswith("relax")
    policies.run("enable", "relax")
    assert planned().startswith("relax")


def test_backtest_says_what_would_have_changed(policies, tmp_path):
    """Incidents of real attempts, made by a trainer that runs out of memory until it has few
    tokens."""
    (tmp_path / "relax/entrypoints").mkdir(parents=True)
    (tmp_path / "relax/entrypoints/train.py").write_text("""
import sys
tokens = int(sys.argv[sys.argv.index('--max-tokens-per-gpu') + 1])
if tokens > 5000:
    sys.exit('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.')
""")
    script = tmp_path / "job.sh"
    script.write_text(f"""{sys.executable} relax/entrypoints/train.py --use-dynamic-batch-size \\
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
    --max-tokens-per-gpu 9216
""")
    done = subprocess.run([BUILD / "bin/oomrun", "--db", policies.db, "--", "bash", "job.sh"],
                          cwd=tmp_path, env=policies.env, text=True, capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    draft = policies.directory / "draft.json"
    draft.write_text(policies.run("export", "relax").stdout)
    same = json.loads(policies.run("backtest", str(draft), "--json").stdout)
    assert same["incidents"] == 1 and same["changed"] == []
    document = json.loads(draft.read_text())
    document["rungs"]["fewer-tokens"]["scale"] = 0.9
    draft.write_text(json.dumps(document))
    changed = json.loads(policies.run("backtest", str(draft), "--json", code=1).stdout)["changed"]
    assert changed[0]["was"]["edits"][0]["new"] == "4608"
    assert changed[0]["would_be"]["edits"][0]["new"] == "8256"
    assert len(versions(policies)) == 1

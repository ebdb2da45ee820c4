# SPDX-License-Identifier: Apache-2.0
"""Labelled logs through `oomctl diagnose --json`.

cases.jsonl holds failures of memory, look_alikes.jsonl what must not be called one. A case is
{"id", "files": {name: [line]}, "exit": {...}, "expect": {...}}; lines may hold lone surrogates
(\\udc80 to \\udcff) that stand for bytes which are not UTF-8. "phase" lists what is accepted,
"numbers" is everything that may be stated of tried, total and free.
"""

import concurrent.futures
import gzip
import itertools
import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("OOMRETRY_BUILD", HERE.parent.parent / "build"))
OOMCTL = BUILD / "bin" / "oomctl"


def load(name):
    with open(HERE / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def diagnose(case, directory):
    names = []
    for name, lines in case["files"].items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(lines) + "\n"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        names.append(str(path))
    argv = [str(OOMCTL), "diagnose", "--json"]
    for key, value in case.get("exit", {}).items():
        argv += ["--" + key.replace("_", "-"), str(value)]
    run = subprocess.run(argv + names, capture_output=True, timeout=60)
    return run.returncode, json.loads(run.stdout)


def faults(case, directory, status, got):
    want = case["expect"]
    found = []
    if got["oom"] != want["oom"]:
        return [f"oom {got['oom']} ({got['summary']}), want {want['oom']}"]
    if status != (0 if got["oom"] else 1):
        found.append(f"exit status {status}")
    if "cause" in want:
        cause = got["cause"] or {"file": str(directory), "line": None}
        at = (os.path.relpath(cause["file"], directory), cause["line"])
        if at != (want["cause"]["file"], want["cause"]["line"]):
            found.append(f"cause {at}, want {want['cause']}")
    if not want["oom"]:
        if got["domain"] != "none" or got["phase"] != "unknown" or got["direction"] is not None:
            found.append("an incident that is none has domain, phase or direction")
        return found
    if got["domain"] != want["domain"]:
        found.append(f"domain {got['domain']}, want {want['domain']}")
    if "phase" in want and got["phase"] not in want["phase"]:
        found.append(f"phase {got['phase']}, want {want['phase']}")
    if got["direction"] != want.get("direction", got["direction"]) or (
            "direction" not in want and got["direction"] == "raise"):
        found.append(f"direction {got['direction']}, want {want.get('direction')}")
    if "framework" in want and got["framework"] != want["framework"]:
        found.append(f"framework {got['framework']}, want {want['framework']}")
    if "numbers" in want:
        numbers = {k: v for k, v in got["numbers"].items() if k in ("tried", "total", "free")}
        if numbers != want["numbers"]:
            found.append(f"numbers {numbers}, want {want['numbers']}")
    for key in ("rank", "node"):
        if key in want and got["cause"][key] != want[key]:
            found.append(f"{key} {got['cause'][key]}, want {want[key]}")
    return found


def check(cases, root):
    def one(case):
        directory = root / case["id"]
        directory.mkdir()
        return case["id"], faults(case, directory, *diagnose(case, directory))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return {name: found for name, found in pool.map(one, cases) if found}


@pytest.mark.parametrize("name, at_least", [("cases.jsonl", 150), ("look_alikes.jsonl", 120)])
def test_corpus(name, at_least, tmp_path):
    cases = load(name)
    assert len(cases) >= at_least
    assert len({case["id"] for case in cases}) == len(cases)
    # test_classify.c takes all of them through the library; here is every tenth through the program.
    assert check(cases[::10], tmp_path) == {}


@pytest.mark.parametrize("tool", ["gzip", "zstd", "xz", "bzip2"])
def test_compressed(tool, tmp_path):
    case = next(c for c in load("cases.jsonl") if c["id"] == "megatron-backward-srun")
    plain = tmp_path / "main.log"
    plain.write_text("\n".join(case["files"]["main.log"]) + "\n", encoding="utf-8")
    packed = subprocess.run([tool, "-c", str(plain)], capture_output=True, check=True).stdout
    case["files"] = {}
    path = tmp_path / "main.log.packed"
    path.write_bytes(packed)
    run = subprocess.run([str(OOMCTL), "diagnose", "--json", str(path)], capture_output=True,
                         timeout=60)
    got = json.loads(run.stdout)
    assert run.returncode == 0 and got["phase"] == "backward"
    assert got["cause"]["line"] == case["expect"]["cause"]["line"]
    # What a killed job left is cut off, and still tells what it holds.
    path.write_bytes(packed[:1])
    run = subprocess.run([str(OOMCTL), "diagnose", "--json", str(path)], capture_output=True,
                         timeout=60)
    assert run.returncode in (1, 2)


def test_rotated_logs(tmp_path):
    """The order in which the parts are named does not matter, nor whether one is packed."""
    case = next(c for c in load("look_alikes.jsonl") if c["id"] == "rotated-survived")
    for name, lines in case["files"].items():
        text = ("\n".join(lines) + "\n").encode()
        packed = name.endswith(".1")
        (tmp_path / (name + ".gz" * packed)).write_bytes(gzip.compress(text) if packed else text)
    names = ["train.log", "train.log.1.gz", "train.log.2"]
    for order in itertools.permutations(names):
        run = subprocess.run([str(OOMCTL), "diagnose", *(str(tmp_path / n) for n in order)],
                             capture_output=True, timeout=60)
        assert run.returncode == 1 and b"the run went on (line 4 of train.log)" in run.stdout, order
    # Without the log itself they may be files of anything.
    run = subprocess.run([str(OOMCTL), "diagnose", *(str(tmp_path / n) for n in names[1:])],
                         capture_output=True, timeout=60)
    assert run.returncode == 0


def test_long_logs_from_their_end(tmp_path):
    """The same verdict as a whole reading, with true line numbers, and whole when it must be."""
    step = b"2026-02-23T18:01:02.1Z INFO step done, reward mean 3 of the batch, 77 tokens moved\n"
    loss = b"{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    name = b"in verl/trainer/main\n"
    oom = (b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 GiB. GPU 0 has a "
           b"total capacity of 79.15 GiB of which 1.02 GiB is free.\n")
    failure = (b"Traceback (most recent call last):\n"
               b'  File "/x/train.py", line 3, in backward\n' + oom % 3)
    progress = (step * 5000 + loss) * 185
    log = tmp_path / "long.log"

    def read(*bodies):
        log.write_bytes(b"".join(bodies))
        assert log.stat().st_size > 64 << 20
        got = []
        for options in ([], ["--whole"]):
            run = subprocess.run([str(OOMCTL), "diagnose", "--json", *options, str(log)],
                                 capture_output=True, timeout=120)
            got.append(json.loads(run.stdout))
        return got

    by_end, by_all = read(name, oom % 9, progress, failure)
    assert by_end["secondary"] == [] and by_all["secondary"]  # the survived one was not read
    for got in (by_end, by_all):
        assert got["framework"] == "verl" and got["phase"] == "backward"
        assert got["numbers"]["tried"] == 3 << 30
        assert got["cause"]["line"] == 2 + 5001 * 185 + 3
    text = subprocess.run([str(OOMCTL), "diagnose", str(log)], capture_output=True, timeout=120)
    assert b"--whole" in text.stdout
    # Nothing behind the first failure shows that it was survived: it is the cause.
    by_end, by_all = read(oom % 9, step * (5001 * 185), failure)
    assert by_end == by_all and by_end["cause"]["line"] == 1
    # No failure at the end: one that is told far before it is found.
    by_end, by_all = read(failure, step * (5001 * 185))
    assert by_end == by_all and by_end["oom"] and by_end["cause"]["line"] == 3


def test_standard_input_and_usage(tmp_path):
    line = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    for arguments in ([], ["-"]):
        run = subprocess.run([str(OOMCTL), "diagnose", "--json", *arguments], input=line,
                             capture_output=True, timeout=60)
        assert run.returncode == 0 and json.loads(run.stdout)["numbers"] == {"tried": 2 << 30}
    for arguments in (["--exit-code", "x"], ["/nonexistent"], [str(tmp_path)], ["--no-such"]):
        run = subprocess.run([str(OOMCTL), "diagnose", *arguments], input=b"",
                             capture_output=True, timeout=60)
        assert run.returncode == 2 and run.stderr


def test_pipes_and_what_is_no_log(tmp_path):
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    run = subprocess.run(["bash", "-c", f"'{OOMCTL}' diagnose --json <(echo start; sleep 0.2; "
                          f"echo '{line}') <(echo other)"], capture_output=True, timeout=60)
    got = json.loads(run.stdout)
    assert run.returncode == 0 and got["cause"]["line"] == 2, run.stderr
    os.mkfifo(tmp_path / "fifo")  # without a writer: nothing in it, and nobody waits
    run = subprocess.run([str(OOMCTL), "diagnose", str(tmp_path / "fifo")], timeout=60)
    assert run.returncode == 1
    for path, word in ((tmp_path, b"is a directory"), ("/dev/zero", b"not a regular file")):
        run = subprocess.run([str(OOMCTL), "diagnose", str(path)], capture_output=True, timeout=60)
        assert run.returncode == 2 and word in run.stderr and str(path).encode() in run.stderr


def test_human_output():
    log = b"".join(b"line %d\n" % i for i in range(50)) + (
        b"[rank3]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB "
        b"total capacity; 1.02 GiB free) --wandb-key "
        b"0123456789abcdef0123456789abcdef01234567\nbehind\n")
    run = subprocess.run([str(OOMCTL), "diagnose", "--explain"], input=log, capture_output=True,
                         timeout=60)
    text = run.stdout.decode()
    assert run.returncode == 0
    assert "GPU out of memory, rank 3" in text and "2.00 GiB" in text
    assert ">      51" in text and "49  line 48" in text and "52  behind" in text
    assert "0123456789abcdef" not in text and "[redacted]" in text
    assert "pytorch.device-oom" in text


def read_text(log, *options):
    run = subprocess.run([str(OOMCTL), "diagnose", *options], input=log.encode(),
                         capture_output=True, timeout=60)
    return run.stdout.decode().splitlines()


def test_people_read_the_whole_decisive_line():
    words = "of the allocated memory " * 15
    lines = read_text(f"start\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB {words}\n"
                      "[rank1]: KeyError: 'x'\n")
    assert lines[0] == "GPU out of memory: tried to allocate 20.00 MiB"
    at = next(i for i, line in enumerate(lines) if line.startswith("  >       2  RuntimeError"))
    shown = " ".join(line.strip() for line in lines[at:at + 3]).split("2  ", 1)[1]
    assert shown == f"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB {words}".strip()


def test_people_read_what_failed_and_what_was_discounted():
    sample = "{'prompt': 'CUDA out of memory. Tried to allocate 2.00 GiB'}\n"
    lines = read_text("{'loss': 1.0}\n" + sample * 3 + "[rank0]: Traceback (most recent call last):\n"
                      '[rank0]:   File "a.py", line 1, in f\n'
                      "[rank0]: ModuleNotFoundError: No module named 'math_verify'\n", "--explain")
    assert lines[0] == "not out of memory: ModuleNotFoundError: No module named 'math_verify'"
    assert ("  lines 2, 3, 4: quoted text: data or chat, not output of the job") in lines
    fate = [line for line in lines if line.split()[-1:] == ["job"] and "pytorch.device-oom" in line]
    assert len(fate) == 1 and fate[0].split()[:3] == ["2", "to", "4"]


def test_people_read_of_many_files(tmp_path):
    """Files of ranks: what they have in common is told once, and what decides with its rank."""
    frame = '  File "/w/train.py", line 2, in main\n    loss.backward()\n'
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 GiB.\n"
    for rank in range(64):
        text = f"2026-03-04 10:00:{10 if rank == 37 else 40} step\n"
        if rank in (5, 37):
            text += "Traceback (most recent call last):\n" + frame + oom % (1 + rank)
        else:
            text += ("[E0304 10:10:40.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "
                     "collective operation timeout: WorkNCCL(SeqNum=4412)\n")
        (tmp_path / f"rank_{rank:02d}.log").write_text(text)
    run = subprocess.run([str(OOMCTL), "diagnose", "--explain", *sorted(map(str, tmp_path.iterdir()))],
                         capture_output=True, timeout=60)
    text = run.stdout.decode()
    assert run.returncode == 0
    assert text.startswith("GPU out of memory in backward, rank 37: tried to allocate 38.00 GiB\n")
    assert "rank_00.log line 2: a collective timed out: some rank did not take part (62 lines in 62 files)" in text
    assert "rank_05.log line 5: the same failure elsewhere" in text
    assert f"in 62 files, first in line 2 of {tmp_path}/rank_00.log\n" in text
    assert f"  {tmp_path}/rank_37.log\n  5 " in text


def test_windows_begin_with_a_whole_line():
    log = "".join(f"{i:04d} {'x' * 300}\n" for i in range(50))
    lines = read_text(log + "MemoryError\n")
    before = [line for line in lines if "xxx" in line]
    assert before and all(line.split()[1] == f"{int(line.split()[0]) - 1:04d}" for line in before)


def test_windows_show_what_a_terminal_shows():
    log = (b" 10%|#  | 1/10\r 20%|## | 2/10\r 30%|###| 3/10\r\n"
           b"Gr\xc3\xb6\xc3\x9fe \xe5\xae\x8c \xff\r\n"
           b" 30%|###|\r 40%|###|RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    run = subprocess.run([str(OOMCTL), "diagnose"], input=log, capture_output=True, timeout=60)
    lines = run.stdout.decode().splitlines()
    assert "          1   30%|###| 3/10" in lines
    assert "          2  Gr\u00f6\u00dfe \u5b8c ?" in lines
    assert any(line.startswith("  >       3   40%|###|RuntimeError: CUDA") for line in lines)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_wide_logs(encoding, packed, tmp_path):
    """What PowerShell writes; long enough that the end alone would be read of another log."""
    step = "\u4e0a\u4e0d step 1, reward mean 3 of the batch, 77 tokens moved\r\n"
    loss = "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\r\n"
    text = ("\ufeff" + (step * 2000 + loss) * 320 + "torch.OutOfMemoryError: CUDA out of memory. "
            "Tried to allocate 3.00 GiB.\r\n").encode(encoding)
    path = tmp_path / "main.log"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    assert packed or path.stat().st_size > 64 << 20
    run = subprocess.run([str(OOMCTL), "diagnose", "--json", str(path)], capture_output=True,
                         timeout=60)
    got = json.loads(run.stdout)
    assert got["numbers"] == {"tried": 3 << 30} and got["cause"]["line"] == 320 * 2001 + 1


def test_windows_are_bounded_and_redacted():
    frame = '  File "/a/b.py", line 1, in forward\n'
    log = "".join(f"{frame * 20}[rank{r}]: RuntimeError: CUDA out of memory. Tried to allocate "
                  f"{r}.00 GiB. token=hf_abcdefghijklmnopqrstuvwxyz{r}\n" for r in range(1, 300))
    run = subprocess.run([str(OOMCTL), "diagnose", "--json", "--windows"], input=log.encode(),
                         capture_output=True, timeout=60)
    windows = json.loads(run.stdout)["windows"]
    assert windows and sum(len(w["text"]) for w in windows) <= 64 * 1024
    assert "hf_abc" not in json.dumps(windows)


def test_site_signatures(tmp_path):
    env = dict(os.environ, OOMRETRY_SIGNATURES=str(tmp_path))
    site = tmp_path / "site.json"
    site.write_text(json.dumps({"family": "site", "signatures": [{
        "id": "frobnicator", "kind": "oom", "domain": "host", "phase": "data",
        "find": ["frobnicator is full"], "match": "frobnicator is full: %size% wanted",
        "numbers": ["full: (?<tried>%size%) wanted"], "examples": ["frobnicator is full: 3 GiB wanted"],
        "look_alikes": ["the frobnicator is full of joy"]}]}))
    run = subprocess.run([str(OOMCTL), "signatures", "test"], env=env, capture_output=True)
    assert run.returncode == 0, run.stdout
    run = subprocess.run([str(OOMCTL), "diagnose", "--json"], env=env, capture_output=True,
                         input=b"frobnicator is full: 3 GiB wanted\n")
    got = json.loads(run.stdout)
    assert (got["domain"], got["phase"], got["numbers"]) == ("host", "data", {"tried": 3 << 30})
    run = subprocess.run([str(OOMCTL), "signatures", "show", "site.frobnicator"], env=env,
                         capture_output=True)
    assert json.loads(run.stdout)["family"] == "site"
    run = subprocess.run([str(OOMCTL), "signatures", "show", "site.frobnicater"], env=env,
                         capture_output=True)
    assert run.returncode == 1 and b'did you mean "site.frobnicator"' in run.stderr
    site.write_text(json.dumps({"family": "site", "signatures": [{
        "id": "x", "kind": "oom", "domain": "host", "find": ["frobnicator"],
        "examples": ["# frobnicator"]}]}))
    run = subprocess.run([str(OOMCTL), "signatures", "test"], env=env, capture_output=True)
    assert run.returncode == 1 and b"2 faults" in run.stdout
    assert b"site.x: has no look-alike\n" in run.stdout
    assert b"takes away (it reads like a command or a comment): # frobnicator" in run.stdout
    site.write_text('{"family": "site", "signatures": [{"id": "x", "kind": "oom", "domian": "gpu", '
                    '"find": ["abc"]}]}')
    run = subprocess.run([str(OOMCTL), "diagnose"], env=env, capture_output=True, input=b"x")
    assert run.returncode == 2
    assert b"site.json: site.x" in run.stderr and b'"domian" (did you mean "domain"?)' in run.stderr

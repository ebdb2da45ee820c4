# SPDX-License-Identifier: Apache-2.0
"""The classifier against rg -c and grep -cE, in one run on the same generated logs.

    make bench, or tests/bench/classify.sh BUILD
    BYTES=N    size of each log (4 GiB)       DIR=D      where they are made, one at a time
    STRICT=1   a miss is exit status 1 (machines on which others work miss now and then)

The logs: quiet; dense in progress bars; near, in which one line in four is a near match (it holds
words of the shipped signatures and matches none: nine million such lines in 4 GiB); and dense, every
line of which is one that the signatures know (survived, advice, a frame). All programs read from the
page cache and use one core; what counts is processor time, start included, so that other work on the
machine weighs little. rg and grep read a beginning of the log that keeps them busy for two seconds,
because some of these lists take them hours otherwise.

Both get the same list, in two forms (classify_patterns.py). "lines" is what makes a line of a
signature, and so the question that the classifier answers; both tools then still do less: they
count lines, and neither numbers, tracebacks and phases nor what was survived. "words" is only what
the classifier's first search looks for. On the dense log both forms are another question: every line
has a match, and both tools leave it there, while the classifier has to find all that it says. These
ratios are shown and are no target. In the classifier's disfavour: it looks for progress lines as well."""
import os
import pathlib
import subprocess
import sys
import tempfile

import classify_patterns

GIB, MIB = 1 << 30, 1 << 20
BUSY_S = 2.0
KINDS = ("quiet", "bars", "near", "dense")


class Run:
    """One program. It writes into a pipe: into /dev/null grep would stop at the first match."""

    def __init__(self, argv, good=(0,)):
        environment = dict(os.environ, LC_ALL="C")
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment)
        self.out = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in good:
            sys.exit(f"{argv[0]} failed: exit status {process.returncode}")
        self.seconds = usage.ru_utime + usage.ru_stime
        self.peak_mib = usage.ru_maxrss / 1024


def beginning_speed(argv, log, size, work):
    """GB/s over a beginning of the log that takes long enough to be measured."""
    part, length = work / "part.log", MIB // 4
    while True:
        length = min(length, size)
        with open(log, "rb") as whole, open(part, "wb") as out:
            left = length
            while left > 0 and (piece := whole.read(min(left, MIB))):
                out.write(piece)
                left -= len(piece)
        seconds = Run([*argv, str(part)], good=(0, 1)).seconds
        if seconds >= BUSY_S or length == size:
            part.unlink()
            return length / 1e9 / max(seconds, 1e-3)
        length *= 4


class Table:
    def __init__(self):
        self.missed = 0

    def target(self, what, value, unit, wanted, holds):
        self.missed += not holds
        print(f"  {'pass' if holds else 'MISS'}  {what:<34} {value:9.2f} {unit:<5} (target {wanted})")


def measure(kind, bench, size, patterns, work, table):
    log = work / f"{kind}.log"
    with open(log, "wb") as out:
        subprocess.run([bench, "make", kind, str(size)], stdout=out, check=True)
    size = log.stat().st_size
    subprocess.run(["cat", str(log)], stdout=subprocess.DEVNULL, check=True)
    whole = Run([bench, "run", str(log)])
    short = work / "short.log"
    with open(short, "wb") as out:
        subprocess.run(["head", "-c", str(100 * MIB), str(log)], stdout=out, check=True)
    small = Run([bench, "run", str(short)])
    ours = size / 1e9 / whole.seconds
    speeds = {}
    for form, path in patterns.items():
        literal = ["-F"] if form == "words" else []
        speeds[form] = (
            beginning_speed(["rg", "-j1", "--no-mmap", "-a", "-c", *literal, "-f", path], log, size,
                            work),
            beginning_speed(["grep", "-a", "-cE", "-f", path + ".ere"], log, size, work))
    log.unlink()
    print(f"\n{kind}: classifier {ours:.2f} GB/s; " + "; ".join(
        f"{form}: rg {rg:.3f} GB/s, grep {grep:.3f} GB/s" for form, (rg, grep) in speeds.items()))
    floor = 1.0 if kind == "quiet" else 0.3
    table.target("speed", ours, "GB/s", f">= {floor}", ours >= floor)
    for form, (rg, grep) in speeds.items():
        if kind == "dense":
            print(f"        against {form}, another question   {ours / rg:9.2f} x rg, "
                  f"{ours / grep:.2f} x grep")
            continue
        table.target(f"against rg -c, {form}", ours / rg, "x", ">= 1", ours >= rg)
        table.target(f"against grep -cE, {form}", ours / grep, "x", ">= 3", ours >= 3 * grep)
    table.target("peak memory", whole.peak_mib, "MiB", "<= 64", whole.peak_mib <= 64)
    table.target("more than for 100 MiB", whole.peak_mib - small.peak_mib, "MiB", "<= 2",
                 whole.peak_mib - small.peak_mib <= 2)


def end_first(bench, oomctl, size, work):
    """How much the end of a long log saves when it decides; no target."""
    log = work / "long.log"
    loss = b"{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    filler = subprocess.run([bench, "make", "quiet", str(24 * MIB)], stdout=subprocess.PIPE,
                            check=True).stdout
    with open(log, "wb") as out:
        while out.tell() < size:
            out.write(loss * 4 + filler)
        out.write(b'Traceback (most recent call last):\n  File "/x/train.py", line 3, in backward\n'
                  b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n")
    by_end = Run([oomctl, "diagnose", "--json", str(log)])
    whole = Run([oomctl, "diagnose", "--json", "--whole", str(log)])
    log.unlink()
    if by_end.out != whole.out:
        sys.exit("the end of the log gave another verdict")
    print(f"\na failure at the end of a quiet log: {by_end.seconds:.2f} s from its end, "
          f"{whole.seconds:.2f} s as a whole")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    size = int(os.environ.get("BYTES", 4 * GIB))
    os.environ["OOMRETRY_PREFIX"] = str(build)
    bench, oomctl = str(build / "bench/bench_classify"), str(build / "bin/oomctl")
    words, lines = classify_patterns.lists(build / "share/oomretry/signatures")
    table = Table()
    with tempfile.TemporaryDirectory(prefix="oomretry-bench.", dir=os.environ.get("DIR")) as name:
        work = pathlib.Path(name)
        patterns = {}
        for form, texts in (("words", words), ("lines", lines)):
            patterns[form] = str(work / form)
            # grep -E has no fixed strings beside expressions, so that it gets them quoted.
            ere = [classify_patterns.quoted(text) for text in texts] if form == "words" else texts
            pathlib.Path(patterns[form]).write_text("\n".join(texts) + "\n")
            pathlib.Path(patterns[form] + ".ere").write_text("\n".join(ere) + "\n")
        print(f"{size / GIB:.2f} GiB a log; {len(words)} words, {len(lines)} lines; processor time, "
              f"one core; load {os.getloadavg()[0]:.1f}")
        for kind in KINDS:
            measure(kind, bench, size, patterns, work, table)
        end_first(bench, oomctl, size, work)
    print(f"\n{table.missed} of the targets missed" if table.missed else "\nall targets met")
    return 1 if table.missed and os.environ.get("STRICT") == "1" else 0


if __name__ == "__main__":
    sys.exit(main())

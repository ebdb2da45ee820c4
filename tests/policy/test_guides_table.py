# SPDX-License-Identifier: Apache-2.0
"""docs/policies.md says which rung and which test each remedy of the guides has: both must exist,
and so must every key of a policy in the table of keys."""
import json
import re

from conftest import REPO

DOC = (REPO / "docs/policies.md").read_text()
TESTS = re.findall(r'^    \{"([^"]+)",', (REPO / "tests/unit/test_decide_guides.c").read_text(), re.M)


def rows(heading, before=""):
    text = DOC.split(f"\n{heading}\n", 1)[1]
    text = re.split(r"\n#+ ", text, maxsplit=1)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def policy(guide):
    name = "areal" if guide.startswith("AReaL") else "relax"
    return json.loads((REPO / f"policies/frameworks/{name}.json").read_text())


def test_each_remedy_has_its_rung():
    table = rows("## The guides' remedies")
    assert len(table) >= 27
    for guide, remedy, rung, _ in table:
        if rung.startswith("none"):
            continue
        known = policy(guide)["rungs"]
        for name in re.findall(r"`([^`]+)`", rung):
            pattern = re.escape(name).replace("…", ".*")
            assert any(re.fullmatch(pattern, each) for each in known), (guide, remedy, name)


def test_each_remedy_has_its_test():
    for guide, remedy, _, test in rows("## The guides' remedies"):
        if test == "see below":
            continue
        for name in test.split(";"):
            # "Relax 10: smaller …": the beginning; "… (both ways)" says how many there are
            name = re.sub(r" *\([a-z ]+\)$", "", name.strip())
            beginning = name.split("…")[0].strip() or name.strip("… ")
            assert any(each.startswith(beginning) or beginning in each for each in TESTS), (
                guide, remedy, name)


def test_each_section_of_the_guides_is_in_the_table():
    named = [row[0] for row in rows("## The guides' remedies")]
    wanted = [f"Relax {n}" for n in range(1, 12)] + [f"Relax, step {n}" for n in (2, 3, 4)] + [
        f"AReaL, generation {n}" for n in (1, 2, 3)] + [
        f"AReaL, training {n}" for n in range(1, 7)] + [
        "AReaL, weight update 1", "AReaL, weight update 2", "AReaL, optimizer state"]
    assert [each for each in wanted if each not in named] == []


def test_each_deviation_has_a_source():
    for row in rows("### Where the ladders differ from the guides, and why"):
        assert len(row) == 3 and len(row[2]) > 10, row


def test_each_key_of_a_policy_is_described():
    parser = (REPO / "policies/policy_parse.c").read_text()
    keys = re.search(r'read_check_keys\(\s*&place, policy->document,((?:\s*"[^"]+")+)', parser)
    known = " ".join(re.findall(r'"([^"]+)"', keys.group(1))).split()
    described = DOC.split("## What is in a file", 1)[1].split("A rung:", 1)[0]
    assert [key for key in known if f"`{key}`" not in described] == []
    rung = re.findall(r'"([^"]+)"', re.search(
        r'read_check_keys\([^;]*?kind about[^;]*?\)', (
            REPO / "policies/policy_parse_rungs.c").read_text(), re.S).group(0))
    described = DOC.split("A rung:", 1)[1].split("### Expressions", 1)[0]
    assert [key for key in " ".join(rung).split() if f"`{key}`" not in described] == []

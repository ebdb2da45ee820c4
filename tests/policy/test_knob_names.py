# SPDX-License-Identifier: Apache-2.0
"""Knob names of AReaL against the framework's own configuration classes, where they are at hand
(`pip install --no-deps areal`, or OOMRETRY_AREAL pointing at an unpacked wheel)."""
import ast
import importlib.util
import json
import os
from pathlib import Path

import pytest

from conftest import REPO

ROOTS = {"actor": "PPOActorConfig", "ref": "PPOActorConfig", "critic": "PPOCriticConfig",
         "rollout": "InferenceEngineConfig", "gconfig": "GenerationHyperparameters",
         "sglang": "SGLangConfig", "vllm": "vLLMConfig", "cluster": "ClusterSpecConfig",
         "scheduler": "SchedulerConfig", "train_dataset": "TrainDatasetConfig",
         "valid_dataset": "ValidDatasetConfig"}

# Newer than some releases: a rung may use it only where the job's own file sets it.
NEWER = {"actor.logprobs_chunk_size": "set(actor.logprobs_chunk_size)"}


def source():
    given = os.environ.get("OOMRETRY_AREAL")
    if given:
        found = next(Path(given).rglob("areal/api/cli_args.py"), None)
        if found:
            return found
    spec = importlib.util.find_spec("areal")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "api/cli_args.py").exists():
            return Path(place) / "api/cli_args.py"
    return None


def classes(path):
    """{class: (bases, {field: annotation})}, read without importing the framework."""
    out = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            out[node.name] = ([b.id for b in node.bases if isinstance(b, ast.Name)],
                              {s.target.id: ast.unparse(s.annotation) for s in node.body
                               if isinstance(s, ast.AnnAssign)})
    return out


def fields(known, name):
    bases, own = known.get(name, ([], {}))
    found = {}
    for base in bases:
        found.update(fields(known, base))
    found.update(own)
    return found


def exists(known, root, rest):
    here = root
    for part in rest:
        if part.isdigit():
            continue
        found = fields(known, here)
        if part not in found:
            return False
        words = found[part].replace("[", " ").replace("]", " ").replace("|", " ").replace(
            ",", " ").replace("'", " ").split()
        here = next((word for word in words if word in known), "")
    return True


def test_areal_knobs_are_fields_of_its_configuration():
    path = source()
    if path is None:
        pytest.skip("the areal package is not here")
    known = classes(path)
    document = json.loads((REPO / "policies/frameworks/areal.json").read_text())
    missing = []
    for knob in document["knobs"]:
        if ":" in knob:  # env:NAME, slurm:mem
            continue
        head, *rest = knob.split(".")
        ok = exists(known, ROOTS[head], rest) if head in ROOTS else \
            head in fields(known, "BaseExperimentConfig")
        if not ok:
            missing.append(knob)
    assert set(missing) <= set(NEWER)
    for knob in missing:
        for rung in document["rungs"].values():
            if any(edit["knob"] == knob for edit in rung["edits"]):
                assert NEWER[knob] in [guard["require"] for guard in rung["guards"]]

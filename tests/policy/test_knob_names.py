# SPDX-License-Identifier: Apache-2.0
"""Knob names against the frameworks' own definitions, where a package has them (packages.py)."""
import ast
import json

import pytest
import yaml

from conftest import REPO
from packages import Package, plain

ROOTS = {"actor": "PPOActorConfig", "ref": "PPOActorConfig", "critic": "PPOCriticConfig",
         "rollout": "InferenceEngineConfig", "gconfig": "GenerationHyperparameters",
         "sglang": "SGLangConfig", "vllm": "vLLMConfig", "cluster": "ClusterSpecConfig",
         "scheduler": "SchedulerConfig", "train_dataset": "TrainDatasetConfig",
         "valid_dataset": "ValidDatasetConfig"}

# Newer than some releases: a rung may use it only where the job's own file sets it.
NEWER = {"actor.logprobs_chunk_size": "set(actor.logprobs_chunk_size)"}


def classes(tree):
    """{class: (bases, {field: annotation})}"""
    out = {}
    for node in tree.body:
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
    known = classes(next(Package("areal==1.0.4").trees("areal/api/cli_args.py")))
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


# --- packages ---------------------------------------------------------------------------------------

TRANSFORMERS = ("transformers==5.24.0", "/training_args")
# policy: where its settings are defined. Several versions where names have changed.
DEFINED = {
    "trl": [("trl==1.16.0", "trl/trainer/", "trl/scripts/"), ("trl==0.21.0", "trl/trainer/"),
            TRANSFORMERS],
    "llamafactory": [("llamafactory==0.9.5", "/hparams/"), TRANSFORMERS],
    "axolotl": [("axolotl==0.19.0", "/schemas/"), TRANSFORMERS],
    "openrlhf": [("openrlhf==0.11.2", "/cli/"), ("openrlhf==0.9.3", "/cli/")],
    "sglang": [("sglang==0.5.5", "srt/server_args.py")],
    "torchtitan": [("torchtitan==0.3.0", "torchtitan/config/", "torchtitan/components/",
                    "torchtitan/trainer.py"), ("torchtitan==0.2.2", "torchtitan/config/")],
    "megatron": [("megatron-core==0.16.1", "megatron/core/")],
}

# Newer than the newest package, or read by the program around it (megatron/training is in none).
ELSEWHERE = {
    "torchtitan": {"--module", "--training.num_tokens_per_microbatch_per_dp_rank",
                   "--training.num_tokens_per_train_step", "--training.max_context_length"},
    "megatron": {"--micro-batch-size", "--global-batch-size", "--seq-length",
                 "--recompute-activations", "--empty-unused-memory-level", "--num-workers",
                 "--use-torch-fsdp2", "--yaml-cfg", "--record-memory-history",
                 "--memory-snapshot-path", "--async-save", "--save", "--load"},
}


def flags(policy):
    """Without environment variables, resources, and keys of files beside the command."""
    document = json.loads((REPO / f"policies/frameworks/{policy}.json").read_text())
    return [knob for knob in document["knobs"] if ":" not in knob]


def defined(policy):
    found = set()
    for requirement, *parts in DEFINED[policy]:
        found |= Package(requirement).names(*parts)
    return found


@pytest.mark.parametrize("policy", sorted(DEFINED))
def test_knobs_are_settings_of_the_framework(policy):
    known = defined(policy)
    # sections of a dotted name are classes of their own
    missing = {knob for knob in flags(policy)
               if plain(knob) not in known and plain(knob).rsplit(".", 1)[-1] not in known}
    assert missing - ELSEWHERE.get(policy, set()) == set()


@pytest.mark.parametrize("policy", ["relax", "slime"])
def test_flags_that_come_from_megatron_and_sglang_are_theirs(policy):
    """What these two define themselves (relax/utils/arguments.py, slime/utils/arguments.py) is in no
    package; what they take over from others is."""
    servers = defined("sglang")
    wrong = [knob for knob in flags(policy) if knob.startswith("--sglang-") and
             plain(knob)[len("sglang_"):] not in servers | {"server_concurrency", "config"}]
    theirs = set(flags("megatron"))
    core = Package("megatron-core==0.16.1").names("megatron/core/optimizer/",
                                                  "megatron/core/transformer/transformer_config")
    shared = [knob for knob in flags(policy)
              if any(word in knob for word in ("optimizer", "recompute", "parallel-size", "exp-avg",
                                               "cpu-offloading"))]
    wrong += [knob for knob in shared if plain(knob) not in core and knob not in theirs]
    assert shared and set(wrong) <= {"--recompute-loss-function"}


def test_verl_knobs_are_keys_of_its_configuration():
    known = set()

    def walk(tree, prefix=""):
        for key, value in tree.items() if isinstance(tree, dict) else ():
            known.add(prefix + key)
            walk(value, f"{prefix}{key}.")

    for requirement in ("verl==0.9.1", "verl==0.7.0"):
        for _, text in Package(requirement).texts("/_generated_ppo"):
            walk(yaml.safe_load(text))
    assert [knob for knob in flags("verl") if knob.lstrip("+") not in known] == []

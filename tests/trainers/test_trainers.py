# SPDX-License-Identifier: Apache-2.0
"""The fake trainers by themselves: they refuse what the real ones refuse, die where and as the
scenario says, and what they print is diagnosed for what it is."""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("OOMRETRY_BUILD", HERE.parents[1] / "build")).absolute()
sys.path.insert(0, str(HERE))
import harness  # noqa: E402

CURES = os.environ.get("FAKE_TRAINER_CURES") == "1"
ALL = harness.scenarios()
# the bench plays them all; here every other one is enough unless cures are asked for
SCENARIOS = ALL if CURES else ALL[::2]
RC = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
MEGATRON = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --micro-batch-size 1 --seq-length 512 "
VERL = (
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 "
)
AREAL = "examples/math/gsm8k_rl.py --config grpo.yaml "

# (framework, arguments of python3, exit code, what it says); exit 0: it takes them
REFUSALS = [
    ("megatron", "pretrain_gpt.py " + MEGATRON, 0, ""),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--max-tokens-per-gpu 12",
        2,
        "unrecognized arguments: --max-tokens-per-gpu 12",
    ),
    ("megatron", "pretrain_gpt.py " + MEGATRON + "--micro-batch 2", 2, "unrecognized arguments"),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--recompute-granularity full",
        1,
        "you need to use a recompute method",
    ),
    (
        "megatron",
        "pretrain_gpt.py "
        + MEGATRON
        + "--recompute-granularity selective --recompute-method uniform",
        1,
        "not yet supported for selective",
    ),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--optimizer-cpu-offload",
        1,
        "use-precision-aware-optimizer",
    ),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--optimizer-cpu-offload --use-precision-aware-optimizer",
        1,
        "only supported with distributed optimizer",
    ),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--global-batch-size 100 --micro-batch-size 3",
        1,
        "is not divisible by micro batch size",
    ),
    (
        "megatron",
        "pretrain_gpt.py " + MEGATRON + "--tensor-model-parallel-size 3",
        1,
        "is not divisible",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --max-tokens-per-gpu 4096 --use-dynamic-batch-size --typo 3 "
        + RC,
        0,
        "",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --use-dynamic-batch-size",
        1,
        "max_tokens_per_gpu must be set",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --use-dynamic-batch-size --max-tokens-per-gpu 4096 "
        "--rollout-max-context-len 8192",
        1,
        "must be greater than or equal to rollout_max_context_len",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --fully-async",
        1,
        "cannot be used with --colocate",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --optimizer-cpu-offload --micro-batch-size 1",
        1,
        "use-precision-aware-optimizer",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --loss-type sft_loss --micro-batch-size 1",
        1,
        "SFT requires",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --memory-recorder memray --memory-snapshot-dir d "
        "--micro-batch-size 1",
        1,
        "memory_snapshot_num_steps must be set",
    ),
    (
        "relax",
        "-m relax.entrypoints.train --colocate --micro-batch-size one",
        2,
        "invalid int value",
    ),
    (
        "slime",
        "train.py --colocate --use-dynamic-batch-size --max-tokens-per-gpu 2048 --rollout-max-context-len 4096 "
        "--disable-weights-backuper " + RC,
        0,
        "",
    ),
    (
        "slime",
        "train.py --colocate --sglang-mem 0.6 --use-dynamic-batch-size --max-tokens-per-gpu 4096 "
        + RC,
        0,
        "",
    ),
    (
        "slime",
        "train.py --colocate --balance-by-flops --micro-batch-size 1",
        1,
        "requires --use-dynamic-batch-size",
    ),
    ("verl", "-m verl.trainer.main_ppo " + VERL, 0, ""),
    ("verl", "-m verl.trainer.main_ppo data.train_batch_size=256", 1, "Please set at least one of"),
    (
        "verl",
        "-m verl.trainer.main_ppo " + VERL + "actor_rollout_ref.actor.micro=1",
        1,
        "Key 'micro' is not in struct",
    ),
    (
        "verl",
        "-m verl.trainer.main_ppo " + VERL + "+data.train_batch_size=256",
        1,
        "An item is already at",
    ),
    (
        "verl",
        "-m verl.trainer.main_ppo " + VERL + "++data.new=1 ++data.train_batch_size=256",
        0,
        "",
    ),
    (
        "verl",
        "-m verl.trainer.main_ppo " + VERL + "--data.train_batch_size 256",
        2,
        "unrecognized arguments",
    ),
    (
        "verl",
        "-m verl.trainer.main_ppo " + VERL + "actor_rollout_ref.actor.ppo_micro_batch_size=8",
        1,
        "You have set both",
    ),
    (
        "verl",
        "-m verl.trainer.main_ppo actor_rollout_ref.actor.use_dynamic_bsz=True "
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=512",
        1,
        "max_token_len must be greater than the sequence",
    ),
    ("areal", AREAL, 0, ""),
    ("areal", AREAL + "actor.fsdp.per_layer_optim_step=true", 1, "not in struct"),
    ("areal", AREAL + "++actor.fsdp.per_layer_optim_step=true", 0, ""),
    ("areal", AREAL + "++actor.weight_chunked_mem_mb=512", 1, "not in 'GRPOConfig'"),
    ("areal", AREAL + "++max_concurrent_rollouts=8", 1, "not in 'GRPOConfig'"),
    ("areal", AREAL + "actor.backend=fsdp:d2p2", 1, "FSDP backend only supports"),
    ("areal", AREAL + "actor.backend=d4", 1, "No terminal matches"),
    ("areal", AREAL + "actor.backend=fsdp:d8", 1, "Not enough GPUs"),
    (
        "areal",
        AREAL + "++actor.fsdp.per_layer_optim_step=true actor.optimizer.type=adam_bf16",
        1,
        "requires optimizer.type == 'adam'",
    ),
    ("areal", AREAL + "actor.mb_spec.max_tokens_per_mb=1024", 1, "is larger than capacity 1024"),
    ("openrlhf", "-m openrlhf.cli.train_sft --train.micro_batch_size 1", 0, ""),
    ("openrlhf", "-m openrlhf.cli.train_sft --train.micro 1", 0, ""),
    (
        "openrlhf",
        "-m openrlhf.cli.train_sft --micro_train_batch_size 1",
        2,
        "unrecognized arguments",
    ),
    (
        "openrlhf",
        "-m openrlhf.cli.train_sft --train.micro_batch_size 3",
        1,
        "train_batch_size is not equal",
    ),
    ("nemo-rl", "examples/run_grpo.py policy.nothing=1", 1, "Failed to parse Hydra overrides"),
    ("nemo-rl", "examples/run_grpo.py policy.dynamic_batching.enabled=true", 1, "exclusive"),
    ("nemo-rl", "examples/run_grpo.py policy.train_micro_batch_size=3", 1, "must be divisible"),
    (
        "trl",
        "examples/sft.py --model_name_or_path m --per-device-train-batch-size 1 --bf16 true",
        0,
        "",
    ),
    ("trl", "examples/sft.py --max_seq_len 12", 1, "are not used by the HfArgumentParser"),
    ("trl", "examples/sft.py --bf16 maybe", 2, "Truthy value expected"),
    (
        "trl",
        "examples/grpo.py --per_device_train_batch_size 1 --num_generations 16",
        1,
        "divisible by num_generations",
    ),
    ("trl", "examples/grpo.py --auto_find_batch_size true", 1, "not supported with GRPO"),
    ("llamafactory", "-m llamafactory.launcher x.yaml --cutoff_len 512", 1, "are not used"),
    ("llamafactory", "-m llamafactory.launcher x.yaml cutoff_len=512", 0, ""),
    (
        "llamafactory",
        "-m llamafactory.launcher x.yaml quantization_bit=4",
        1,
        "only compatible with the LoRA",
    ),
    ("axolotl", "-m axolotl.cli.train y.yaml --micro-batch-size 1", 0, ""),
    ("axolotl", "-m axolotl.cli.train y.yaml --micro-batch 1", 2, "No such option"),
    (
        "axolotl",
        "-m axolotl.cli.train y.yaml --sample-packing true",
        2,
        "unexpected extra argument",
    ),
    ("axolotl", "-m axolotl.cli.train y.yaml --no-sample-packing", 0, ""),
    (
        "torchtitan",
        "-m torchtitan.train --job.config_file t.toml --training.local-batch-size 1",
        0,
        "",
    ),
    (
        "torchtitan",
        "-m torchtitan.train --job.config_file t.toml --training.enable_cpu_offload=False",
        2,
        "Unrecognized",
    ),
    (
        "torchtitan",
        "-m torchtitan.train --module llama3 --config llama3_8b --training.local_batch_size 1",
        2,
        "Unrecognized options",
    ),
    (
        "torchtitan",
        "-m torchtitan.train --job.config_file t.toml --training.global_batch_size 12",
        1,
        "must be multiple of local batch size",
    ),
    (
        "vllm",
        "-m vllm.entrypoints.openai.api_server --model m --gpu_memory_utilization 0.8 --max-model-len 1024",
        0,
        "",
    ),
    (
        "vllm",
        "-m vllm.entrypoints.openai.api_server --model m --mem-fraction-static 0.8",
        2,
        "unrecognized arguments",
    ),
    (
        "vllm",
        "-m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size 3",
        1,
        "must be divisible",
    ),
    (
        "sglang",
        "-m sglang.launch_server --model-path m --mem-frac 0.8 --context-length 1024",
        0,
        "",
    ),
    (
        "sglang",
        "-m sglang.launch_server --model-path m --mem-fraction-static 1.2",
        1,
        "must be in (0, 1)",
    ),
    (
        "deepspeed",
        "train_ds.py --deepspeed twice.json --per_device_train_batch_size 1",
        1,
        "are duplicated",
    ),
    (
        "deepspeed",
        "train_ds.py --deepspeed fixed.json --per_device_train_batch_size 2",
        1,
        "Please correct the following",
    ),
]
MODEL = {
    "params_b": 0.5,
    "layers": 24,
    "hidden": 896,
    "vocab": 32000,
    "heads": 32,
    "kv_heads": 8,
    "seq": 2048,
}
FILES = {
    "x.yaml": "stage: sft\nfinetuning_type: full\nper_device_train_batch_size: 1\ncutoff_len: 512\nbf16: true\n",
    "y.yaml": "base_model: m\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nsequence_len: 512\n",
    "t.toml": "[training]\nlocal_batch_size = 1\nseq_len = 512\n",
    "twice.json": '{"zero_optimization": {"stage": 2, "stage": 3}}',
    "fixed.json": '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}',
}


@pytest.mark.parametrize("framework,arguments,code,says", REFUSALS)
def test_parser(framework, arguments, code, says, tmp_path):
    trainer = {"framework": framework, "model": MODEL, "gpu_gib": 140}
    (tmp_path / ".trainer.json").write_text(json.dumps(trainer))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "grpo.yaml").write_text(
        harness.fill((HERE / "scripts/areal-yaml/conf/grpo.yaml").read_text(), {})
    )
    done = subprocess.run(
        ["python3", *arguments.split()],
        cwd=tmp_path,
        env=harness.environment(str(tmp_path)),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == code, text[-2000:]
    assert says in text
    status = harness.records(str(tmp_path))[-1]["status"]
    assert status == ("refused" if code else "ok")


def play(sc, where):
    """What one scenario's first attempt did, what oomctl says to it, and whether the cure runs.

    The bench finds cures by itself; the written ones are played only when asked for, since they
    double the time: FAKE_TRAINER_CURES=1."""
    first = where / sc["name"] / "first"
    first.mkdir(parents=True)
    code = harness.play(sc, str(first))
    result = {"code": code, "record": (harness.records(str(first)) or [None])[-1]}
    how = (
        ["--signal", str(-code)]
        if isinstance(code, int) and code < 0
        else ["--exit-code", str(code)]
    )
    said = subprocess.run(
        [str(BUILD / "bin/oomctl"), "diagnose", "--json", *how, "out.log"],
        cwd=first,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    result["incident"] = json.loads(said.stdout)
    if "cure" in sc and CURES:
        cure = where / sc["name"] / "cure"
        cure.mkdir()
        result["cure"] = harness.play(sc, str(cure), sc["cure"])
    return result


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    if not (BUILD / "bin/oomctl").exists():
        pytest.fail(f"nothing is built in {BUILD}: run make")
    where = tmp_path_factory.mktemp("played")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(
            zip([sc["name"] for sc in SCENARIOS], pool.map(lambda sc: play(sc, where), SCENARIOS))
        )


@pytest.mark.parametrize("sc", SCENARIOS, ids=[sc["name"] for sc in SCENARIOS])
def test_scenario(sc, played):
    result = played[sc["name"]]
    record, incident = result["record"], result["incident"]
    status = {"fixed": ["oom"], "stop": ["oom"], "plain": ["failed", "refused"], "ok": ["ok"]}[
        sc["expect"]
    ]
    assert record and record["status"] in status
    assert (result["code"] == 0) == (sc["expect"] == "ok")
    for key, value in sc.get("first", {}).items():
        assert record[key] == value
    assert incident["oom"] == (record["status"] == "oom")
    if record["status"] == "oom":
        assert incident["domain"] == record["domain"]
        # a kill by the kernel does not say what the program was doing
        assert incident["phase"] == record["phase"] or incident["domain"] == "host"
        if (
            record["numbers"]["tried"]
            and record["domain"] == "gpu"
            and "tried" in incident["numbers"]
        ):
            assert abs(incident["numbers"]["tried"] - record["numbers"]["tried"]) <= 0.01 * 2**30
    else:
        assert incident["domain"] == "none"
    assert result.get("cure", 0) == 0, "the scenario's cure does not fit"


def test_bench_is_broad():
    frameworks = {sc["framework"] for sc in ALL}
    assert len(ALL) >= 80 and len(frameworks) == 15
    assert {sc["expect"] for sc in ALL} == {"fixed", "stop", "plain", "ok"}

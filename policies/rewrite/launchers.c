/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/rewrite/launchers.h"

#include <string.h>

/* clang-format off */
static const struct rw_launcher launchers[] = {
    {"exec", LAUNCH_WRAP, "", "", "cl"},
    {"command", LAUNCH_WRAP, "", "", "p"},
    {"builtin", LAUNCH_WRAP, "", "", ""},
    {"time", LAUNCH_WRAP, "", "--verbose --portability --append", "vpa"},
    {"nohup", LAUNCH_WRAP, "", "", ""},
    {"coproc", LAUNCH_WRAP, "", "", ""},
    {"setsid", LAUNCH_WRAP, "", "--wait --fork --ctty", "wfc"},
    {"nice", LAUNCH_WRAP, "", "", ""},
    {"ionice", LAUNCH_WRAP, "", "--ignore", "t"},
    {"stdbuf", LAUNCH_WRAP, "", "", ""},
    {"numactl", LAUNCH_WRAP, "", "--localalloc --hardware --show", "lHs"},
    {"taskset", LAUNCH_TASKSET, "", "--cpu-list --all-tasks", "ca"},
    {"chrt", LAUNCH_WRAP_ONE, "", "--batch --fifo --idle --other --rr", "bfior"},
    {"timeout", LAUNCH_WRAP_ONE, "", "--foreground --preserve-status --verbose", "v"},
    {"catchsegv", LAUNCH_WRAP, "", "", ""},
    {"unbuffer", LAUNCH_WRAP, "", "", "p"},
    {"xargs", LAUNCH_XARGS, "", "--null --no-run-if-empty --verbose --interactive --exit --open-tty",
        "0rtpxo"},
    {"strace", LAUNCH_WRAP, "", "", "f"},
    {"ncu", LAUNCH_WRAP, "", "--force-overwrite", "f"},
    {"nsys", LAUNCH_SUBCOMMAND, "profile launch", "", ""},
    {"py-spy", LAUNCH_SUBCOMMAND, "record", "--native --subprocesses --nonblocking", "n"},
    {"sudo", LAUNCH_ENV, "", "--preserve-env --non-interactive", "EnHkS"},
    {"env", LAUNCH_ENV, "", "--ignore-environment", "i0"},
    {"srun", LAUNCH_WRAP, "", "--label --unbuffered --quiet --verbose --overcommit --oversubscribe --pty "
        "--overlap --exclusive --kill-on-bad-exit --no-kill --whole --exact --preserve-env "
        "--disable-status --container-remap-root --no-container-remap-root --container-mount-home "
        "--no-container-mount-home --container-writable --container-readonly "
        "--no-container-entrypoint --contiguous --spread-job --immediate --use-min-nodes "
        "--interactive --mpi-combine --slurmd-debug", "lQvuOsKXZHkE"},
    {"salloc", LAUNCH_WRAP, "", "--exclusive --overcommit --oversubscribe --quiet --verbose", "QvOs"},
    {"mpirun", LAUNCH_WRAP, "", "--allow-run-as-root --oversubscribe --tag-output --report-bindings "
        "-nolocal", "vlq"},
    {"mpiexec", LAUNCH_WRAP, "", "--allow-run-as-root --oversubscribe --tag-output --report-bindings "
        "-nolocal", "vlq"},
    {"apptainer", LAUNCH_SUB_IMAGE, "exec run", "--nv --rocm --nvccli --containall --contain --cleanenv "
        "--writable-tmpfs --writable --no-home --fakeroot --unsquash --userns --pid --ipc --net "
        "--no-init --no-eval --compat --no-privs --disable-cache --no-umask --uts", "Ccewfupin"},
    {"singularity", LAUNCH_SUB_IMAGE, "exec run", "--nv --rocm --nvccli --containall --contain --cleanenv "
        "--writable-tmpfs --writable --no-home --fakeroot --unsquash --userns --pid --ipc --net "
        "--no-init --no-eval --compat --no-privs --disable-cache --no-umask --uts", "Ccewfupin"},
    {"docker", LAUNCH_SUB_IMAGE, "run exec", "--rm --privileged --init --detach --tty --interactive "
        "--read-only", "dit"},
    {"podman", LAUNCH_SUB_IMAGE, "run exec", "--rm --privileged --init --detach --tty --interactive "
        "--read-only", "dit"},
    {"shifter", LAUNCH_WRAP, "", "", ""},
    {"enroot", LAUNCH_SUB_IMAGE, "start exec", "--rw --root", "rw"},
    {"uv", LAUNCH_SUBCOMMAND, "run", "--no-sync --frozen --locked --active --isolated --no-project "
        "--all-extras --quiet --verbose --offline --no-dev --dev --exact --no-editable "
        "--all-packages --no-cache --all-groups --no-default-groups --script "
        "--no-env-file --no-config", "qvns"},
    {"uvx", LAUNCH_WRAP, "", "", ""},
    {"conda", LAUNCH_SUBCOMMAND, "run", "--no-capture-output --live-stream --debug-wrapper-scripts", "v"},
    {"mamba", LAUNCH_SUBCOMMAND, "run", "--no-capture-output --live-stream --debug-wrapper-scripts", "v"},
    {"micromamba", LAUNCH_SUBCOMMAND, "run", "--no-capture-output --live-stream", "v"},
    {"poetry", LAUNCH_SUBCOMMAND, "run", "", "q"},
    {"pixi", LAUNCH_SUBCOMMAND, "run", "--frozen --locked", "q"},
    {"pipenv", LAUNCH_SUBCOMMAND, "run", "", "q"},
    {"torchrun", LAUNCH_PYLAUNCH, "", "--standalone --no-python --run-path --use-env "
        "--duplicate-stdout-filters --module", "m"},
    {"deepspeed", LAUNCH_PYLAUNCH, "", "--module --no-python --no-local-rank --force-multi --no-ssh "
        "--no-ssh-check --enable-each-rank-log --bind-cores-to-rank", "m"},
    {"accelerate", LAUNCH_ACCELERATE, "launch", "--multi-gpu --use-deepspeed --use-fsdp --use-megatron-lm "
        "--use-xpu --module --no-python --quiet --debug --cpu --tpu --dynamo-use-fullgraph "
        "--dynamo-use-dynamic --enable-cpu-affinity --use-parallelism-config --tpu-use-cluster "
        "--downcast-bf16", "mq"},
    {"bash", LAUNCH_SHELL, "", "", ""},
    {"sh", LAUNCH_SHELL, "", "", ""},
    {"dash", LAUNCH_SHELL, "", "", ""},
    {"zsh", LAUNCH_SHELL, "", "", ""},
    {"ssh", LAUNCH_SSH, "", "", "AaCfGgKkMNnqsTtVvXxYy46"},
    {"pdsh", LAUNCH_PDSH, "", "", "abhqSVLv"},
    {"clush", LAUNCH_PDSH, "", "--quiet --verbose --nostdin --dshbak --line-mode", "abqvBLNdn"},
    {"sbatch", LAUNCH_SBATCH, "", "--parsable --hold --requeue --no-requeue --wait --exclusive "
        "--overcommit --quiet --oversubscribe --contiguous --verbose --test-only --spread-job "
        "--use-min-nodes", "HWQsOvk"},
    {"ray", LAUNCH_RAY, "", "--no-wait --verbose --no-verify", ""},
};
/* clang-format on */

/* Python modules that are launchers. */
static const struct {
    const char *module, *launcher;
} modules[] = {
    {"torch.distributed.run", "torchrun"},
    {"torch.distributed.launch", "torchrun"},
    {"accelerate.commands.launch", "accelerate"},
    {"accelerate.commands.accelerate_cli", "accelerate"},
    {"deepspeed.launcher.runner", "deepspeed"},
    {"deepspeed", "deepspeed"},
};

const struct rw_launcher *rw_launcher_named(const char *name)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
        if (launchers[i].name[0] == name[0] && strcmp(launchers[i].name, name) == 0)
            return &launchers[i];
    return NULL;
}

const struct rw_launcher *rw_launcher_module(const char *module)
{
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
        if (strcmp(modules[i].module, module) == 0)
            return rw_launcher_named(modules[i].launcher);
    return NULL;
}

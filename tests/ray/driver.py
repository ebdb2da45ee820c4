# SPDX-License-Identifier: Apache-2.0
"""The fake Relax trainer as real Ray actors: the memory model decides, the actor on the worker
node raises what PyTorch would raise, and Ray makes of it what it makes. Host memory is really
allocated, when the scenario says so."""
import functools
import sys
import time
import traceback

import ray

from fake import text
from fake.main import find
from fake.memory import Card
from fake.parsers import Refused
from fake.play import Death


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError, by its name."""


OutOfMemoryError.__module__ = "torch"


def through(frames, last):
    """Calls `last` from below functions that are named, and stand, as the framework's are: Ray's
    traceback of the actor shows them."""
    for path, line, function, _ in reversed(frames):
        place = path if path.startswith("/") else f"{text.SITE}/{path}"
        names = {}
        exec(compile("\n" * (line - 2) + f"def {function}(inner):\n return inner()", place, "exec"),
             names)
        last = functools.partial(names[function], last)
    return last()


class Trainer:
    """The personality, without what Ray does by itself."""

    def __init__(self, argv):
        self.fake = find("relax.entrypoints.train")("relax.entrypoints.train", argv)
        self.fake.prefix = lambda *_: ""
        self.fake.parse()
        self.fake.load_ = load = self.fake.load()
        load.world, load.expandable = self.fake.world, self.fake.expandable()
        load.per_node = min(8, self.fake.world)
        self.card = Card(load, self.fake.scenario)

    def walk(self):
        fake = self.fake
        for phase, step in fake.steps():
            fake.before(phase, step)
            fake.other_failure(phase, step)
            fake.check(self.card, phase, step)
            fake.after(phase, step)


@ray.remote(num_gpus=0.2, num_cpus=0, max_restarts=0)
class MegatronTrainRayActor:
    def __init__(self, argv):
        self.trainer = Trainer(argv)
        self.samples = []

    def fill_buffers(self):
        """Sample buffers in host memory, as large as the flag says."""
        a, scenario = self.trainer.fake.args, self.trainer.fake.scenario
        wanted = a.streaming_buffer_size * scenario.get("real_sample_bytes", 0)
        for _ in range(wanted // (64 << 20)):
            self.samples.append(bytearray(64 << 20))
            time.sleep(0.01)
        time.sleep(1 if wanted else 0)

    def train(self, alone):
        """`alone`: what happens to it is in its own log only, and it hangs then."""
        fake = self.trainer.fake
        try:
            self.trainer.walk()
            return
        except Death as met:
            death = met
        sys.stdout.flush()
        time.sleep(1.5)  # Ray hands on the lines of workers in turns; phases last in life

        def fail():
            if death.domain == "gpu":
                raise OutOfMemoryError(text.cuda_oom(death, fake.torch).split(": ", 1)[1])
            raise KeyError("response_length")
        try:
            through(fake.where(death.phase), fail)
        except OutOfMemoryError:
            if not alone:
                raise
            traceback.print_exc()
            sys.stderr.flush()
            time.sleep(600)


def main():
    try:
        trainer = Trainer(sys.argv[1:])
    except Refused as refused:
        print("\n".join(refused.lines), file=sys.stderr)
        sys.exit(refused.code)
    scenario = trainer.fake.scenario
    alone = scenario.get("alone", False)
    ray.init(log_to_driver=not alone)
    trainer.fake.dump()
    time.sleep(scenario.get("seconds", 0))
    actor = MegatronTrainRayActor.options(
        resources={scenario.get("node", "worker"): 0.1}).remote(sys.argv[1:])
    ray.get(actor.fill_buffers.remote())
    try:
        ray.get(actor.train.remote(alone))
    except ray.exceptions.RayError:
        if not scenario.get("hangs"):
            raise
        traceback.print_exc()
        time.sleep(600)
    trainer.fake.record("ok")
    print("Training finished.")


if __name__ == "__main__":
    main()

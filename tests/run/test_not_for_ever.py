# SPDX-License-Identifier: Apache-2.0
"""A remedy that has not helped twice leaves its turn to the others, before the retries are used."""
from again import place  # noqa: F401

NCCL = '''cat <<'END'
[rank3]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5
[rank3]: ncclUnhandledCudaError: Call to CUDA function failed.
[rank3]: Last error:
[rank3]: Cuda failure 2 'out of memory'
END
exit 1
'''


def test_nccl_does_not_say_how_much_is_missing(place):  # noqa: F811
    place.write(before=NCCL)
    status, output = place.run(more='--colocate --sglang-mem-fraction-static 0.8')
    assert status == 1
    rungs = [attempt['decision']['rung'] for attempt in place.story()['attempts'] if attempt['decision']]
    assert rungs[:2] == ['lower-mem-fraction-colocated'] * 2, output
    assert rungs.count('lower-mem-fraction-colocated') == 2 and len(set(rungs)) >= 3, rungs

"""How large things may be, and why. Bytes are counted in UTF-8."""

# Linux refuses a single argument or environment entry of 131,072 bytes (MAX_ARG_STRLEN, 32 pages; execve(2)); a script
# travels as one argument. A round number below it leaves room and can be said to people.
SCRIPT_BYTES = 100_000
ARGUMENT_BYTES = 131_071
# Names and values of all variables of one env parameter.
ENV_BYTES = 64 * 1_024
SECRET_BYTES = 32 * 1_024
# Everything that runs. Kueue keeps a second copy of the pod template, and etcd refuses objects above 1.5 MiB.
WORK_BYTES = 512 * 1_024

TEXT_LENGTH = 1_000
# JavaScript and JSON tools keep whole numbers exact up to here.
LARGEST_INTEGER = 2**53 - 1
LONGEST_SECONDS = 366 * 86_400
LARGEST_MIB = 64 * 1_024 * 1_024
LEAST_MIB = 4
MOST_GPUS = 64
MOST_RUNS = 10_000
MOST_CORES = 4_096

# Set by Beamtime or by Kubernetes to what was allotted; another value would reach for devices of other people.
RESERVED_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "JOB_COMPLETION_INDEX"})

// The conformance suite: one case for each rule that refrain's CUDA backend leans on, the same
// program over the simulated driver and over a real one. A case's name is its id, the rule, and
// where the rule is from:
//   [H] cuda.h   [G] NVIDIA's programming guide   [N] tests of others that assert it for NVIDIA
//   [X] measured without a GPU   [P] measured and published by others
//   [?] not established: the case records what it sees and judges nothing
// Names hold no comma and no semicolon, which doctest and CMake take for separators.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

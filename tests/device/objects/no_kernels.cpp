// A shared object that has nothing to do with kernels.
extern "C" __attribute__((visibility("default"))) int refrain_has_nothing_here() { return 0; }

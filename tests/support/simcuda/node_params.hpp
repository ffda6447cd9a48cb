// From the structures that callers describe work in to the simulation's own, and back. Each
// function answers 1 for parameters that the driver documents as wrong, kUnsettled for those that
// nothing is known of, and then leaves its output alone.
#pragma once

#include "simcuda/driver.hpp"

namespace sim {

/// Packs the arguments as the kernel's image lays them out. For launches as well as for nodes.
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2& from, KernelWork& to);
CUresult copy_work(const CUDA_MEMCPY3D& from, CUcontext context, CopyWork& to);
CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS& from, CUcontext context, FillWork& to);
CUresult host_work(const CUDA_HOST_NODE_PARAMS& from, HostWork& to);
CUresult record_work(CUevent from, RecordWork& to);
CUresult wait_work(CUevent from, WaitWork& to);

/// Which union member a node's type uses, and whether everything else is zero, as it must be.
bool is_well_formed(const CUgraphNodeParams& parameters);
/// Kernel, copy, fill, host, record and wait nodes, and empty ones; kUnsettled for the others.
CUresult work_of(const CUgraphNodeParams& parameters, Work& to);

/// Gives a node other parameters of the same kind, keeping a kernel's attributes. What Get
/// functions pointed to is overwritten, so that whoever still reads it notices.
void replace_work(Node& node, Work work);

/// A kernel node's parameters, with pointers to what the node keeps.
CUDA_KERNEL_NODE_PARAMS_v2 shown_kernel(Node& node);

/// The kind of memory that one side of a copy, or a fill, is in: for what may not change.
CUmemorytype memory_kind(const Driver& driver, CUmemorytype type, CUdeviceptr device);

}  // namespace sim

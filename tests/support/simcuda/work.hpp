// A piece of device work, in the one form that issuing it at once, capturing it and keeping it in a
// graph's node share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "cuda_api.hpp"

namespace sim {

struct Function;
struct Event;
struct Graph;
struct Context;
struct Condition;

struct KernelWork {
  Function* function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  /// The parameter block, laid out as the image says.
  std::vector<std::byte> arguments;
  bool by_extra = false;  ///< Given as CU_LAUNCH_PARAM_BUFFER_POINTER.
  std::vector<CUlaunchAttribute> attributes;
  Context* context = nullptr;
};

struct CopyWork {
  CUDA_MEMCPY3D copy{};
  Context* context = nullptr;
};

struct FillWork {
  CUDA_MEMSET_NODE_PARAMS fill{};
  Context* context = nullptr;
};

struct HostWork {
  CUhostFn function = nullptr;
  void* user = nullptr;
};

struct EmptyWork {};

struct ChildWork {
  Graph* graph = nullptr;  ///< Owned by the node.
};

struct RecordWork {
  Event* event = nullptr;
};

struct WaitWork {
  Event* event = nullptr;
};

struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  std::shared_ptr<struct GraphAllocation> allocation;  ///< graph_memory.hpp
};

struct FreeWork {
  CUdeviceptr address = 0;
  std::shared_ptr<struct GraphAllocation> allocation;  ///< Null: one that no graph made.
};

/// The value behind a CUgraphConditionalHandle.
struct Condition {
  std::uint64_t handle = 0;
  Graph* graph = nullptr;
  unsigned initial = 0;
  bool reset_at_launch = false;
  bool used = false;  ///< By a conditional node.
  unsigned value = 0;
};

struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<CUgraph> bodies;  ///< Graphs owned by the node.
  Context* context = nullptr;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, ChildWork,
                          RecordWork, WaitWork, AllocWork, FreeWork, ConditionalWork>;

}  // namespace sim

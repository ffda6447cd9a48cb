// The functions on user objects and on the references that graphs hold to them.
#include <climits>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/user_object.hpp"

using namespace sim;

namespace {

bool is_count(unsigned count) { return count != 0 && count <= INT_MAX; }

}  // namespace

// Works before cuInit too, as was seen on a real driver.
SIM_API CUresult CUDAAPI cuUserObjectCreate(CUuserObject* handle, void* value, CUhostFn destructor,
                                            unsigned references, unsigned flags) {
  return call({__func__, value, Needs::nothing}, [&](Driver&) -> CUresult {
    if (handle == nullptr || destructor == nullptr || !is_count(references) ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto* object = make<UserObject>();
    object->destroy = destructor;
    object->value = value;
    object->references = references;
    *handle = handle_of<CUuserObject>(object);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuUserObjectRetain(CUuserObject handle, unsigned count) {
  return call({__func__, handle, Needs::nothing}, [&](Driver&) -> CUresult {
    auto* object = find<UserObject>(handle, this_thread().function);
    if (object == nullptr || !is_count(count)) return CUDA_ERROR_INVALID_VALUE;
    retain(*object, count);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuUserObjectRelease(CUuserObject handle, unsigned count) {
  return call({__func__, handle, Needs::nothing}, [&](Driver&) -> CUresult {
    auto* object = find<UserObject>(handle, this_thread().function);
    if (object == nullptr || !is_count(count)) return CUDA_ERROR_INVALID_VALUE;
    release(*object, count, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle,
                                                 unsigned count, unsigned flags) {
  return graph_call(__func__, graph_handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(graph_handle, this_thread().function);
    auto* object = find<UserObject>(handle, this_thread().function);
    if (graph == nullptr || object == nullptr || !is_count(count) ||
        (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == 0) retain(*object, count);
    graph->references[object] += count;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle,
                                                  unsigned count) {
  return graph_call(__func__, graph_handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(graph_handle, this_thread().function);
    auto* object = find<UserObject>(handle, this_thread().function);
    if (graph == nullptr || object == nullptr || !is_count(count)) return CUDA_ERROR_INVALID_VALUE;
    const auto at = graph->references.find(object);
    if (at == graph->references.end() || at->second < count) {
      give_up(__func__, "was to release more references than the graph holds");
    }
    at->second -= count;
    if (at->second == 0) graph->references.erase(at);
    release(*object, count, this_thread().function);
    return CUDA_SUCCESS;
  });
}

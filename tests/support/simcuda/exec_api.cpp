// The functions that make, launch, update and destroy executable graphs.
#include "simcuda/exec.hpp"
#include "simcuda/export.hpp"

using namespace sim;

namespace {

CUresult make_exec(Driver& driver, CUgraphExec* handle, CUgraph graph_handle,
                   CUDA_GRAPH_INSTANTIATE_PARAMS& parameters) {
  parameters.hErrNode_out = nullptr;
  parameters.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  auto* graph = find<Graph>(graph_handle, this_thread().function);
  if (handle == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool uploads = (parameters.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  Stream* stream = uploads ? &stream_of(driver, parameters.hUploadStream) : nullptr;
  if (stream != nullptr && stream->capture != nullptr) return kUnsettled;
  const Verdict verdict = check(driver, *graph, parameters.flags);
  parameters.result_out = verdict.result;
  parameters.hErrNode_out = handle_of<CUgraphNode>(verdict.node);
  if (verdict.code != CUDA_SUCCESS) return verdict.code;
  Exec* exec = instantiate(*graph, parameters.flags);
  if (stream != nullptr) {
    if (const CUresult code = upload(driver, *exec, *stream); code != CUDA_SUCCESS) {
      destroy_exec(*exec, this_thread().function);
      parameters.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
      return code;
    }
  }
  *handle = handle_of<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

CUresult update_exec(Driver& driver, Exec& exec, const Graph& graph,
                     CUgraphExecUpdateResultInfo& info) {
  info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  if (graph.capture != nullptr || graph.owner != nullptr) return kUnsettled;
  if (first_cyclic(graph) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto mismatch = update(exec, graph, *exec.image);
  if (!mismatch) {
    info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
  }
  if (driver.has_bug("update-ignores-topology")) {
    exec.unsettled = false;
    info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
  }
  info = {mismatch->result, handle_of<CUgraphNode>(mismatch->node),
          handle_of<CUgraphNode>(mismatch->from)};
  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* handle, CUgraph graph,
                                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return graph_call(__func__, graph, [&](Driver& driver) -> CUresult {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return make_exec(driver, handle, graph, *parameters);
  });
}

SIM_API CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph,
                                                     unsigned long long flags) {
  return graph_call(__func__, graph, [&](Driver& driver) -> CUresult {
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    parameters.flags = flags;
    return make_exec(driver, handle, graph, parameters);
  });
}

SIM_API CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  return call({__func__, handle}, [&](Driver&) -> CUresult {
    const auto* exec = find<Exec>(handle, this_thread().function);
    if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* exec = find<Exec>(handle, this_thread().function);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return upload(driver, *exec, stream_of(driver, stream));
  });
}

SIM_API CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* exec = find<Exec>(handle, this_thread().function);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return launch(driver, *exec, stream_of(driver, stream));
  });
}

SIM_API CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  return call({__func__, handle}, [&](Driver&) -> CUresult {
    auto* exec = find<Exec>(handle, this_thread().function);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    destroy_exec(*exec, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                                              CUgraphExecUpdateResultInfo* info) {
  const GraphUse use(graph_handle, __func__);
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* exec = find<Exec>(handle, this_thread().function);
    const auto* graph = find<Graph>(graph_handle, this_thread().function);
    if (exec == nullptr || graph == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return update_exec(driver, *exec, *graph, *info);
  });
}

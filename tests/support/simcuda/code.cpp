// Modules and libraries, and the functions and kernels that are theirs.
#include "simcuda/code.hpp"

#include <algorithm>
#include <cstring>

#include "simcuda/device.hpp"
#include "simcuda/graph.hpp"

namespace sim {
namespace {

CUresult place_variables(Driver& driver, Code& module) {
  if (!module.variables) return CUDA_SUCCESS;
  for (Variable& each : *module.variables) {
    each.address = driver.memory.allocate(each.initial.size());
    if (each.address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memcpy(driver.memory.reach(each.address, each.initial.size()), each.initial.data(),
                each.initial.size());
  }
  return CUDA_SUCCESS;
}

bool can_be_set(CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return true;
    default: return false;
  }
}

}  // namespace

void make_functions(Code& code) {
  for (const Entry& entry : code.entries) {
    auto* function = make<Function>();
    function->code = &code;
    function->entry = &entry;
    function->is_kernel = code.kind == Kind::library;
    code.functions.push_back(function);
  }
}

CUresult make_module(Driver& driver, Context& context, const Code& image, Code*& module) {
  auto* made = make<Code>(Kind::module);
  made->context = &context;
  made->entries = image.entries;
  made->variables = image.variables;
  made->ptx_version = image.ptx_version;
  made->binary_version = image.binary_version;
  if (const CUresult code = place_variables(driver, *made); code != CUDA_SUCCESS) {
    unload(driver, *made, this_thread().function);
    return code;
  }
  make_functions(*made);
  context.modules.push_back(made);
  module = made;
  return CUDA_SUCCESS;
}

CUresult module_of(Driver& driver, Context& context, Code& library, Code*& module) {
  const Code* known = library.module;
  if (known == nullptr || known->context != &context || known->destroyed_by != nullptr) {
    const CUresult code = make_module(driver, context, library, library.module);
    if (code != CUDA_SUCCESS) return code;
  }
  module = library.module;
  return CUDA_SUCCESS;
}

void unload(Driver& driver, Code& code, const char* function) {
  if (code.kind == Kind::library && code.module != nullptr &&
      code.module->destroyed_by == nullptr) {
    unload(driver, *code.module, function);
  }
  for (Function* each : code.functions) destroy(*each, function);
  if (code.kind == Kind::module) {
    for (const Variable& each : code.variables.value_or(std::vector<Variable>{})) {
      if (each.address != 0) driver.memory.free(each.address);
    }
    auto& modules = code.context->modules;
    modules.erase(std::remove(modules.begin(), modules.end(), &code), modules.end());
  }
  destroy(code, function);
}

Function* function_named(const Code& code, const char* name) {
  const auto at = std::find_if(code.functions.begin(), code.functions.end(),
                               [&](const Function* each) { return each->entry->name == name; });
  return at == code.functions.end() ? nullptr : *at;
}

CUresult find_variable(const Code& module, const char* name, CUdeviceptr* address,
                       std::size_t* bytes) {
  if (!module.variables) return kUnsettled;
  for (const Variable& each : *module.variables) {
    if (each.name != name) continue;
    if (address != nullptr) *address = each.address;
    if (bytes != nullptr) *bytes = each.initial.size();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult get_attribute(const Function& function, CUfunction_attribute attribute, int* value) {
  const int id = raw(attribute);
  if (value == nullptr || id < 0 || id >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (const auto set = function.attributes.find(attribute); set != function.attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  const Entry& entry = *function.entry;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = entry.max_threads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = entry.static_shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = entry.registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = function.code->ptx_version; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = function.code->binary_version; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = kBlockShared - entry.static_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
  if (!can_be_set(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
      (value < 0 || value > kBlockSharedOptin - function.entry->static_shared_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  function.attributes[attribute] = value;
  return CUDA_SUCCESS;
}

}  // namespace sim

// What is in an image, as far as a simulation needs it, and the modules and libraries that are made
// of images. Machine code is never run: the names and the layouts of parameters are real, and the
// bodies are the host functions that a test registers.
#pragma once

#include "simcuda/driver.hpp"

namespace sim {

/// Reads the kernels and variables of an image whose size nobody tells (code_image.cpp).
CUresult read_image(const Driver& driver, const void* image, Code& to);

/// A module of a context with what `image` has: 2 when its variables find no room.
CUresult make_module(Driver& driver, Context& context, const Code& image, Code*& module);
/// The module that stands for a library in a context, made on demand.
CUresult module_of(Driver& driver, Context& context, Code& library, Code*& module);
/// Makes the functions, or the kernels of a library, that callers have handles of.
void make_functions(Code& code);
/// Destroys a module or a library, with everything that is its own.
void unload(Driver& driver, Code& code, const char* function);

/// The kernel of that name; null: none.
Function* function_named(const Code& code, const char* name);
/// Where a module's variable is. `bytes` and `address` may be null.
CUresult find_variable(const Code& module, const char* name, CUdeviceptr* address,
                       std::size_t* bytes);

/// What cuFuncGetAttribute and cuKernelGetAttribute tell, and take.
CUresult get_attribute(const Function& function, CUfunction_attribute attribute, int* value);
CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value);

}  // namespace sim

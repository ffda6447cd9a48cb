# Kernels in CUDA C++, compiled by nvcc into a fatbin and embedded in a library as bytes. No
# enable_language(CUDA): that configures slowly and links cudart, and here nothing but the bytes is
# wanted, which the driver loads at run time. To be called only where REFRAIN_HAS_NVCC is true.
#
#   refrain_cuda_kernels(<target> NAME <name> SOURCES <file.cu>... [INCLUDES <folder>...])
#
# Makes `<name>_image()`, declared in "<name>_image.hpp", a part of <target>: a span of the bytes of a
# fatbin with machine code for each of REFRAIN_CUDA_ARCHITECTURES, and PTX of the first of them for
# GPUs that are newer. The sources are compiled as one, by one run of nvcc, and again when a header
# that they include has changed. Kernels keep the names of `extern "C"`.
include_guard(GLOBAL)

if(REFRAIN_HAS_NVCC)
  # Those of the machines that are meant, less what this nvcc is too old for.
  execute_process(COMMAND "${REFRAIN_NVCC}" --list-gpu-code
    OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(default "")
  foreach(architecture IN ITEMS 80 90 100)
    if(known MATCHES "sm_${architecture}(\n|$)")
      list(APPEND default ${architecture})
    endif()
  endforeach()
  set(REFRAIN_CUDA_ARCHITECTURES "${default}" CACHE STRING
    "GPUs that kernels are compiled for, oldest first, as \"80;90\"; others get PTX of the first")
  if(NOT REFRAIN_CUDA_ARCHITECTURES)
    message(FATAL_ERROR "REFRAIN_CUDA_ARCHITECTURES is empty, and one architecture is needed.")
  endif()
  foreach(architecture IN LISTS REFRAIN_CUDA_ARCHITECTURES)
    if(NOT architecture MATCHES "^[0-9]+[a-z]?$")
      message(FATAL_ERROR "REFRAIN_CUDA_ARCHITECTURES holds (${architecture}), "
        "and a number as in sm_80 is needed.")
    endif()
  endforeach()
endif()

# Without fused multiply-add: each GPU, and the same source on a host, then rounds alike.
function(refrain_cuda_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "SOURCES;INCLUDES")

  list(GET REFRAIN_CUDA_ARCHITECTURES 0 oldest)
  set(code -gencode arch=compute_${oldest},code=compute_${oldest})
  foreach(architecture IN LISTS REFRAIN_CUDA_ARCHITECTURES)
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  set(warnings "")
  if(CMAKE_COMPILE_WARNING_AS_ERROR)
    set(warnings -Werror all-warnings)
  endif()
  list(TRANSFORM arg_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)

  set(stem "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}")
  set(texts "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    string(APPEND texts "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${stem}.cu" CONTENT "${texts}" @ONLY)
  # nvcc escapes what a rule needs, and leaves its target as it is.
  string(REPLACE " " "\\ " rule "${stem}.fatbin")
  add_custom_command(OUTPUT "${stem}.fatbin"
    COMMAND "${REFRAIN_NVCC}" -fatbin --no-compress --threads 2 -ccbin "${CMAKE_CXX_COMPILER}"
      -std=c++20 -fmad=false ${warnings} ${code} ${includes}
      -MD -MF "${stem}.d" -MT "${rule}" -o "${stem}.fatbin" "${stem}.cu"
    DEPENDS "${stem}.cu" DEPFILE "${stem}.d"
    COMMENT "Compiling CUDA kernels ${arg_NAME}"
    VERBATIM)

  set(name "${arg_NAME}")
  set(fatbin "${stem}.fatbin")
  set(templates "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  configure_file("${templates}/cuda_image.hpp.in" "${stem}_image.hpp" @ONLY)
  configure_file("${templates}/cuda_image.cpp.in" "${stem}_image.cpp" @ONLY)
  # The assembler reads the fatbin: no dependency that a compiler reports.
  set_source_files_properties("${stem}_image.cpp" PROPERTIES OBJECT_DEPENDS "${stem}.fatbin")
  target_sources(${target} PRIVATE "${stem}_image.cpp" "${stem}.fatbin")
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

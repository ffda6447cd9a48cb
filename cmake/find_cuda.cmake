# What of CUDA is here, and so what is built.
#
#   nothing       the host device only
#   headers       the CUDA driver backend too (REFRAIN_CUDA_INCLUDE); libcuda is opened at run time
#   and nvcc      kernels in CUDA C++ too (REFRAIN_NVCC)
#
# -DREFRAIN_CUDA=OFF leaves it out, ON makes its absence an error. Headers are looked for in
# REFRAIN_CUDA_INCLUDE, where scripts/setup puts them, in the toolkit that CUDA_HOME or CUDA_PATH
# names, beside nvcc, and in /usr/local/cuda.
set(REFRAIN_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set_property(CACHE REFRAIN_CUDA PROPERTY STRINGS AUTO ON OFF)

set(REFRAIN_HAS_CUDA FALSE)
set(REFRAIN_HAS_NVCC FALSE)
if(NOT REFRAIN_CUDA STREQUAL "OFF")
  find_program(REFRAIN_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(REFRAIN_NVCC)
    get_filename_component(nvcc_real "${REFRAIN_NVCC}" REALPATH)
    get_filename_component(nvcc_bin "${nvcc_real}" DIRECTORY)
  endif()
  find_path(REFRAIN_CUDA_INCLUDE cudaTypedefs.h
    HINTS "${PROJECT_SOURCE_DIR}/.cache/cuda/include" ENV CUDA_HOME ENV CUDA_PATH
      "${nvcc_bin}/.." /usr/local/cuda
    PATH_SUFFIXES include)

  if(REFRAIN_CUDA_INCLUDE AND EXISTS "${REFRAIN_CUDA_INCLUDE}/cuda.h")
    file(STRINGS "${REFRAIN_CUDA_INCLUDE}/cuda.h" version_line REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX MATCH "[0-9]+$" REFRAIN_CUDA_HEADER_VERSION "${version_line}")
    if(REFRAIN_CUDA_HEADER_VERSION GREATER_EQUAL 12040)
      set(REFRAIN_HAS_CUDA TRUE)
    else()
      message(STATUS "CUDA headers in ${REFRAIN_CUDA_INCLUDE} are too old (${REFRAIN_CUDA_HEADER_VERSION}, needed: 12040)")
    endif()
  endif()

  if(REFRAIN_HAS_CUDA AND REFRAIN_NVCC)
    # A file called nvcc may stand there without a toolkit behind it.
    execute_process(COMMAND "${REFRAIN_NVCC}" --version RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(REFRAIN_HAS_NVCC TRUE)
    endif()
  endif()

  if(REFRAIN_CUDA STREQUAL "ON" AND NOT REFRAIN_HAS_CUDA)
    message(FATAL_ERROR "REFRAIN_CUDA is ON, but no CUDA headers of 12.4 or newer were found: "
      "run scripts/setup, or set REFRAIN_CUDA_INCLUDE to the folder that has cuda.h and cudaTypedefs.h")
  endif()
endif()

if(REFRAIN_HAS_CUDA)
  message(STATUS "CUDA: headers ${REFRAIN_CUDA_HEADER_VERSION} in ${REFRAIN_CUDA_INCLUDE}, nvcc ${REFRAIN_HAS_NVCC}")
  add_library(refrain_cuda_headers INTERFACE)
  target_include_directories(refrain_cuda_headers SYSTEM INTERFACE "${REFRAIN_CUDA_INCLUDE}")
else()
  message(STATUS "CUDA: not built (REFRAIN_CUDA is ${REFRAIN_CUDA})")
endif()

# A project around refrain asks too, and does not see the variables of this one.
set(REFRAIN_HAS_CUDA ${REFRAIN_HAS_CUDA} CACHE INTERNAL "Whether the CUDA backend is built")
set(REFRAIN_HAS_NVCC ${REFRAIN_HAS_NVCC} CACHE INTERNAL "Whether refrain_cuda_kernels can be called")

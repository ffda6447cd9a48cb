# An outside project must need nothing of this tree: the package is installed, moved, and used from
# a copy of the quickstart in a folder that holds only that.

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${work_dir}")
file(COPY "${source_dir}/samples/quickstart" DESTINATION "${work_dir}")

run("${CMAKE_COMMAND}" --install "${binary_dir}" --prefix "${work_dir}/first prefix")
file(RENAME "${work_dir}/first prefix" "${work_dir}/prefix")

file(GLOB_RECURSE package_files "${work_dir}/prefix/*.cmake")
foreach(file IN LISTS package_files)
  file(READ "${file}" text)
  foreach(dir IN ITEMS "${source_dir}" "first prefix")
    string(FIND "${text}" "${dir}" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "The installed file (${file}) names the folder (${dir}).")
    endif()
  endforeach()
endforeach()

# The flags of this build, because a program must be linked with the sanitizer of its libraries.
# -rdynamic as in a program that loads kernels from shared objects: it exports all that is not hidden.
run("${CMAKE_COMMAND}" -S "${work_dir}/quickstart" -B "${work_dir}/build" -G "${generator}"
  "-DCMAKE_PREFIX_PATH=${work_dir}/prefix"
  "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}"
  "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_BUILD_TYPE=${build_type}" "-DCMAKE_EXE_LINKER_FLAGS=-rdynamic")

load_cache("${work_dir}/build" READ_WITH_PREFIX outside_ refrain_DIR)
string(FIND "${outside_refrain_DIR}" "${work_dir}/prefix/" found)
if(NOT found EQUAL 0)
  message(FATAL_ERROR "The outside project found another refrain (${outside_refrain_DIR}).")
endif()

run("${CMAKE_COMMAND}" --build "${work_dir}/build")
run("${work_dir}/build/quickstart")

# Else a shared object that was built with another protobuf would bind to ours and crash.
find_program(nm nm REQUIRED)
execute_process(COMMAND "${nm}" --dynamic --defined-only "${work_dir}/build/quickstart"
  OUTPUT_VARIABLE exported COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "[^\n]*(google8protobuf|refrain4file)[^\n]*" symbol "${exported}")
if(symbol)
  message(FATAL_ERROR "A program that uses refrain exports what is only ours (${symbol}).")
endif()

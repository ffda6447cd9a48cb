# Runs PROGRAM with ARGUMENTS (a list, or nothing), which must end with EXPECTED and print a line that begins with TEXT. CTest by itself
# takes either the one or the other for success.
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
message("${output}")
if(NOT result STREQUAL EXPECTED)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}, not with ${EXPECTED}")
endif()
if(NOT output MATCHES "(^|\n)${TEXT}")
  message(FATAL_ERROR "${PROGRAM} printed no line that begins with \"${TEXT}\"")
endif()

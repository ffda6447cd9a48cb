# Runs the sample `vad` on the CUDA device, over the simulated driver: eagerly, and a step recorded
# on each device and replayed on each, against the reference. What is not as expected ends it.
set(ENV{REFRAIN_CUDA_DRIVER} "${DRIVER}")
set(ENV{SIM_KERNELS} "${KERNELS}")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(weights --weights "${DATA}/silero_vad_v6_16k.safetensors")
set(speech --pcm "${DATA}/goforward.raw" --expect "${DATA}/goforward.probabilities.txt")

function(vad)
  execute_process(COMMAND "${VAD}" ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out
    ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "vad ${ARGN} answered ${status}:\n${out}${err}")
  endif()
  message(STATUS "vad ${ARGN}\n${out}")
endfunction()

vad(eager ${weights} ${speech} --device cuda)
foreach(recorded_on host cuda)
  set(file "${FOLDER}/${recorded_on}.refrain")
  vad(record ${weights} --save "${file}" --device ${recorded_on})
  foreach(replayed_on host cuda)
    vad(replay --load "${file}" ${speech} --device ${replayed_on})
  endforeach()
  vad(replay --load "${file}" ${speech} --device cuda --sessions 4 --threads 2)
endforeach()
# Node by node on the two devices.
vad(compare ${weights} --pcm "${DATA}/goforward.raw" --device cuda --twin host)

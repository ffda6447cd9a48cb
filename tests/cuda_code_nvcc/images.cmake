# The images that tests/cuda_code_nvcc reads, one cubin and one PTX for each architecture and one
# fatbin as nvcc makes it. Sets nvcc_images and nvcc_architectures.
set(nvcc_architectures 75 80 90 100 120)
set(nvcc_folder "${CMAKE_CURRENT_BINARY_DIR}/cuda_code_nvcc_images")
set(nvcc_source "${CMAKE_CURRENT_SOURCE_DIR}/cuda_code_nvcc/layouts.cu")
file(MAKE_DIRECTORY "${nvcc_folder}")

function(refrain_nvcc_image name)
  add_custom_command(OUTPUT "${nvcc_folder}/${name}"
    COMMAND "${REFRAIN_NVCC}" ${ARGN} -o "${nvcc_folder}/${name}" "${nvcc_source}"
    DEPENDS "${nvcc_source}" VERBATIM)
  set(nvcc_images ${nvcc_images} "${nvcc_folder}/${name}" PARENT_SCOPE)
endfunction()

set(nvcc_images)
foreach(sm ${nvcc_architectures})
  refrain_nvcc_image(layouts.${sm}.cubin -arch=sm_${sm} -cubin)
  refrain_nvcc_image(layouts.${sm}.ptx -arch=compute_${sm} -ptx)
endforeach()
refrain_nvcc_image(layouts.fatbin -fatbin -gencode "arch=compute_80,code=[sm_80,compute_80]")

# libtorch without Python's part of it: the imported target outrider_libtorch
# links torch_cpu and c10 only. find_package(Torch) would insist on a CUDA
# toolkit and on every CUDA library; CUDA is a run-time choice here (dlopen).
#
# Looked for in CMAKE_PREFIX_PATH, cmake's or the environment's (an unpacked
# libtorch, or torch/ of any Python environment), then in the local virtual
# environment.
string(REPLACE ":" ";" outrider_prefixes "$ENV{CMAKE_PREFIX_PATH}")
file(GLOB outrider_venv_torch ${CMAKE_SOURCE_DIR}/.venv/lib/python3.*/site-packages/torch)
find_path(OUTRIDER_TORCH_INCLUDE ATen/ATen.h
  HINTS ${CMAKE_PREFIX_PATH} ${outrider_prefixes} ${outrider_venv_torch} PATH_SUFFIXES include NO_DEFAULT_PATH)
if(NOT OUTRIDER_TORCH_INCLUDE)
  message(FATAL_ERROR "libtorch was not found. Run tools/setup.sh (it installs the pinned wheel into .venv), "
    "or set CMAKE_PREFIX_PATH to an existing one, or build without the model runtime: -DOUTRIDER_TORCH=OFF")
endif()
get_filename_component(OUTRIDER_TORCH_ROOT ${OUTRIDER_TORCH_INCLUDE} DIRECTORY)
set(OUTRIDER_TORCH_LIB ${OUTRIDER_TORCH_ROOT}/lib)
message(STATUS "outrider: libtorch in ${OUTRIDER_TORCH_ROOT}")

add_library(outrider_libtorch INTERFACE)
target_include_directories(outrider_libtorch SYSTEM INTERFACE
  ${OUTRIDER_TORCH_INCLUDE} ${OUTRIDER_TORCH_INCLUDE}/torch/csrc/api/include)
target_link_libraries(outrider_libtorch INTERFACE
  ${OUTRIDER_TORCH_LIB}/libtorch_cpu.so ${OUTRIDER_TORCH_LIB}/libc10.so)
target_link_options(outrider_libtorch INTERFACE
  -Wl,-rpath,${OUTRIDER_TORCH_LIB}
  -Wl,-rpath-link,${OUTRIDER_TORCH_ROOT}/../nvidia/cu13/lib)

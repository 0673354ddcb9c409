# Everything but libtorch comes from Debian packages; tools/setup.sh installs
# them. Debian has no Protobuf CONFIG package: module mode first, then gRPC.
find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
# Where the environment's CMAKE_PREFIX_PATH names the torch of a Python
# environment, protoc and headers of another version lie there too.
set(CMAKE_FIND_USE_CMAKE_ENVIRONMENT_PATH FALSE)
find_package(Protobuf REQUIRED MODULE)
unset(CMAKE_FIND_USE_CMAKE_ENVIRONMENT_PATH)
find_package(gRPC REQUIRED CONFIG)
find_package(GTest REQUIRED CONFIG)
find_package(benchmark REQUIRED CONFIG)
find_package(ICU REQUIRED COMPONENTS uc)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(prometheus-cpp REQUIRED CONFIG)
# Its package says which of its options it was built with: they change its ABI.
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)

if(OUTRIDER_TORCH)
  include(Libtorch)
endif()

# CUDA: one line says what was found. .cu files are C++17 (CMake 3.25 does not
# know nvcc's flag for C++20) and see no torch header.
if(NOT OUTRIDER_CUDA MATCHES "^(ON|OFF|AUTO)$")
  message(FATAL_ERROR "OUTRIDER_CUDA must be ON, OFF or AUTO, not '${OUTRIDER_CUDA}'")
endif()
set(OUTRIDER_HAVE_CUDA OFF)
if(NOT OUTRIDER_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Each target names its own; the default is an architecture that the next
    # toolkit may not know.
    set(CMAKE_CUDA_ARCHITECTURES OFF)
    enable_language(CUDA)
    set(OUTRIDER_HAVE_CUDA ON)
  elseif(OUTRIDER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OUTRIDER_CUDA=ON, but no nvcc was found: install the CUDA Toolkit or pass OUTRIDER_CUDA=OFF")
  endif()
endif()
if(OUTRIDER_HAVE_CUDA)
  message(STATUS "outrider: CUDA Toolkit found (${CMAKE_CUDA_COMPILER}): core/kernels/cuda is compiled for GPUs")
else()
  message(STATUS "outrider: CUDA Toolkit not found or switched off: core/kernels/cuda is compiled for its tests on the host alone")
endif()

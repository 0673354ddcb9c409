# outrider_cc_library(NAME sampling HDRS … SRCS … DEPS … [STRICT] [HOT] [SANITIZE_O0] [COLD] [FUZZED])
#   one library per folder, alias outrider::sampling; explicit lists, no globs.
#   HOT: its loops go over whole rows, and are worth -O3. The others mostly call,
#   and with -O2 take an eighth less to compile.
#   SANITIZE_O0: what computes is called from it and stands elsewhere, or its tests
#   compute little: to optimise it takes sanitizers' builds longer than it saves.
#   COLD: likewise, and no part of a server's round: clients, flags, reports. No
#   build spends much to optimise it.
#   FUZZED: it reads what others wrote, and shows libFuzzer which way it took.
# outrider_cc_binary(NAME outrider-verifier SRCS … DEPS … [OPTIMISED])
# outrider_cc_tests(NAME sampling_tests SRCS coins_test.cc … [THREAD_SRCS …] DEPS … [LABELS …] [TIMEOUT …] [OPTIMISED] [HOT])
#   one executable for a folder's _test.cc files, but for those that need a label, a
#   time limit or libraries of their own; ctest runs it suite by suite, as
#   sampling_tests.CoinsTest, each with this time limit. THREAD_SRCS: more of
#   its files, in whose tests more than one thread runs; the others hold nothing that
#   the thread sanitizer could find, and it gets none of them.
#   OPTIMISED: the test computes much by itself, and is compiled for that, but not
#   with sanitizers: there it takes longer to compile than it then saves. HOT: there
#   too, or it would take minutes.
#   The files of either are compiled in groups where OUTRIDER_UNITY is on: what
#   stands in their anonymous namespaces needs names that differ.
# outrider_python_test(NAME … SCRIPT … [ARGUMENTS …] [LABELS …] [TIMEOUT …])
#   a test that needs .venv-test (tools/setup.sh) and the real programs; skipped,
#   and said so, where what it needs is not there.
function(outrider_python_test)
  if(OUTRIDER_SANITIZE AND NOT OUTRIDER_TORCH)
    return()  # no program is built there that it could run
  endif()
  cmake_parse_arguments(A "" "NAME;SCRIPT;TIMEOUT" "ARGUMENTS;LABELS" ${ARGN})
  add_test(NAME ${A_NAME}
    COMMAND ${CMAKE_SOURCE_DIR}/tools/run-python-test.sh ${CMAKE_CURRENT_SOURCE_DIR}/${A_SCRIPT}
      ${A_ARGUMENTS})
  # Tests of whole programs are long, and begin before others (COST). Their places are
  # those of a test that computes (PROCESSORS; DiscoverSuites.cmake).
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} COST 200 PROCESSORS 2
    SKIP_RETURN_CODE 77 ENVIRONMENT
    "OUTRIDER_SOURCE_DIR=${CMAKE_SOURCE_DIR};OUTRIDER_BIN_DIR=${CMAKE_BINARY_DIR}/bin;OUTRIDER_STUBS_DIR=${CMAKE_BINARY_DIR}/python")
endfunction()

# Built there only where a test with threads needs it: the other sanitizers' build
# has compiled everything, with the same warnings.
function(outrider_leave_out_of_thread_sanitizer target)
  if(OUTRIDER_SANITIZE MATCHES "thread")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# Headers cost most of a build. clang-tidy, which compiles each file alone, shows
# that a file which changed includes what it needs.
function(outrider_compile_in_groups target)
  if(OUTRIDER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    # It takes a source of a group for a header.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Precompiled headers are for all or none: so all are compiled as what shared
# libraries have inside is, but nothing of ours is replaced at run time; and -pthread
# comes with gRPC to some. To look for memory that it may free is a tenth of what gcc
# does.
function(outrider_set_common_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-pthread> $<$<COMPILE_LANGUAGE:CXX>:-fPIC> $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=10000> ${ARGN})
endfunction()

# What nearly every file includes is read once for all targets of a kind, whose
# options (ARGN) are the same; programs count as libraries. Not where files are
# compiled alone, to show that each includes what it needs.
function(outrider_precompile_headers target kind)
  if(NOT OUTRIDER_UNITY)
    return()
  endif()
  set(owner outrider_headers_of_${kind})
  if(NOT TARGET ${owner})
    # Written only if it is not there yet, so that it is not compiled again.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers_of_${kind}.cc CONTENT "")
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers_of_${kind}.cc)
    outrider_set_common_options(${owner} ${ARGN})
    target_precompile_headers(${owner} PRIVATE
      <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/time/time.h>
      <algorithm> <chrono> <cmath> <functional> <iostream> <limits> <map> <memory> <mutex>
      <optional> <set> <span> <string> <thread> <unordered_map> <utility> <variant> <vector>)
    if(kind STREQUAL "tests")
      target_link_libraries(${owner} PRIVATE GTest::gmock)
      target_precompile_headers(${owner} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fstream> <future> <random>)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(outrider_cc_library)
  cmake_parse_arguments(A "STRICT;HOT;SANITIZE_O0;COLD;FUZZED" "NAME" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target outrider_${A_NAME})
  if(A_SRCS)
    add_library(${target} STATIC ${A_SRCS} ${A_HDRS})
    outrider_leave_out_of_thread_sanitizer(${target})
    outrider_compile_in_groups(${target})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS} outrider_warnings)
    if(A_STRICT)
      target_link_libraries(${target} PRIVATE outrider_strict_warnings)
    endif()
    set(level "")
    if((A_SANITIZE_O0 OR A_COLD) AND OUTRIDER_SANITIZE)
      set(level -O0)
    elseif(A_COLD AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
      set(level -O1)
    elseif(A_HOT AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
      set(level -O3)
    endif()
    outrider_set_common_options(${target} ${level})
    if(A_FUZZED AND OUTRIDER_FUZZ)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    elseif(NOT A_HOT)  # whose files have options of their own
      outrider_precompile_headers(${target} libraries${level} ${level})
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${A_DEPS})
  endif()
  add_library(outrider::${A_NAME} ALIAS ${target})
endfunction()

function(outrider_cc_binary)
  cmake_parse_arguments(A "OPTIMISED" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  if(OUTRIDER_SANITIZE)
    # No test runs the programs there: their libraries are tested in the tests.
    set_target_properties(${A_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  # A program's main file is run through once, unless it computes by itself.
  set(level "")
  if(NOT A_OPTIMISED AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(level -O1)
  endif()
  outrider_set_common_options(${A_NAME} ${level})
  outrider_precompile_headers(${A_NAME} libraries${level} ${level})
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} outrider_warnings)
endfunction()

# Tests call what is optimised; optimising the calls only costs time to build, and
# twice as much of it with a sanitizer's checks in them.
function(outrider_set_options_of_tests target level)
  set(options "")
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" OR OUTRIDER_SANITIZE)
    list(APPEND options ${level})
  endif()
  # These two look at each access to a member, a sixth of what a file of tests
  # costs. A library's sources have them; what stands in headers alone has not in a
  # test's program.
  if(OUTRIDER_SANITIZE MATCHES "undefined")
    list(APPEND options -fno-sanitize=alignment,vptr)
  endif()
  outrider_set_common_options(${target} ${options})
  if(level STREQUAL "-O0")
    outrider_precompile_headers(${target} tests ${options})
  endif()
endfunction()

function(outrider_cc_tests)
  cmake_parse_arguments(A "OPTIMISED;HOT" "NAME;TIMEOUT" "SRCS;THREAD_SRCS;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(OUTRIDER_SANITIZE MATCHES "thread" AND A_THREAD_SRCS)
    set(A_SRCS "")
  endif()
  add_executable(${A_NAME} ${A_SRCS} ${A_THREAD_SRCS})
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gmock GTest::gtest_main outrider_warnings)
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  outrider_compile_in_groups(${A_NAME})
  if(A_HOT OR (A_OPTIMISED AND NOT OUTRIDER_SANITIZE))
    outrider_set_options_of_tests(${A_NAME} -O1)
  else()
    outrider_set_options_of_tests(${A_NAME} -O0)
  endif()
  if((OUTRIDER_SANITIZE AND "heavy" IN_LIST A_LABELS) OR
     (OUTRIDER_SANITIZE MATCHES "thread" AND NOT A_THREAD_SRCS))
    # Not run there, hence not built either.
    set_target_properties(${A_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${A_NAME}_suites.cmake)
  # Lists become strings here, and lists again in DiscoverSuites.cmake.
  list(JOIN A_LABELS "|" labels)
  list(JOIN A_ENVIRONMENT "|" environment)
  add_custom_command(TARGET ${A_NAME} POST_BUILD BYPRODUCTS ${suites} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${A_NAME}> -DNAME=${A_NAME} -DOUTPUT=${suites}
      "-DLABELS=${labels}" -DTIMEOUT=${A_TIMEOUT}
      "-DENVIRONMENT=OUTRIDER_SOURCE_DIR=${CMAKE_SOURCE_DIR}|${environment}"
      -P ${CMAKE_SOURCE_DIR}/cmake/DiscoverSuites.cmake)
  # Until the program is built, ctest says that it is missing.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${A_NAME}_include.cmake
    "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n"
    "  add_test(${A_NAME}_NOT_BUILT ${A_NAME}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    ${CMAKE_CURRENT_BINARY_DIR}/${A_NAME}_include.cmake)
endfunction()

# cmake -DPROGRAM=… -DNAME=… -DOUTPUT=… -DLABELS=a|b -DTIMEOUT=… -DENVIRONMENT=A=1|B=2
#   -P DiscoverSuites.cmake, after a test program is linked: one ctest test for
# each of its suites. A process for each test would start libtorch hundreds of
# times; one for the whole program would hide which suite is slow.
cmake_policy(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests
  OUTPUT_VARIABLE listing ERROR_VARIABLE errors RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed (${status}): ${errors}")
endif()
string(REPLACE "|" ";" labels "${LABELS}")
string(REPLACE "|" ";" environment "${ENVIRONMENT}")
list(REMOVE_ITEM environment "")
# Where several tests run at once, long ones begin first: at the end of all one
# that takes minutes would be alone.
set(cost 0)
if(labels MATCHES "golden")
  set(cost 150)
elseif(labels MATCHES "heavy")
  set(cost 100)
endif()
# Two of the presets' eight places, so that four tests that compute run at a time; a
# test that mostly waits takes one.
set(places 2)
set(script "")
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
foreach(line IN LISTS lines)
  # "Suite." or "Grid/Suite.  # TypeParam = ..."; its tests are indented.
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    string(APPEND script
      "add_test([==[${NAME}.${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
      "set_tests_properties([==[${NAME}.${suite}]==] PROPERTIES TIMEOUT ${TIMEOUT} COST ${cost} PROCESSORS ${places}"
      " LABELS [==[${labels}]==] ENVIRONMENT [==[${environment}]==])\n")
  endif()
endforeach()
if(script STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} has no tests")
endif()
file(WRITE ${OUTPUT} "${script}")

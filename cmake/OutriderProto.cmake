# outrider_proto_library(NAME proto PROTOS a.proto b.proto … [MESSAGES c.proto …])
#   Target outrider_NAME_sources makes the sources and compiles nothing.
#   PROTOS declare services, whose gRPC classes are made too; MESSAGES do not.
# CMake's protobuf_generate places outputs relative to the source directory,
# not to the import root, so the command is spelled out.
function(outrider_proto_library)
  cmake_parse_arguments(A "" "NAME" "PROTOS;MESSAGES" ${ARGN})
  set(gen ${CMAKE_CURRENT_BINARY_DIR}/gen)
  set(all_outputs "")
  foreach(proto ${A_PROTOS} ${A_MESSAGES})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(out ${gen}/${stem}.pb.h ${gen}/${stem}.pb.cc)
    set(grpc "")
    if(proto IN_LIST A_PROTOS)
      list(APPEND out ${gen}/${stem}.grpc.pb.h ${gen}/${stem}.grpc.pb.cc)
      set(grpc --grpc_out=${gen} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    endif()
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${gen}
      COMMAND protobuf::protoc -I . --cpp_out=${gen} ${grpc} ${proto}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      DEPENDS ${A_PROTOS} ${A_MESSAGES} VERBATIM)
    list(APPEND all_outputs ${out})
  endforeach()
  set(target outrider_${A_NAME})
  add_custom_target(${target}_sources DEPENDS ${all_outputs})
  add_library(${target} STATIC ${all_outputs})
  target_include_directories(${target} SYSTEM PUBLIC ${gen})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  # gRPC's headers cost more than the classes: these are compiled as one. Files of
  # messages cannot be, as each has a static `schemas`.
  if(OUTRIDER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    foreach(proto ${A_PROTOS} ${A_MESSAGES})
      string(REGEX REPLACE "\\.proto$" "" stem ${proto})
      set_source_files_properties(${gen}/${stem}.pb.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
  endif()
  # It is Protobuf's code, and no sanitizer's business to be fast.
  if(OUTRIDER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  add_library(outrider::${A_NAME} ALIAS ${target})
endfunction()

# OUTRIDER_SANITIZE applies to the whole tree, so that no object file is left
# uninstrumented by accident.
if(OUTRIDER_SANITIZE)
  string(REPLACE "+" "," outrider_sanitizers "${OUTRIDER_SANITIZE}")
  add_compile_options(-fsanitize=${outrider_sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${outrider_sanitizers})
  if(OUTRIDER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
    # Clang 14 cannot emit its data for coroutines; gcc has no such check.
    add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
    if(OUTRIDER_SANITIZE MATCHES "address")
      # The address sanitizer sees what is read or written through a null
      # pointer or beyond an object's end; each of these two checks of the same
      # is about a tenth of what a file takes to compile.
      add_compile_options(-fno-sanitize=null,object-size)
    endif()
  endif()
endif()

# libFuzzer comes with clang, and finds most beside these two: tests/fuzz.
set(OUTRIDER_FUZZ OFF)
if(OUTRIDER_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(OUTRIDER_FUZZ ON)
endif()

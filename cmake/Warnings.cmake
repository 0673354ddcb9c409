# outrider_warnings: linked by every target of ours, never by generated code.
# outrider_strict_warnings: also -Wconversion, where a silent narrowing would
# change a probability or a length.
add_library(outrider_warnings INTERFACE)
target_compile_options(outrider_warnings INTERFACE -Wall -Wextra -Wshadow)
if(OUTRIDER_WERROR)
  target_compile_options(outrider_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(outrider_warnings INTERFACE -Wthread-safety)
endif()

add_library(outrider_strict_warnings INTERFACE)
target_compile_options(outrider_strict_warnings INTERFACE -Wconversion -Wno-sign-conversion)

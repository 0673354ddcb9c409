# Compiler results are kept between builds where ccache is installed.
find_program(OUTRIDER_CCACHE ccache)
if(OUTRIDER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
endif()

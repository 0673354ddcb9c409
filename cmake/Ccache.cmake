# Compiler results are kept between builds where ccache is installed. Which headers a
# file includes, it reads from the dependencies that Ninja has written anyway: running
# the preprocessor first cost a build without kept results a tenth of its time.
find_program(OUTRIDER_CCACHE ccache)
if(OUTRIDER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 ${OUTRIDER_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${OUTRIDER_CCACHE})
endif()

# Flags that every target shares. Interface target: underkeel_options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below the tree are taken relative to it, so that a second checkout finds what the first compiled.
  set(UNDERKEEL_CCACHE "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${UNDERKEEL_CCACHE}")
endif()

set(UNDERKEEL_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined")

add_library(underkeel_options INTERFACE)
# AVX2 and FMA are the floor; AVX-512 kernels are separate files chosen at run time.
# fp-contract is off so that a fused multiply-add happens only where the source writes one.
# -Wrestrict is wrong about std::string in g++ 12 (GCC bug 105651).
target_compile_options(underkeel_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -mavx2 -mfma -mf16c -ffp-contract=off -fno-math-errno>)
target_include_directories(underkeel_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(UNDERKEEL_WERROR)
  target_compile_options(underkeel_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(UNDERKEEL_SANITIZE)
  target_compile_options(underkeel_options INTERFACE
    -fsanitize=${UNDERKEEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(underkeel_options INTERFACE -fsanitize=${UNDERKEEL_SANITIZE})
endif()

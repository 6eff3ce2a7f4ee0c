# Turns the CUDA language on. Included only when UNDERKEEL_CUDA is ON, so that a build without a
# toolkit never looks for one.
# 90a, not 90: what only Hopper has is compiled for that name alone. No other GPU is of generation 9.
set(UNDERKEEL_CUDA_ARCHITECTURES "80;90a" CACHE STRING
    "GPU generations to compile for, as a list of CMake architectures: 80 (A100), 90a (H100, H200)")
# Set before the language: CMake 3.25's own default is a generation that nvcc 13 no longer knows.
set(CMAKE_CUDA_ARCHITECTURES "${UNDERKEEL_CUDA_ARCHITECTURES}")
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  find_program(UNDERKEEL_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin)
  if(NOT UNDERKEEL_NVCC)
    message(FATAL_ERROR "UNDERKEEL_CUDA is ON and nvcc was not found: put it on PATH, set "
                        "CUDA_HOME, or configure with -DUNDERKEEL_CUDA=OFF")
  endif()
  set(CMAKE_CUDA_COMPILER "${UNDERKEEL_NVCC}")
endif()
enable_language(CUDA)
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${UNDERKEEL_CCACHE}")
endif()

# CMake 3.25 does not know how to ask nvcc 12 and later for C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()

# --fmad=false: as on the CPU, a fused multiply-add happens only where the source writes one.
# --expt-relaxed-constexpr: kernels may call what is constexpr, random bits above all.
target_compile_options(underkeel_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra,-ffp-contract=off>)

# Proves at configure time that device code in C++20 compiles, whatever src/ holds. Before
# CMAKE_CUDA_STANDARD is set, since the trial project does not know the option above.
include(CheckSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "${CMAKE_CUDA20_STANDARD_COMPILE_OPTION}")
check_source_compiles(CUDA "
  #include <concepts>
  #include <span>
  template <std::floating_point T>
  __global__ void scale(T* values, T factor) { values[threadIdx.x] *= factor; }
  void launch(std::span<float> values) { scale<<<1, 32>>>(values.data(), 2.0f); }
  int main() { launch({}); }
" UNDERKEEL_CUDA_COMPILES_CXX20)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT UNDERKEEL_CUDA_COMPILES_CXX20)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION} does not compile "
                      "C++20 device code for ${CMAKE_CUDA_ARCHITECTURES}: CUDA 12 or later is needed")
endif()

set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

if("90a" IN_LIST UNDERKEEL_CUDA_ARCHITECTURES)
  set(has_90a true)
else()
  set(has_90a false)
endif()
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/cuda/hopper.cpp" PROPERTIES
  COMPILE_DEFINITIONS "UNDERKEEL_CUDA_HAS_90A=${has_90a}")

#pragma once
// UK_HOST_DEVICE marks an inline function that kernels call as well as the host.

#if defined(__CUDACC__)
#define UK_HOST_DEVICE __host__ __device__
#else
#define UK_HOST_DEVICE
#endif

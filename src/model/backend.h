#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <string>
#include <vector>

#include "model/tensor_list.h"

namespace pleat {

/// Loads ggml's backends, once per process: from `directory` where kernels are plug-ins, else what
/// is linked in. Throws Error that names the directory when no CPU device appears.
void load_backends(const std::string& directory);

/// The CPU device. Throws Error when load_backends was not called.
ggml_backend_dev_t cpu_device();

/// One backend per device that computes, in the order stock uses: accelerators, then the CPU.
std::vector<ggml_backend_ptr> make_backends();

/// Sets the threads of the next graph on a backend that has threads.
void set_threads(ggml_backend_t backend, int n_threads);
/// `callback(data)` returning true stops a running graph.
void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data);

/// The buffer type stock would choose for a weight: the first that supports the operation the
/// weight is used in, of accelerators' types, the CPU's extra (repack) types, the CPU's own.
ggml_backend_buffer_type_t choose_buffer_type(const gguf::TensorInfo& info, Use use, bool repack);

}  // namespace pleat

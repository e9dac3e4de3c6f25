#include "model/backend.h"

#include <array>
#include <mutex>

#include "base/error.h"

namespace pleat {
namespace {

template <typename Function>
Function proc_address(ggml_backend_dev_t device, const char* name) {
    ggml_backend_reg_t const registry = ggml_backend_dev_backend_reg(device);
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(registry, name));
}

std::vector<ggml_backend_dev_t> devices_of(enum ggml_backend_dev_type type) {
    std::vector<ggml_backend_dev_t> devices;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t const device = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(device) == type) devices.push_back(device);
    }
    return devices;
}

std::vector<ggml_backend_buffer_type_t> extra_buffer_types(ggml_backend_dev_t device) {
    std::vector<ggml_backend_buffer_type_t> types;
    const auto get = proc_address<ggml_backend_dev_get_extra_bufts_t>(
        device, "ggml_backend_dev_get_extra_bufts");
    if (get == nullptr) return types;
    for (ggml_backend_buffer_type_t* type = get(device); type != nullptr && *type != nullptr;
         ++type) {
        types.push_back(*type);
    }
    return types;
}

/// Does the device run `use` on this weight when it lies in `type`? Asked of the device, on tensors
/// without data, so that no list of types has to be kept. 512 columns: what stock asks with.
bool supported(ggml_backend_dev_t device, ggml_backend_buffer_type_t type,
               const gguf::TensorInfo& info, Use use) {
    const ggml_context_ptr context(ggml_init(
        {.mem_size = 8 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
    if (!context) fail("out of memory for tensor descriptions");
    ggml_context* const c = context.get();
    ggml_tensor* const w = ggml_new_tensor(c, info.type, GGML_MAX_DIMS, info.ne.data());
    constexpr int64_t n_tokens = 512;
    ggml_tensor* op = nullptr;
    switch (use) {
        case Use::get_rows:
            op = ggml_get_rows(c, w, ggml_new_tensor_1d(c, GGML_TYPE_I32, n_tokens));
            break;
        case Use::mul_mat:
            op = ggml_mul_mat(
                c, w, ggml_new_tensor_4d(c, GGML_TYPE_F32, w->ne[0], n_tokens, w->ne[2], w->ne[3]));
            break;
        case Use::mul_mat_id: {
            ggml_tensor* const x = ggml_new_tensor_3d(c, GGML_TYPE_F32, w->ne[0], 1, n_tokens);
            op = ggml_mul_mat_id(c, w, x, ggml_new_tensor_2d(c, GGML_TYPE_I32, 1, n_tokens));
            break;
        }
        case Use::mul:
        case Use::add: {
            ggml_tensor* const a =
                ggml_new_tensor_4d(c, GGML_TYPE_F32, w->ne[0], w->ne[1], w->ne[2], w->ne[3]);
            op = use == Use::mul ? ggml_mul(c, a, w) : ggml_add(c, a, w);
            break;
        }
        case Use::rope_factors: {
            ggml_tensor* const a = ggml_new_tensor_3d(c, GGML_TYPE_F32, w->ne[0] * 2, 1, n_tokens);
            ggml_tensor* const positions = ggml_new_tensor_1d(c, GGML_TYPE_I32, n_tokens);
            op = ggml_rope_ext(c, a, positions, w, static_cast<int>(w->ne[0] * 2), 0, 0, 10000.0F,
                               1.0F, 0.0F, 1.0F, 32.0F, 1.0F);
            break;
        }
        case Use::conv: {
            constexpr int64_t n_seqs = 3;
            op = ggml_ssm_conv(
                c, ggml_new_tensor_3d(c, GGML_TYPE_F32, w->ne[0] - 1 + n_tokens, w->ne[1], n_seqs),
                w);
            break;
        }
    }
    const ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, 0));
    w->buffer = buffer.get();
    const bool result = ggml_backend_dev_supports_op(device, op);
    w->buffer = nullptr;
    return result;
}

}  // namespace

void load_backends(const std::string& directory) {
    static std::once_flag once;
    std::call_once(once, [&] {
        if (directory.empty()) {
            ggml_backend_load_all();
        } else {
            ggml_backend_load_all_from_path(directory.c_str());
        }
    });
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
        fail(
            "no CPU backend of ggml found in {}; run make deps, or name the directory in "
            "PLEAT_BACKEND_DIR",
            directory.empty() ? "the library's own path" : directory);
    }
}

ggml_backend_dev_t cpu_device() {
    ggml_backend_dev_t const device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) fail("no CPU device: ggml's backends are not loaded");
    return device;
}

std::vector<ggml_backend_ptr> make_backends() {
    std::vector<ggml_backend_ptr> backends;
    std::vector<ggml_backend_dev_t> devices = devices_of(GGML_BACKEND_DEVICE_TYPE_ACCEL);
    devices.push_back(cpu_device());
    for (ggml_backend_dev_t const device : devices) {
        backends.emplace_back(ggml_backend_dev_init(device, nullptr));
        if (!backends.back()) fail("cannot start device {}", ggml_backend_dev_name(device));
    }
    return backends;
}

void set_threads(ggml_backend_t backend, int n_threads) {
    const auto set = proc_address<ggml_backend_set_n_threads_t>(ggml_backend_get_device(backend),
                                                                "ggml_backend_set_n_threads");
    if (set != nullptr) set(backend, n_threads);
}

void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data) {
    const auto set = proc_address<ggml_backend_set_abort_callback_t>(
        ggml_backend_get_device(backend), "ggml_backend_set_abort_callback");
    if (set != nullptr) set(backend, callback, data);
}

ggml_backend_buffer_type_t choose_buffer_type(const gguf::TensorInfo& info, Use use, bool repack) {
    ggml_backend_dev_t const cpu = cpu_device();
    ggml_backend_buffer_type_t const plain = ggml_backend_dev_buffer_type(cpu);
    for (ggml_backend_dev_t const device : devices_of(GGML_BACKEND_DEVICE_TYPE_ACCEL)) {
        ggml_backend_buffer_type_t const type = ggml_backend_dev_buffer_type(device);
        // An accelerator that works in the CPU's own memory decides nothing.
        if (type != plain && supported(device, type, info, use)) return type;
    }
    if (repack) {
        for (ggml_backend_buffer_type_t const type : extra_buffer_types(cpu)) {
            if (supported(cpu, type, info, use)) return type;
        }
    }
    return plain;
}

}  // namespace pleat

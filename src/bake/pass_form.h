#pragma once

namespace pleat {

/// What of a pass's layer is not in the baked file at all, tensors and metadata: stock then saves
/// its work too. What is dropped but not left out is written with zeros.
struct PassForm {
    bool without_attention = false;
    bool without_ffn = false;
    bool operator==(const PassForm&) const = default;
};

}  // namespace pleat

#pragma once

#include "gguf/file.h"
#include "plan/shape.h"
#include "plan_file/fingerprint.h"

namespace pleat {

/// The fingerprint of a model file: its header, and 256 bytes out of the middle of each of at most
/// 64 tensors, spread evenly over the file. Tens of milliseconds for a large vocabulary.
///
/// tokenizer_sha256 covers tokenizer.ggml.{model,pre,tokens,scores,token_type,merges}, not special
/// ids or the chat template. tensor_types_sha256 covers name, type and shape of every tensor in
/// the order of names. content_sha256 covers the metadata of the architecture (`llama.*`) and the
/// sampled bytes: an edited name or chat template is the same model.
Fingerprint fingerprint_of(const gguf::File& file, const ModelShape& shape);

}  // namespace pleat

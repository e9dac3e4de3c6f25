#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

enum class BakeFormat {
    same,  ///< the model's own architecture; dropped sub-layers stay, with zeroed projections
    deci   ///< stock's deci: a llama whose layers may lack attention (deci.h)
};

struct BakeOptions {
    BakeFormat as = BakeFormat::same;
    bool force = false;  ///< overwrite an existing file
};

struct BakeReport {
    size_t n_pass = 0;
    uint64_t bytes = 0;                 ///< of the file written
    std::vector<std::string> warnings;  ///< one line each
};

/// Writes the plan as a GGUF file of its own that stock runs: one block per pass, in order.
///
/// Tensors
/// - `blk.N.*` is written once for each pass of layer N, under the pass's index, byte for byte;
///   quantised weights are never requantised. Layers that the path leaves out and MTP blocks are
///   not written (or read). All other tensors are copied; of one that holds a slice for every layer
///   each pass gets its layer's.
/// - A dropped sub-layer keeps its tensors, but what ends it (weight and bias of its output
///   projection) becomes the encoding of exact zeros: adding them changes nothing.
/// - [scale=F] multiplies the same tensors by F, [qk=F] those that make the query (the weight of
///   its norm where there is one, else weight and bias of its projection, or the query's rows of a
///   fused one). Only f32, f16 and bf16 can take a factor, but all types can take 0. Beyond the
///   type's range is an Error; rounding is a warning.
///
/// Metadata: order, types and values as in the file, except for
/// - what stock reads off a layer's index (which layers have a window, are recurrent, share K/V):
/// an
///   array with one entry per pass, or the number that says it
/// - `general.architecture` and the prefix of the architecture's keys, as deci
/// - `<arch>.block_count`: the number of passes
/// - `<arch>.nextn_predict_layers`: 0
/// - arrays under the architecture's per_layer_keys: one entry per pass
/// - `<arch>.attention.key_length`, `value_length`: added where they follow from the head count of
///   the first layer and the path begins with another head count
/// - `split.no`, `split.count`, `split.tensors.count`: left out, since the result is one file
/// - `pleat.plan`: added, the plan's canonical text; stock ignores it
/// The tokenizer, the name, size labels and the file type stay.
///
/// Holds no tensor in memory: what is copied goes from the mapping to the file, what is changed
/// through a buffer of a megabyte. Throws Error before anything is written when stock could not run
/// the result, a factor has nowhere to go, `out` is one of the model's own files or exists (without
/// force), or the disk has no room; on any Error `out` is what it was before.
BakeReport bake(const Model& model, const LayerPlan& plan, const std::string& out,
                const BakeOptions& options = {});

/// Throws Error when the plan has more passes than stock takes layers.
void check_stock_takes(const LayerPlan& plan);

}  // namespace pleat

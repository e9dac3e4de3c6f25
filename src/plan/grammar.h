#pragma once

#include <string>
#include <vector>

#include "plan/scanner.h"
#include "plan/spec.h"

namespace pleat {

/// `block(;block)*`, optionally after `blocks:`, appended to `blocks`.
void read_blocks(Scanner& in, std::vector<RepeatBlock>& blocks);

/// `item(,item)*` with marks, optionally after `layers:`, appended to `items`.
void read_path(Scanner& in, std::vector<LayerItem>& items);

/// `item(,item)*` without marks: a set, appended to `items`.
void read_set(Scanner& in, std::vector<LayerItem>& items);

/// `26,34` or `26,34x3`; `7`, `26..33`, `26..` or `26..33[-attn,scale=0.7]`; the marks alone, which
/// are nothing when all are the default. Each reads back as what was printed.
std::string print_block(const RepeatBlock& block);
std::string print_item(const LayerItem& item);
std::string print_marks(const Marks& marks);

}  // namespace pleat

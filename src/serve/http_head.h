#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pleat {

/// The first line and the headers of a request, proved before anything acts on them: what two
/// readers could understand in two ways is refused, so that nobody behind a proxy is fooled.
struct HttpHead {
    std::string method = {};
    std::string target = {};  ///< as sent: begins with '/', printable ASCII
    bool http_1_0 = false;
    std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case
    std::optional<uint64_t> content_length = {};
    bool chunked = false;
    bool close = false;  ///< the client wants no further request on this connection

    std::string_view path() const;  ///< the target without its query, nothing decoded
    /// The first value under a name in lower case; empty: none.
    std::string_view header(std::string_view name) const;
    bool has(std::string_view name) const;
};

/// Of a head's parts; cpp-httplib, which reads the head again, has the same for single headers.
struct HttpHeadLimits {
    size_t uri_bytes = 8 << 10;
    size_t header_bytes = 8 << 10;  ///< of one header
    size_t headers = 100;
};

/// `text` ends with the blank line. Throws RequestError: 400, 414, 431, 501 or 505.
HttpHead parse_http_head(std::string_view text, const HttpHeadLimits& limits = {});

/// The head for whoever handles the request: only headers that a handler needs. What would make
/// cpp-httplib act on its own (ranges, compression, upgrades) and keys are left out.
std::string print_for_handler(const HttpHead& head);

/// Equal but for the case of ASCII letters.
bool same_ignoring_case(std::string_view a, std::string_view b);

}  // namespace pleat

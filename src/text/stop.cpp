#include "text/stop.h"

#include <algorithm>
#include <utility>

namespace pleat {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
    for (std::string& text : stops) {
        if (!text.empty()) stops_.push_back(make_stop(std::move(text)));
    }
}

StopMatcher::Stop StopMatcher::make_stop(std::string text) {
    Stop stop;
    stop.border.assign(text.size() + 1, 0);
    for (size_t i = 1; i < text.size(); ++i) {
        size_t n = stop.border[i];
        while (n > 0 && text[n] != text[i]) n = stop.border[n];
        stop.border[i + 1] = text[n] == text[i] ? n + 1 : 0;
    }
    stop.text = std::move(text);
    return stop;
}

void StopMatcher::advance(Stop& stop, char c) {
    while (stop.matched > 0 && stop.text[stop.matched] != c) {
        stop.matched = stop.border[stop.matched];
    }
    if (stop.text[stop.matched] == c) ++stop.matched;
}

std::string StopMatcher::feed(std::string_view text) {
    if (stopped()) return {};
    std::string out;
    for (const char c : text) {
        held_ += c;
        size_t keep = 0;
        const Stop* found = nullptr;
        for (Stop& stop : stops_) {
            advance(stop, c);
            keep = std::max(keep, stop.matched);
            const bool complete = stop.matched == stop.text.size();
            if (complete && (!found || stop.text.size() > found->text.size())) found = &stop;
        }
        if (found) {
            matched_ = found->text;
            out.append(held_, 0, held_.size() - matched_.size());
            held_.clear();
            return out;
        }
        // Only a shorter match frees bytes, so each byte is moved out once.
        if (held_.size() > keep) {
            out.append(held_, 0, held_.size() - keep);
            held_.erase(0, held_.size() - keep);
        }
    }
    return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace pleat

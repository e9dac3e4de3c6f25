#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/server_process.h"

namespace pleat::test {

/// Stock's llama-server as a child process on a free port of this machine.
class StockServer {
  public:
    /// Starts it with these arguments and waits until it answers. Throws Error when it does not.
    explicit StockServer(std::vector<std::string> arguments);
    ~StockServer();  ///< kills it
    StockServer(const StockServer&) = delete;
    StockServer& operator=(const StockServer&) = delete;

    HttpResponse get(const std::string& path) const;
    HttpResponse post(const std::string& path, const nlohmann::json& body) const;

  private:
    bool answers() const;

    TempFile log_{".log"};
    int port_ = 0;
    pid_t child_ = -1;
};

}  // namespace pleat::test

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "serve/http_socket.h"

namespace pleat {

/// What a connection does; the order is that in which they must make room for others.
enum class ConnectionState : uint8_t {
    idle,     ///< answered, no new request yet
    fresh,    ///< no request yet
    reading,  ///< its request comes
    busy,     ///< its request is worked on
};

class Connections;

/// A connection and its thread. Its socket is shut down by others, but closed by its thread alone.
class Connection {
  public:
    int fd() const { return socket_.fd(); }
    const std::string& client() const { return client_; }
    bool refused() const { return refused_; }  ///< one too many: is to be told so

  private:
    friend class Connections;

    Socket socket_;
    std::string client_;
    bool refused_ = false;
    ConnectionState state_ = ConnectionState::fresh;
    std::chrono::steady_clock::time_point since_ = {};  ///< in this state
    bool dropped_ = false;                              ///< shut down, so about to end
    bool done_ = false;
    std::thread thread_;
};

/// All connections of a server: how many there may be, who has to go for a newcomer, and their end.
class Connections {
  public:
    using Serve = std::function<void(Connection&)>;

    explicit Connections(size_t most) : most_(most) {}
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Runs `serve` on a thread of the connection's own. When there are too many, one that waits
    /// for its client is dropped; when all are busy, the newcomer is refused(); past some dozens
    /// of those it is closed without a word.
    void start(Socket socket, const Serve& serve);

    /// Of the connection's own thread; false when it has been dropped and has to end.
    bool enter(Connection& connection, ConnectionState state);

    /// Takes away those that have ended.
    void reap();
    /// Drops those that have asked for nothing, and from now on each that has been answered.
    void drop_waiting();
    void drop_all();
    /// Drops one that waits, for its file descriptor.
    bool make_room();
    /// Until none is left, taking away those that end; a request that does not come to its end
    /// is not waited for.
    void wait_for_end();
    size_t size() const;

  private:
    bool make_room_locked();
    void drop_those_in(ConnectionState state);
    static void drop(Connection& connection);

    size_t most_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::list<Connection> all_;
    bool closing_ = false;
};

}  // namespace pleat

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "serve/http_socket.h"

namespace pleat {

/// What a connection does.
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

    /// `refusal` is all that a client gets to hear that cannot even be heard out.
    Connections(size_t most, std::string refusal) : most_(most), refusal_(std::move(refusal)) {}
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Runs `serve` on a thread of the connection's own. When there are too many, the one that has
    /// waited longest for its client is dropped; when all are at work, the newcomer is refused();
    /// past some dozens of those it gets the refusal from here, unheard.
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
    void turn_away(Socket socket);
    void drop_those_in(ConnectionState state);
    static void drop(Connection& connection);

    struct Leaving {
        Socket socket;
        std::chrono::steady_clock::time_point since;
    };

    size_t most_;
    std::string refusal_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::list<Connection> all_;
    std::deque<Leaving> leaving_;  ///< turned away, and not closed before they can have read so
    bool closing_ = false;
};

}  // namespace pleat

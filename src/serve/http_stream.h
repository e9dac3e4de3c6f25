#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "serve/http_settings.h"

namespace pleat {

/// One connection as cpp-httplib reads and writes it, with deadlines of our own: a head as a whole,
/// a body with a least speed, a write without progress. The socket is another's and does not block.
class HttpStream final : public httplib::Stream {
  public:
    HttpStream(int fd, const HttpSettings& settings) : fd_(fd), settings_(settings) {}

    /// Waits for a request's first byte; false when none came in time or the client has gone.
    /// `on_input` is called before anything is taken from the socket.
    bool await_request(std::chrono::milliseconds patience, const std::function<void()>& on_input);
    /// The bytes of a request's head with its blank line. Nothing when the client has gone. Throws
    /// RequestError: 400, 408, 414 or 431.
    std::optional<std::string> read_head(std::chrono::milliseconds patience);
    /// What read() gives from here on: `head`, then the body as it comes, from now on timed.
    void begin_body(std::string head);
    bool body_timed_out() const { return body_timed_out_; }
    /// The rest of the body is not wanted: read() gives nothing more of it.
    void end_body() { body_ended_ = true; }

    /// What may be sent at this point of the exchange without changing the answer; empty: nothing.
    /// A client that has ended its sending may still read: whether it does, or has closed, only
    /// comes out when something is sent to it (is_peer_alive()).
    void set_probe(std::string probe) { probe_ = std::move(probe); }
    /// Writes nothing more: nobody reads it.
    void give_up() { given_up_ = true; }

    /// Ends the answer and waits a moment until the client has ended, too: to close while it still
    /// sends would take the answer from it.
    void linger();

    // For cpp-httplib. Those that ask and do not read are const there.
    bool is_readable() const override;
    bool wait_readable() const override;
    bool wait_writable() const override;
    /// Takes one that has ended its sending for alive until the probe says otherwise; without a
    /// probe, for gone.
    bool is_peer_alive() const override;
    ssize_t read(char* to, size_t size) override;
    /// All of it, or -1.
    ssize_t write(const char* from, size_t size) override;
    using Stream::write;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    socket_t socket() const override { return fd_; }
    time_t duration() const override { return 0; }

  private:
    using Clock = std::chrono::steady_clock;
    enum class Wait { ready, timed_out, failed };

    Wait wait_for(short events, Clock::time_point deadline) const;
    /// Takes what there is, waiting for something; 0: the end, negative: an error or the deadline.
    ssize_t receive(char* to, size_t size, Clock::time_point deadline);
    /// Appends to received_; as receive() it returns.
    ssize_t receive_more(Clock::time_point deadline);
    void check_head_so_far() const;

    int fd_;
    const HttpSettings& settings_;
    std::string head_;      ///< yet to be read by cpp-httplib
    std::string received_;  ///< from the client, not yet asked for
    size_t head_read_ = 0;
    size_t received_read_ = 0;
    size_t body_bytes_ = 0;
    Clock::time_point body_begin_ = {};
    bool body_timed_out_ = false;
    bool body_ended_ = false;
    std::string probe_;
    mutable bool probed_ = false;
    bool given_up_ = false;
    bool receive_timed_out_ = false;
};

}  // namespace pleat

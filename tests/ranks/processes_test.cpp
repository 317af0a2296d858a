// processes_test.cpp - ranks as processes that are killed and stopped. Uses a transport of the tests over pairs of
// sockets, because MPI's launchers end the job when a process dies.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>

#include "world.hpp"

namespace lockstep::ranks_test {
namespace {

using clock = std::chrono::steady_clock;

// Bytes through one stream socket a pair: a length, then the message.
struct sockets {
  std::vector<int> to;  // a file descriptor for each process
  struct transfer {
    int32_t peer;
    char* data;
    size_t bytes, done = 0;
    uint64_t length = 0;
    size_t length_done = 0;
    bool sends;
  };
  std::vector<std::deque<transfer*>> sends, receives;
  int messages_to_go = -1;  // then this process dies, in the middle of a call
  int how_to_die = 0;

  // Moves what can be moved without waiting; false: the other side is gone.
  bool progress(transfer& t) {
    const auto some = [&](void* data, size_t bytes, size_t& done) {
      while (done < bytes) {
        char* at = static_cast<char*>(data) + done;
        const int fd = to[static_cast<size_t>(t.peer)];
        const ssize_t n = t.sends ? send(fd, at, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : recv(fd, at, bytes - done, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (n <= 0) return false;
        done += static_cast<size_t>(n);
      }
      return true;
    };
    if (!some(&t.length, sizeof t.length, t.length_done)) return false;
    if (t.length_done < sizeof t.length) return true;
    if (t.length > t.bytes) return false;
    return some(t.data, static_cast<size_t>(t.length), t.done);
  }
  static bool finished(const transfer& t) { return t.length_done == sizeof t.length && t.done == t.length; }

  static int begin(void* user, int32_t peer, void* data, size_t bytes, bool sends, void** request) {
    auto* s = static_cast<sockets*>(user);
    if (sends && s->messages_to_go-- == 0) raise(s->how_to_die);
    auto* t = new transfer{peer, static_cast<char*>(data), bytes, 0, bytes, 0, sends};
    if (!sends) t->length = 0;
    (sends ? s->sends : s->receives)[static_cast<size_t>(peer)].push_back(t);
    *request = t;
    return 0;
  }
  static int isend(void* user, int32_t peer, const void* data, size_t bytes, void** request) {
    return begin(user, peer, const_cast<void*>(data), bytes, true, request);
  }
  static int irecv(void* user, int32_t peer, void* data, size_t bytes, void** request) {
    return begin(user, peer, data, bytes, false, request);
  }
  static int test(void* user, void** request, int* done, size_t* received) {
    auto* s = static_cast<sockets*>(user);
    auto* t = static_cast<transfer*>(*request);
    // In order: the first of each queue moves.
    for (auto* queues : {&s->sends, &s->receives})
      for (auto& q : *queues)
        while (!q.empty() && s->progress(*q.front()) && finished(*q.front())) q.pop_front();
    *done = finished(*t);
    if (*done == 0) return 0;  // one that is gone is silent: the deadline finds it
    *received = t->done;
    delete t;
    *request = nullptr;
    return 0;
  }
  static const char* error(void*, int) { return "no error"; }
  static void close(void*, int) {}
};

enum class death { killed, stopped };

// Ranks as children of this process; a child's exit code is 0 where its expectations held.
void check(int what, death how, bool while_planning, bool at_once) {
  constexpr int32_t ranks = 4, bad = 2;
  constexpr int64_t timeout_ms = 500;
  int pairs[ranks][ranks];
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = a + 1; b < ranks; ++b) {
      int both[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
      pairs[a][b] = both[0], pairs[b][a] = both[1];
    }
  const std::string about = format_text("operation {}, {} {} {}", what, how == death::killed ? "killed" : "stopped",
                                        at_once ? "before" : "while", while_planning ? "planning" : "running");
  std::vector<pid_t> children;
  for (int32_t me = 0; me < ranks; ++me) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    alarm(20);  // a hang is a death too
    sockets mine;
    for (int32_t p = 0; p < ranks; ++p) mine.to.push_back(p == me ? -1 : pairs[me][p]);
    for (int32_t a = 0; a < ranks; ++a)
      for (int32_t b = 0; b < ranks; ++b)
        if (a != b && a != me) ::close(pairs[a][b]);
    mine.sends.resize(ranks), mine.receives.resize(ranks);
    lockstep_engine engine = {sizeof engine,
                              LOCKSTEP_ENGINE_ABI,
                              0,
                              &mine,
                              ranks,
                              me,
                              "sockets",
                              &sockets::isend,
                              &sockets::irecv,
                              &sockets::test,
                              &sockets::error,
                              nullptr,
                              &sockets::close,
                              nullptr};
    lockstep_context_options co = lockstep_context_defaults();
    co.backend = "cpu";
    co.threads = 1;
    lockstep_context* context = nullptr;
    lockstep_comm* comm = nullptr;
    lockstep_comm_options o = lockstep_comm_defaults();
    o.timeout_ms = timeout_ms;
    int code = 0;
    const auto expect = [&](bool so, const char* which) {
      if (so) return;
      std::printf("%s, rank %d: %s: %s\n", about.c_str(), me, which, lockstep_last_error());
      std::fflush(nullptr);
      code = 1;
    };
    expect(lockstep_context_create(&co, &context) == LOCKSTEP_OK, "context");
    expect(lockstep_comm_create(context, &engine, &o, &comm) == LOCKSTEP_OK, "communicator");
    const int64_t shape[] = {3000, 40}, turned[] = {40, 3000};
    const lockstep_grid g = lockstep_grid_slabs(8, 2, shape, ranks), t = lockstep_grid_slabs(8, 2, turned, ranks);
    const int32_t perm[] = {1, 0};
    const double coefficients[] = {1, 2, 3, 4, 5};
    const lockstep_stencil_desc d =
        lockstep_stencil_packed(LOCKSTEP_F64, 2, shape, 1, coefficients, LOCKSTEP_BOUNDARY_WRAP);
    const auto make = [&](lockstep_ranks_plan** plan) {
      if (what == 0) return lockstep_ranks_permute(comm, &g, perm, &t, nullptr, plan);
      if (what == 1)
        return lockstep_ranks_reduce(comm, &g, LOCKSTEP_SUM, LOCKSTEP_F64, LOCKSTEP_F64, 1, nullptr, nullptr, plan);
      const int64_t width[] = {2, 0};
      return what == 2 ? lockstep_ranks_stencil(comm, &g, &d, nullptr, plan)
                       : lockstep_ranks_halo(comm, &g, width, LOCKSTEP_BOUNDARY_WRAP, 0, nullptr, plan);
    };
    std::vector<double> src(3000 * 40, 1.0), dst(3000 * 40);  // ghosts before and behind
    const int64_t wide[] = {40, 3000}, block[] = {750, 40};
    const lockstep_part in = lockstep_part_packed(src.data(), 2, block),
                        out = lockstep_part_packed(dst.data() + 1000, 2, what == 0 ? wide : block);
    lockstep_ranks_plan* plan = nullptr;
    const auto run_once = [&] { return lockstep_ranks_execute(plan, &in, &out, nullptr); };
    // All is well at first.
    expect(make(&plan) == LOCKSTEP_OK, "plan");
    expect(run_once() == LOCKSTEP_OK, "execution");
    mine.how_to_die = how == death::killed ? SIGKILL : SIGSTOP;
    if (me == bad && at_once) raise(mine.how_to_die);
    if (me == bad && !at_once) mine.messages_to_go = 1;
    const auto begin = clock::now();
    lockstep_status status = LOCKSTEP_OK;
    for (int k = 0; k < 6 && status == LOCKSTEP_OK; ++k) {
      lockstep_ranks_plan* more = nullptr;
      status = while_planning ? make(&more) : run_once();
    }
    expect(status == LOCKSTEP_RANK_LOST, "the status after the loss");
    expect(std::string(lockstep_last_error()).find(me == bad ? "closed" : "rank 2") != std::string::npos, "the text");
    expect(me == bad || clock::now() - begin < std::chrono::milliseconds(timeout_ms + 1000), "the time");
    expect(run_once() == LOCKSTEP_RANK_LOST, "the call after that");
    _exit(code);
  }
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = 0; b < ranks; ++b)
      if (a != b) ::close(pairs[a][b]);
  for (int32_t r = 0; r < ranks; ++r) {
    int state = 0;
    if (r == bad) continue;
    ASSERT_EQ(waitpid(children[static_cast<size_t>(r)], &state, 0), children[static_cast<size_t>(r)]);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << about << ", rank " << r << ", state " << state;
  }
  // The stopped one goes on: it finds the communicator closed, and does not hang either.
  if (how == death::stopped) kill(children[bad], SIGCONT);
  int state = 0;
  ASSERT_EQ(waitpid(children[bad], &state, 0), children[bad]);
  const bool fine = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  EXPECT_TRUE(how == death::stopped ? fine : WIFSIGNALED(state)) << about << ", the lost rank, state " << state;
}

TEST(Processes, KilledOrStopped) {
  if (over_mpi()) GTEST_SKIP() << "without MPI only";
  for (const death how : {death::killed, death::stopped})
    for (const bool while_planning : {false, true})
      for (const bool at_once : {false, true})  // or after the first message of the next call
        for (int what = 0; what < 4; ++what) {
          check(what, how, while_planning, at_once);
          if (HasFailure()) return;
        }
}

}  // namespace
}  // namespace lockstep::ranks_test

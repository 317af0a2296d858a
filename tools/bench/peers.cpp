// peers.cpp - see peers.hpp; tools/peers/peer.hpp describes the protocol between bench
// and a peer program.
#include "peers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

extern char** environ;

namespace lockstep::tool::bench {
namespace {
namespace fs = std::filesystem;

// The longest that a program may take over one case: NumPy transposes 16384 squared
// in 2 s, torch.compile may compile for 20.
constexpr auto patience = std::chrono::seconds(120);
// And for ending.
constexpr auto grace = std::chrono::seconds(5);

// Bytes of src and dst of a case that may lie in a core's caches.
constexpr size_t most_of_small = size_t{8} << 20;

// A file in memory that programs inherit: rewritten for each case.
int memory_file(const char* name) { return memfd_create(name, MFD_CLOEXEC); }

bool rewrite(int file, const void* data, size_t bytes) {
  if (ftruncate(file, 0) != 0) return false;
  for (size_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(file, static_cast<const char*>(data) + done, std::min(bytes - done, size_t{1} << 30),
                               static_cast<off_t>(done));
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

// Gives the file other pages. Freed pages are reused first, so something else must hold them meanwhile.
void move_pages(int file, const void* data, size_t bytes) {
  const int holder = memory_file("holder");
  (void)!ftruncate(file, 0);
  if (holder >= 0) (void)rewrite(holder, data, bytes);
  (void)rewrite(file, data, bytes);  // as large as before
  if (holder >= 0) close(holder);
}

// Pins this process and the programs that it starts to the core where it runs. The cores of a virtual machine differ in
// speed, depending on what else the host runs, so ours and a peer must use the same one.
void stay_on_this_core() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(std::max(sched_getcpu(), 0)), &one);
  (void)sched_setaffinity(0, sizeof one, &one);  // a failure makes the comparison less exact, not wrong
}

// The caller's environment without variables that pin all thread pools to one core, or
// that make OpenBLAS use another processor's kernels.
std::vector<char*> environment() {
  constexpr std::string_view dropped[] = {"OMP_PROC_BIND=",     "OMP_PLACES=",       "GOMP_CPU_AFFINITY=",
                                          "OPENBLAS_CORETYPE=", "OPENBLAS_L2_SIZE=", "OPENBLAS_THREAD_TIMEOUT="};
  std::vector<char*> kept;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (std::none_of(std::begin(dropped), std::end(dropped),
                     [&](std::string_view name) { return text.starts_with(name); }))
      kept.push_back(*one);
  }
  kept.push_back(nullptr);
  return kept;
}
}  // namespace

struct peer_crew::program {
  fs::path path;
  std::vector<std::string> arguments;
  pid_t pid = -1;
  int wire = -1;  // its standard input and output
  bool answered = false;
  bool away = false;   // it has nothing for this backend, or does not start
  std::string unread;  // output not read yet

  ~program() { stop(false); }

  bool start(int src_file, int want_file, int sides_file) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Through numbers above all five, so that none is overwritten before it is copied.
    const int from[5] = {ends[1], ends[1], src_file, want_file, sides_file}, to[5] = {0, 1, 3, 4, 5};
    for (int k = 0; k < 5; ++k) posix_spawn_file_actions_adddup2(&actions, from[k], 100 + k);
    for (int k = 0; k < 5; ++k) posix_spawn_file_actions_adddup2(&actions, 100 + k, to[k]);
    for (int k = 0; k < 5; ++k) posix_spawn_file_actions_addclose(&actions, 100 + k);
    std::string name = path.string();
    std::vector<char*> words = {name.data()};
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    const int error = posix_spawn(&pid, name.c_str(), &actions, nullptr, words.data(), environment().data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    wire = ends[0];
    unread.clear();
    if (error != 0) pid = -1, stop(false);
    return error == 0;
  }

  // Returns its exit status. Without its wire it ends by itself, unless a library of its does not let it.
  int stop(bool kill_it) {
    if (wire >= 0) close(wire);
    wire = -1;
    int status = 0;
    if (pid > 0) {
      const auto until = std::chrono::steady_clock::now() + (kill_it ? std::chrono::seconds(0) : grace);
      while (std::chrono::steady_clock::now() < until && waitpid(pid, &status, WNOHANG) == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
      }
    }
    pid = -1;
    return status;
  }

  // The next line that it wrote; false at its end or when the time is up.
  bool next_line(std::string& line, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      if (const size_t end = unread.find('\n'); end != std::string::npos) {
        line = unread.substr(0, end);
        unread.erase(0, end + 1);
        return true;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      pollfd ready{wire, POLLIN, 0};
      if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
      char part[4096];
      const ssize_t got = recv(wire, part, sizeof part, 0);
      if (got <= 0) return false;
      unread.append(part, static_cast<size_t>(got));
    }
  }
};

peer_crew::peer_crew(const options& asked, const std::string& backend, report& out)
    : out_(out),
      on_cpu_(backend == "cpu"),
      one_core_(backend == "cpu" && asked.where.threads == 1),
      sample_(asked.sample >= 0) {
  if (one_core_) stay_on_this_core();
  src_file_ = memory_file("src"), want_file_ = memory_file("want"), sides_file_ = memory_file("sides");
  std::error_code failed;
  for (const auto& item : fs::directory_iterator(asked.peers, failed)) {
    const std::string name = item.path().filename().string();
    if (!name.starts_with("peer_") || name.find('.') != std::string::npos || !item.is_regular_file(failed)) continue;
    auto one = std::make_unique<program>();
    one->path = fs::absolute(item.path());
    one->arguments = {"--backend", backend,
                      "--threads", std::to_string(asked.where.threads),
                      "--seconds", format_text("{}", asked.seconds > 0 ? asked.seconds : 0.3)};
    if (asked.cold) one->arguments.push_back("--cold");
    if (sample_) one->arguments.push_back("--sample");
    programs_.push_back(std::move(one));
  }
  if (failed || programs_.empty())
    fail("--peers {}: no peer programs there; build with -Dpeers=enabled and name build/tools/peers", asked.peers);
  std::sort(programs_.begin(), programs_.end(), [](const auto& a, const auto& b) { return a->path < b->path; });
}

peer_crew::~peer_crew() {
  programs_.clear();
  if (src_file_ >= 0) close(src_file_);
  if (want_file_ >= 0) close(want_file_);
  if (sides_file_ >= 0) close(sides_file_);
}

bool peer_crew::take_turns(program& one, const sampler& again, const void* src, const result& ours, size_t most,
                           way& theirs) {
  // 20 ms for each side of a round, because many short measurements pair better than few long ones. With several
  // threads there is a pause before each, in which the other's idle threads fall asleep: libgomp's spin for 10 ms. With
  // one thread there is none, because a core that slept starts slowly. A device's samples are means of up to 50 calls,
  // queued behind as long a pause: fewer do.
  const int32_t count = std::clamp(static_cast<int32_t>(20 / std::max(ours.time.median, 0.05)), 1, on_cpu_ ? 100 : 20);
  const auto quiet = [&] {
    if (on_cpu_ && !one_core_) std::this_thread::sleep_for(std::chrono::milliseconds(15));
  };
  const std::string request = format_text("{}\n", count);
  const auto median = [](std::vector<double> ms) { return summarise(std::move(ms)).median; };
  while (theirs.ratios.size() < most && due(theirs.ratios)) {
    std::vector<double> mine, its;
    for (const bool my_turn : {theirs.ratios.size() % 2 == 0, theirs.ratios.size() % 2 == 1}) {
      quiet();
      if (my_turn) {
        mine = again(count, src);
        continue;
      }
      (void)send(one.wire, request.data(), request.size(), MSG_NOSIGNAL);  // that it is gone shows below
      std::string line;
      if (!one.next_line(line, std::chrono::steady_clock::now() + patience)) return false;
      const auto answer = nlohmann::json::parse(line, nullptr, false);
      if (!answer.is_object() || !answer.contains("ms")) return false;
      its = answer["ms"].get<std::vector<double>>();
    }
    if (mine.empty() || its.empty()) return false;
    theirs.rounds.push_back({median(mine), median(its)});
    theirs.ratios.push_back(theirs.rounds.back()[1] / theirs.rounds.back()[0]);
    theirs.ms.insert(theirs.ms.end(), its.begin(), its.end());
  }
  (void)send(one.wire, "0\n", 2, MSG_NOSIGNAL);
  return true;
}

bool peer_crew::due(const std::vector<double>& ratios) const {
  return sample_ ? ratios.size() < sample_rounds : more_rounds_due(ratios);
}

void peer_crew::measure(const result& ours, const std::vector<double>& numbers, data src_data, data want, data sides,
                        const sampler& again) {
  const void* const src = src_data.data();
  const size_t src_bytes = src_data.size(), want_bytes = want.size();
  if (!rewrite(src_file_, src, src_bytes) || !rewrite(want_file_, want.data(), want_bytes) ||
      !rewrite(sides_file_, sides.data(), sides.size())) {
    out_.skipped.push_back(format_text("{}: no memory to hand its data to the peers", ours.name));
    return;
  }
  std::string request = format_text("{} {}", ours.name, ours.time.median);
  for (const double one : numbers) request += format_text(" {}", one);
  request += '\n';
  // The time of a small case depends by up to 5 % on which cache sets its pages share. So the rounds are divided into
  // groups, each with other pages of src. Each look (verdict.hpp) has as many groups.
  const size_t sittings = !on_cpu_ || src_bytes + want_bytes > most_of_small ? 1 : sample_ ? 3 : 9;
  const std::vector<size_t> rounds =
      sample_ ? std::vector<size_t>{sample_rounds} : std::vector<size_t>(std::begin(looks), std::end(looks));
  std::vector<way> ways;
  size_t before = 0;
  for (const size_t look : rounds) {
    for (size_t k = 1; k <= sittings; ++k) {
      const bool begun = before > 0 || k > 1;
      if (begun && std::none_of(ways.begin(), ways.end(), [&](const way& w) { return open(w); })) break;
      if (begun && sittings > 1) move_pages(src_file_, src, src_bytes);
      // In alternating rounds ours reads the same pages that the programs map, because two copies of one array can
      // differ in speed by up to 9 %.
      void* const pages =
          mmap(nullptr, std::max<size_t>(src_bytes, 1), PROT_READ, MAP_SHARED | MAP_POPULATE, src_file_, 0);
      sit(ours, request, pages != MAP_FAILED ? pages : src, again, before + (look - before) * k / sittings, ways);
      if (pages != MAP_FAILED) munmap(pages, std::max<size_t>(src_bytes, 1));
    }
    before = look;
  }
  for (way& w : ways) {
    result r = ours;
    r.source = r.variant = w.name;
    r.checked = w.checked;
    r.time = summarise(std::move(w.ms), w.turns ? "turns" : "peer");
    if (w.turns) r.beside = pair_up(w.ratios), r.beside.against = ours.variant, r.rounds_ms = std::move(w.rounds);
    out_.results.push_back(std::move(r));
  }
  // Its pages are not needed until the next case.
  (void)!ftruncate(src_file_, 0);
  (void)!ftruncate(want_file_, 0);
  (void)!ftruncate(sides_file_, 0);
}

void peer_crew::sit(const result& ours, const std::string& request, const void* src, const sampler& again, size_t most,
                    std::vector<way>& ways) {
  const bool first = ways.empty();
  for (const auto& one : programs_) {
    const std::string name = one->path.filename().string();
    const auto may_change = [&](const way& w) { return w.of == one.get() && open(w); };
    if (one->away || (!first && std::none_of(ways.begin(), ways.end(), may_change))) continue;
    const auto failed = [&](const std::string& why) {
      out_.skipped.push_back(format_text("{} by {}: {}", ours.name, name, why));
    };
    if (one->pid < 0 && !one->start(src_file_, want_file_, sides_file_)) {
      failed(format_text("it cannot be started: {}", std::strerror(errno)));
      one->away = true;
      continue;
    }
    (void)send(one->wire, request.data(), request.size(), MSG_NOSIGNAL);  // that it is gone shows below
    auto deadline = std::chrono::steady_clock::now() + patience;
    std::string line;
    bool done = false;
    while (!done && one->next_line(line, deadline)) {
      deadline = std::chrono::steady_clock::now() + patience;
      const auto answer = nlohmann::json::parse(line, nullptr, false);
      if (answer.is_discarded() || !answer.is_object()) continue;
      done = answer.contains("done");
      if (answer.value("name", ours.name) != ours.name) continue;  // for an earlier case that was aborted
      const bool waits = answer.value("waits", false);
      if (!answer.contains("peer") || !(waits || answer.contains("ms"))) continue;
      const std::string peer = answer["peer"].get<std::string>();
      auto known = std::find_if(ways.begin(), ways.end(), [&](const way& w) { return w.name == peer; });
      if (known == ways.end())
        known = ways.insert(known, {one.get(), peer, answer.value("checked", "not checked"), waits});
      if (waits && !take_turns(*one, again, src, ours, most, *known)) {
        ways.erase(known);
        break;
      }
      if (waits) continue;
      known->ms = answer["ms"].get<std::vector<double>>();
      if (!known->ms.empty()) continue;
      failed(format_text("{}: {}", known->name, known->checked));
      ways.erase(known);
    }
    one->answered |= done;
    if (done) continue;
    const bool late = std::chrono::steady_clock::now() >= deadline;
    const int status = one->stop(late);
    one->away = !one->answered && !late;     // else it is started again for the next case
    if (one->away && status == 0) continue;  // it has nothing for this backend
    if (one->away && WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      out_.skipped.push_back(format_text("{}: SKIP: a library that it needs is not installed (it says which)", name));
      continue;
    }
    failed(late                  ? "it took too long"
           : WIFSIGNALED(status) ? format_text("it died of signal {}", WTERMSIG(status))
                                 : format_text("it ended with exit code {}", WEXITSTATUS(status)));
  }
}

}  // namespace lockstep::tool::bench

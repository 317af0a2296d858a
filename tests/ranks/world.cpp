// world.cpp - see world.hpp.
#include "world.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <numeric>
#include <sstream>

#if defined(LOCKSTEP_TEST_MPI)
#include "lockstep/ranks_mpi.h"
#endif

namespace lockstep::ranks_test {

namespace {
std::vector<std::string> listed(const char* variable) {
  std::vector<std::string> words;
  const char* text = std::getenv(variable);
  std::istringstream in(text != nullptr ? text : "");
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}
const char* plane() { return std::getenv("LOCKSTEP_TEST_PLANE"); }
}  // namespace

bool devices_usable(std::string& why) {
  lockstep_context* context = nullptr;
  if (lockstep_context_create(nullptr, &context) != LOCKSTEP_OK) return false;
  for (const std::string& name : listed("LOCKSTEP_TEST_DEVICES"))
    if (lockstep_context_set_backend(context, name.c_str()) != LOCKSTEP_OK) why = lockstep_last_error();
  lockstep_context_destroy(context);
  return why.empty();
}

bool plane_takes(size_t ranks) {
  return plane() == nullptr || std::string(plane()) != "nccl" || ranks <= listed("LOCKSTEP_TEST_DEVICES").size();
}

std::vector<int32_t> one_each(int32_t ranks) { return std::vector<int32_t>(static_cast<size_t>(ranks), 1); }

std::vector<int32_t> draw_parts(size_t axes, int32_t ranks, std::mt19937_64& draw) {
  std::vector<int32_t> parts(axes, 1);
  int32_t left = ranks;
  for (size_t k = 0; k < axes; ++k) {
    const size_t i = (k + draw() % axes) % axes;
    if (parts[i] != 1) continue;
    parts[i] = draw() % 3 == 0 ? left : static_cast<int32_t>(1 + draw() % static_cast<uint64_t>(left));
    left /= parts[i];
  }
  return parts;
}

std::vector<int32_t> drawn_seats(int32_t ranks, std::mt19937_64& draw) {
  std::vector<int32_t> seats;
  for (int32_t left = ranks; left > 0; left -= seats.back())
    seats.push_back(static_cast<int32_t>(1 + draw() % static_cast<uint64_t>(left)));
  return seats;
}

#if defined(LOCKSTEP_TEST_MPI)
bool over_mpi() { return true; }
std::vector<int32_t> rank_counts() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return {ranks};
}
#else
bool over_mpi() { return false; }
std::vector<int32_t> rank_counts() {
  std::vector<int32_t> counts;
  for (const std::string& n : listed("LOCKSTEP_TEST_RANKS"))
    if (plane_takes(static_cast<size_t>(std::atoi(n.c_str())))) counts.push_back(std::atoi(n.c_str()));
  return counts.empty() ? std::vector<int32_t>{1, 2, 3, 4, 5, 7, 8, 13, 17} : counts;
}
#endif

namespace {
// A process of a run: its own names, so that they outlive the communicator.
struct process_of_run {
  lockstep_context* context = nullptr;
  lockstep_comm* comm = nullptr;
  std::vector<std::string> names;  // backends of its seats

  void open(
      int32_t process, int32_t first, int32_t seats, const changes& with,
      const std::function<lockstep_status(lockstep_context*, const lockstep_comm_options*, lockstep_comm**)>& make) {
    lockstep_context_options co = lockstep_context_defaults();
    co.backend = "cpu";
    co.threads = 1;
    if (with.context) with.context(process, co);
    ASSERT_EQ(lockstep_context_create(&co, &context), LOCKSTEP_OK) << lockstep_last_error();
    lockstep_comm_options o = lockstep_comm_defaults();
    o.seats = seats;
    names.resize(static_cast<size_t>(seats));
    std::vector<const char*> backends;
    const std::vector<std::string> all = listed("LOCKSTEP_TEST_DEVICES");
    for (size_t s = 0; s < names.size() && !all.empty(); ++s) {
      names[s] = all[(static_cast<size_t>(first) + s) % all.size()];
      backends.push_back(names[s].c_str());
    }
    if (!all.empty()) o.backends = backends.data();
    o.data = plane();
    o.message_bytes = with.message_bytes;
    if (with.options) with.options(process, o);
    EXPECT_EQ(make(context, &o, &comm), LOCKSTEP_OK) << lockstep_last_error();
  }
  void run(int32_t process, const std::function<void(member&)>& body) {
    if (comm == nullptr) return;
    lockstep_comm_info info{};
    info.size = sizeof info;
    EXPECT_EQ(lockstep_comm_get(comm, &info), LOCKSTEP_OK);
    member m{comm, context, process, info.rank, info.seats, info.ranks, names};
    body(m);
  }
  bool is_open() const {
    lockstep_comm_info info{};
    info.size = sizeof info;
    return comm != nullptr && lockstep_comm_get(comm, &info) == LOCKSTEP_OK && info.closed == 0;
  }
  void close() {
    lockstep_comm_destroy(std::exchange(comm, nullptr));
    lockstep_context_destroy(std::exchange(context, nullptr));
  }
};

// The processes of this program, which are threads or, over MPI, itself.
using processes = std::vector<process_of_run>;
void in_each(processes& all, const std::function<void(int32_t process, process_of_run&)>& body) {
  if (all.size() == 1 && over_mpi()) return body(0, all[0]);
  std::vector<std::thread> threads;
  for (size_t q = 0; q < all.size(); ++q) threads.emplace_back([&, q] { body(static_cast<int32_t>(q), all[q]); });
  for (std::thread& t : threads) t.join();
}

struct kept_run {
  std::vector<int32_t> seats;
  int64_t message_bytes;
  processes all;
};
constexpr size_t most_kept = 20;
// One rank a process, all in one, or two processes: each division has a communicator of its own to be kept.
std::vector<int32_t> few_divisions(const std::vector<int32_t>& seats) {
  const int32_t ranks = std::accumulate(seats.begin(), seats.end(), 0);
  if (seats.size() == 1 || std::ssize(seats) == ranks) return seats;
  return {ranks - ranks / 2, ranks / 2};
}
std::deque<kept_run>& kept_runs() {
  static std::deque<kept_run> all;
  return all;
}
void close(processes& all) {
  in_each(all, [](int32_t, process_of_run& p) { p.close(); });
}

void open(processes& all, const std::vector<int32_t>& seats, const changes& with) {
#if defined(LOCKSTEP_TEST_MPI)
  static_cast<void>(seats);
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  all.resize(1);
  all[0].open(me, me, 1, with, [&](lockstep_context* c, const lockstep_comm_options* o, lockstep_comm** out) {
    return lockstep_comm_from_mpi(c, MPI_COMM_WORLD, o, out);
  });
#else
  all.resize(seats.size());
  std::vector<lockstep_engine> engines(seats.size());
  ASSERT_EQ(lockstep_engine_local(static_cast<int32_t>(seats.size()), engines.data()), LOCKSTEP_OK)
      << lockstep_last_error();
  in_each(all, [&](int32_t q, process_of_run& p) {
    lockstep_engine engine = engines[static_cast<size_t>(q)];
    if (with.engine) with.engine(q, engine);
    p.open(q, std::accumulate(seats.begin(), seats.begin() + q, 0), seats[static_cast<size_t>(q)], with,
           [&](lockstep_context* c, const lockstep_comm_options* o, lockstep_comm** out) {
             const lockstep_status status = lockstep_comm_create(c, &engine, o, out);
             if (status != LOCKSTEP_OK) engine.close(engine.user, 0);
             return status;
           });
  });
#endif
}
}  // namespace

void close_kept() {
  for (kept_run& k : kept_runs()) close(k.all);
  kept_runs().clear();
}

void run(const std::vector<int32_t>& given, const std::function<void(member&)>& body, const changes& with) {
  std::vector<int32_t> seats = given;
  // Planes without the host are those of ranks of one process, nccl that of ranks of several.
  const std::string named = plane() != nullptr ? plane() : "";
  if (named == "nccl" && seats.size() == 1) seats = one_each(seats[0]);
  if (named == "direct" || named == "engine") seats = {std::accumulate(given.begin(), given.end(), 0)};
  if (const int32_t ranks = std::accumulate(seats.begin(), seats.end(), 0);
      !over_mpi() && !plane_takes(static_cast<size_t>(ranks)))
    GTEST_SKIP() << "NCCL takes one rank a GPU; LOCKSTEP_TEST_DEVICES lists fewer than " << ranks;
  int32_t process = 0;
#if defined(LOCKSTEP_TEST_MPI)
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  seats = {1};
  MPI_Barrier(MPI_COMM_WORLD);  // who slept through the last communicator's end must not miss this one's deadline
#endif
  const auto use = [&](int32_t q, process_of_run& p) { p.run(over_mpi() ? process : q, body); };
  if (!with.only_sizes() || listed("LOCKSTEP_TEST_DEVICES").empty()) {
    processes all;
    open(all, seats, with);
    return in_each(all, [&](int32_t q, process_of_run& p) {
      use(q, p);
      p.close();  // at once: how the others hear of it is tested
    });
  }
  if (!over_mpi()) seats = few_divisions(seats);
  std::deque<kept_run>& kept = kept_runs();
  auto found = std::find_if(kept.begin(), kept.end(), [&](const kept_run& k) {
    return k.seats == seats && k.message_bytes == with.message_bytes;
  });
  if (found == kept.end()) {
    if (kept.size() == most_kept) close(kept.front().all), kept.pop_front();
    found = kept.insert(kept.end(), {seats, with.message_bytes, {}});
    open(found->all, seats, with);
  }
  in_each(found->all, use);
  const auto is_open = [](const process_of_run& p) { return p.is_open(); };
  int good = std::all_of(found->all.begin(), found->all.end(), is_open) && !testing::Test::HasFailure();
#if defined(LOCKSTEP_TEST_MPI)
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
#endif
  if (good != 0) return;
  close(found->all);
  kept.erase(found);
}

std::vector<unsigned char> told_to_all(const std::function<std::vector<unsigned char>()>& make) {
#if defined(LOCKSTEP_TEST_MPI)
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<unsigned char> bytes;
  if (me == 0) bytes = make();
  auto size = static_cast<int64_t>(bytes.size());
  MPI_Bcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  bytes.resize(static_cast<size_t>(size));
  MPI_Bcast(bytes.data(), static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD);
  return bytes;
#else
  return make();
#endif
}

std::vector<unsigned char> data_of(lockstep_dtype dtype, int64_t n, const char* fill, uint64_t seed) {
  const std::string what = *fill != '\0' ? std::string("/") + fill : "";
  const cases::test_case c = cases::parse(format_text("square_sum/ssq/{}/full/{}{}/seed{}",
                                                      cases::dtype_names()[static_cast<size_t>(dtype)], n, what, seed));
  return told_to_all([&] {
    std::vector<unsigned char> bytes(static_cast<size_t>(n) * lockstep_dtype_bytes(dtype));
    if (n != 0) cases::fill_src(c, bytes.data());
    return bytes;
  });
}

const lockstep_grid* drawn_grid::get() {
  for (int k = 0; k < g.rank; ++k) g.cuts[k] = cuts[k].empty() ? nullptr : cuts[k].data();
  g.order = order.empty() ? nullptr : order.data();
  return &g;
}

drawn_grid draw_grid(size_t element_bytes, const std::vector<int64_t>& shape, const std::vector<int32_t>& parts,
                     int32_t ranks, std::mt19937_64& draw) {
  drawn_grid d;
  d.g.size = sizeof d.g;
  d.g.element_bytes = element_bytes;
  d.g.rank = static_cast<int32_t>(shape.size());
  int32_t blocks = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    const int64_t n = d.g.shape[k] = shape[k];
    const int32_t p = d.g.parts[k] = parts[k];
    blocks *= p;
    auto& cuts = d.cuts[k];
    const auto how = static_cast<sort>(draw() % 6);
    d.text += format_text("axis {}: {} by {}, cuts", k, n, p);
    if (how != sort::even) {
      for (int32_t j = 0; j <= p; ++j) {
        int64_t c = n * j / p;
        if (how == sort::uneven || how == sort::empty_parts)
          c = static_cast<int64_t>(draw() % (static_cast<uint64_t>(n) + 1));
        if (how == sort::one_holds_all) c = j <= p / 2 ? 0 : n;
        if (how == sort::single_elements) c = std::min<int64_t>(j, n);
        cuts.push_back(c);
      }
      if (how == sort::empty_parts)
        for (int32_t j = 1; j < p; ++j)
          if (draw() % 2 == 0) cuts[static_cast<size_t>(j)] = cuts[static_cast<size_t>(j) - 1];
      cuts.front() = 0;
      cuts.back() = n;
      std::sort(cuts.begin(), cuts.end());
    }
    for (const int64_t c : cuts) d.text += format_text(" {}", c);
    d.text += cuts.empty() ? " even; " : "; ";
  }
  if (draw() % 2 == 0) {  // any ranks, in any order
    std::vector<int32_t> all;
    for (int32_t r = 0; r < ranks; ++r) all.push_back(r);
    std::shuffle(all.begin(), all.end(), draw);
    d.order.assign(all.begin(), all.begin() + blocks);
    d.text += "order";
    for (const int32_t r : d.order) d.text += format_text(" {}", r);
  }
  return d;
}

block::block(const lockstep_grid& g, int32_t rank, bool padded) : bytes_(g.element_bytes) {
  low.resize(LOCKSTEP_MAX_RANK), length.resize(LOCKSTEP_MAX_RANK);
  EXPECT_EQ(lockstep_grid_box(&g, rank, low.data(), length.data()), LOCKSTEP_OK) << lockstep_last_error();
  low.resize(static_cast<size_t>(g.rank)), length.resize(static_cast<size_t>(g.rank));
  place(padded);
}

block::block(size_t element_bytes, const std::vector<int64_t>& lengths, bool padded)
    : low(lengths.size(), 0), length(lengths), bytes_(element_bytes) {
  place(padded);
}

void block::place(bool padded) {
  part.size = sizeof part;
  int64_t stride = 1;
  for (size_t k = length.size(); k-- > 0;) {
    part.strides[k] = stride;
    stride *= std::max<int64_t>(length[k], 1) + (padded && k > 0 ? static_cast<int64_t>(k % 2 + 1) : 0);
    elements *= length[k];
  }
  memory.resize((static_cast<size_t>(stride) + 2) * bytes_);
  // Noise repeats after some elements, which takes a tenth of the time.
  const size_t fresh = std::min(memory.size(), 1024 * bytes_);
  cases::poison(memory.data(), fresh, bytes_, 7);
  for (size_t have = fresh; have < memory.size(); have += fresh)
    std::memcpy(memory.data() + have, memory.data(), std::min(fresh, memory.size() - have));
  before_ = memory;
  part.data = elements == 0 ? nullptr : memory.data() + bytes_;
}

namespace {
// visit(offset in the whole, offset in the block, elements) for each row, whose elements lie side by side.
template <class Visit>
void each_row(const std::vector<int64_t>& shape, const std::vector<int64_t>& low, const std::vector<int64_t>& length,
              const int64_t* strides, int64_t elements, const Visit& visit) {
  for (int64_t i = 0; i < elements; i += length.back()) {
    int64_t left = i, whole = 0, here = 0, step = 1;
    for (size_t k = length.size(); k-- > 0;) {
      const int64_t x = left % length[k];
      left /= length[k];
      whole += (low[k] + x) * step;
      here += x * strides[k];
      step *= shape[k];
    }
    visit(static_cast<size_t>(whole), static_cast<size_t>(here), static_cast<size_t>(length.back()));
  }
}
}  // namespace

void block::fill(const lockstep_grid& g, const unsigned char* whole) {
  each_row(std::vector<int64_t>(g.shape, g.shape + g.rank), low, length, part.strides, elements,
           [&](size_t a, size_t b, size_t n) {
             std::memcpy(memory.data() + (b + 1) * bytes_, whole + a * bytes_, n * bytes_);
           });
}

std::string block::compare(const std::vector<int64_t>& shape, const unsigned char* whole) const {
  std::vector<unsigned char> want = before_;
  std::string text;
  each_row(shape, low, length, part.strides, elements, [&](size_t a, size_t b, size_t n) {
    std::memcpy(want.data() + (b + 1) * bytes_, whole + a * bytes_, n * bytes_);
    for (size_t i = 0; text.empty() && i < n; ++i)
      if (std::memcmp(memory.data() + (b + i + 1) * bytes_, whole + (a + i) * bytes_, bytes_) != 0)
        text = format_text("element {} of the whole differs", a + i);
  });
  if (text.empty() && want != memory) text = "memory between or around the elements was written";
  return text;
}

mirror::mirror(const member& m, int32_t seat, void* memory, size_t bytes)
    : context_(m.context), backend_(m.backends[static_cast<size_t>(seat)]), memory_(memory), bytes_(bytes) {
  if (backend_.empty() || backend_ == "cpu" || bytes == 0) return;
  // Without a named plane memory may be anywhere: some stays where it is.
  thread_local unsigned count = 0;
  if (plane() == nullptr && ++count % 7 == 0) return;
  EXPECT_EQ(lockstep_alloc(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes, &copy_), LOCKSTEP_OK)
      << lockstep_last_error();
  if (copy_ == nullptr) return;
  EXPECT_EQ(lockstep_copy(context_, backend_.c_str(), memory, copy_, bytes), LOCKSTEP_OK) << lockstep_last_error();
}

mirror::~mirror() {
  if (copy_ == nullptr) return;
  EXPECT_EQ(lockstep_free(context_, backend_.c_str(), LOCKSTEP_DEVICE, bytes_, copy_), LOCKSTEP_OK);
}

lockstep_part mirror::of(lockstep_part p) const {
  if (p.data != nullptr && copy_ != nullptr)
    p.data = static_cast<char*>(copy_) + (static_cast<char*>(p.data) - static_cast<char*>(memory_));
  return p;
}

void mirror::back() const {
  if (copy_ == nullptr) return;
  EXPECT_EQ(lockstep_copy(context_, backend_.c_str(), copy_, memory_, bytes_), LOCKSTEP_OK) << lockstep_last_error();
}

lockstep_status execute(const member& m, lockstep_ranks_plan* plan, std::vector<block>* from, std::vector<block>* to,
                        const lockstep_options* options) {
  std::vector<std::unique_ptr<mirror>> mirrors;
  const auto parts = [&](std::vector<block>* blocks) {
    std::vector<lockstep_part> all;
    for (size_t s = 0; blocks != nullptr && s < blocks->size(); ++s) {
      block& b = (*blocks)[s];
      mirrors.push_back(
          std::make_unique<mirror>(m, static_cast<int32_t>(s) % m.seats, b.memory.data(), b.memory.size()));
      all.push_back(mirrors.back()->of(b.part));
    }
    return all;
  };
  const std::vector<lockstep_part> src = parts(from), dst = to == from ? src : parts(to);  // in place
  const lockstep_status status =
      lockstep_ranks_execute(plan, from != nullptr ? src.data() : nullptr, dst.data(), options);
  const std::string text = lockstep_last_error();
  for (const auto& one : mirrors) one->back();
  mirrors.clear();
  lockstep_set_error(text.c_str());
  return status;
}

}  // namespace lockstep::ranks_test

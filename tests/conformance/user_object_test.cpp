// User objects: who holds references to them, and when the last one goes. Their destructors run on
// a thread of the driver's, so a case waits for one with a deadline, and asserts that one has not
// run only while a reference is held.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "graph_support.hpp"

using namespace conformance;

namespace {

/// A user object that says when it is gone.
class Object {
 public:
  explicit Object(unsigned references = 1) {
    REQUIRE_OK(api().cuUserObjectCreate(&handle_, this, destroy, references,
                                        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  // A case that ended early may leave a reference with a graph that dies after this.
  ~Object() { static_cast<void>(wait()); }

  operator CUuserObject() const noexcept { return handle_; }  // NOLINT: reads as the handle itself

  [[nodiscard]] bool gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  /// Whether it goes within some seconds.
  [[nodiscard]] bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(5), [this] { return gone_; });
  }

 private:
  static void CUDA_CB destroy(void* object) {
    auto& self = *static_cast<Object*>(object);
    const std::lock_guard lock(self.mutex_);
    self.gone_ = true;
    self.changed_.notify_all();
  }

  CUuserObject handle_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool gone_ = false;
};

/// Makes the caller's one reference the graph's.
void move_into(CUgraph graph, CUuserObject object) {
  REQUIRE_OK(api().cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "UOB-01: the destructor runs when the last reference goes [H]") {
  Object object;
  CHECK(!object.gone());
  CHECK_CODE(api.cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-02: references are counted [H]") {
  Object object(2);
  CHECK_CODE(api.cuUserObjectRetain(object, 3), CUDA_SUCCESS);
  CHECK_CODE(api.cuUserObjectRelease(object, 4), CUDA_SUCCESS);
  CHECK(!object.gone());
  CHECK_CODE(api.cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-03: a count of zero and a missing flag are refused with 1 [H]") {
  Object object;
  CUuserObject none = nullptr;
  int place = 0;
  const Graph graph = Graph::make();
  CHECK_CODE(api.cuUserObjectRetain(object, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuUserObjectRelease(object, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphRetainUserObject(graph, object, 0, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphReleaseUserObject(graph, object, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuUserObjectCreate(&none, &place, count_up, 1, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK(!object.gone());
  CHECK_CODE(api.cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-04: a graph may take references beside the caller's [H]") {
  Object object;
  {
    const Graph graph = Graph::make();
    CHECK_CODE(api.cuGraphRetainUserObject(graph, object, 1, 0), CUDA_SUCCESS);
    CHECK_CODE(api.cuUserObjectRelease(object, 1), CUDA_SUCCESS);
    CHECK(!object.gone());
  }
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-05: a graph may take the caller's references over [H]") {
  Object object;
  {
    const Graph graph = Graph::make();
    move_into(graph, object);
    CHECK(!object.gone());
  }
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-06: a graph may give its references up [H]") {
  Object object;
  const Graph graph = Graph::make();
  move_into(graph, object);
  CHECK_CODE(api.cuGraphReleaseUserObject(graph, object, 1), CUDA_SUCCESS);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-07: an executable has a reference of its own [G]") {
  const Stream stream;
  const Memory memory;
  Object object;
  Exec exec;
  {
    const Graph graph = Graph::make();
    add_fill(graph, {}, memory, 7);
    move_into(graph, object);
    REQUIRE_OK(api.cuGraphInstantiateWithFlags(exec.out(), graph, 0));
  }
  run(exec, stream);
  CHECK(!object.gone());
  CHECK_CODE(api.cuGraphExecDestroy(exec.take()), CUDA_SUCCESS);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-08: an object lives until the last launch has finished [G]") {
  const Stream stream;
  const Memory memory;
  Object object;
  Exec exec;
  {
    const Graph graph = Graph::make();
    add_fill(graph, {}, memory, 8);
    move_into(graph, object);
    REQUIRE_OK(api.cuGraphInstantiateWithFlags(exec.out(), graph, 0));
  }
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    REQUIRE_OK(api.cuGraphExecDestroy(exec.take()));
    CHECK(!object.gone());
  }
  CHECK(memory.word() == 8);
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-09: a clone has a copy of each reference [G]") {
  Object object;
  {
    Graph clone;
    {
      const Graph graph = Graph::make();
      move_into(graph, object);
      REQUIRE_OK(api.cuGraphClone(clone.out(), graph));
    }
    CHECK(!object.gone());
  }
  CHECK(object.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-10: an update puts the new graph's references in place [G]") {
  const Memory memory;
  Object before;
  Object after;
  Exec exec;
  {
    const Graph graph = Graph::make();
    add_fill(graph, {}, memory, 1);
    move_into(graph, before);
    REQUIRE_OK(api.cuGraphInstantiateWithFlags(exec.out(), graph, 0));
  }
  {
    const Graph graph = Graph::make();
    add_fill(graph, {}, memory, 2);
    move_into(graph, after);
    CUgraphExecUpdateResultInfo told{};
    REQUIRE_OK(api.cuGraphExecUpdate_v2(exec, graph, &told));
  }
  CHECK(before.wait());
  CHECK(!after.gone());
  CHECK_CODE(api.cuGraphExecDestroy(exec.take()), CUDA_SUCCESS);
  CHECK(after.wait());
}

TEST_CASE_FIXTURE(Primary, "UOB-11: a child graph node has the references of its graph [G]") {
  Object object;
  {
    const Graph outer = Graph::make();
    CUgraphNode node = nullptr;
    {
      const Graph inner = Graph::make();
      add_empty(inner, {});
      move_into(inner, object);
      node = add_child(outer, {}, inner);
    }
    CHECK(!object.gone());
    CHECK_CODE(api.cuGraphDestroyNode(node), CUDA_SUCCESS);
    CHECK(object.wait());
  }
}

TEST_CASE_FIXTURE(Primary,
                  "UOB-12: a capture's graph takes references while it is captured into [H]") {
  const Stream stream;
  const Memory memory;
  Object object;
  {
    begin(stream);
    REQUIRE_OK(fill(stream, memory, 12));
    move_into(info(stream).graph, object);
    const Graph graph(end(stream));
    run_once(graph, stream);
    CHECK(!object.gone());
  }
  CHECK(object.wait());
  CHECK(memory.word() == 12);
}

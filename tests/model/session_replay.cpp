// Plans, instances and replays.
#include "model/live_session.hpp"

namespace refrain::model {

bool LiveSession::instance(const Op& op) {
  OneRecording* const of = find(recordings_, op.a);
  if (of == nullptr || instances_.contains(op.id) || warming_) return false;
  Result<refrain::Instance> made = refrain::instance(of->recording);
  Answer expected;
  std::shared_ptr<Instance> modelled = model_.instance(of->model, expected);
  same(made, expected);
  if (made.ok() && right()) {
    instances_.emplace(op.id, OneInstance{*std::move(made), std::move(modelled)});
  }
  return true;
}

bool LiveSession::plan(const Op& op) {
  OneRecording* const of = find(recordings_, op.a);
  if (of == nullptr || plans_.contains(op.id) || warming_) return false;
  const SealedGraph& graph = of->recording.graph();
  if (op.n == 0) return keep_plan(op, refrain::Plan::prepare(device_, graph), *of);
  Answer expected;
  if (model_.not_portable(*of->model->graph)) expected = refused(ErrorKind::not_portable);
  if (op.n == 1) {
    const Result<std::vector<std::byte>> bytes = encode(graph);
    same(bytes, expected);
    if (!bytes.ok()) return true;
    const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(*bytes));
    if (!file.ok()) {
      wrong("a file that was just made does not open: " + file.error().text());
      return true;
    }
    Result<SealedGraph> loaded = file->graph();
    if (!loaded.ok()) {
      wrong("a graph that was just saved does not load: " + loaded.error().text());
      return true;
    }
    return keep_plan(op, refrain::Plan::prepare(device_, *std::move(loaded)), *of);
  }
  if (!folder_) folder_.emplace();
  const std::filesystem::path path = folder_->file("graph.refrain");
  const Result<void> saved = save(graph, path);
  same(saved, expected);
  if (!saved.ok()) return true;
  return keep_plan(op, refrain::load(device_, path), *of);
}

bool LiveSession::keep_plan(const Op& op, Result<refrain::Plan> made, const OneRecording& of) {
  if (!made.ok()) {
    wrong("no plan: " + made.error().text());
    return true;
  }
  plans_.emplace(op.id, OnePlan{*std::move(made), model_.plan(of.model->graph)});
  return true;
}

bool LiveSession::plan_instance(const Op& op) {
  OnePlan* const of = find(plans_, op.a);
  if (of == nullptr || instances_.contains(op.id) || warming_) return false;
  Result<refrain::Instance> made = of->plan.instance();
  if (!made.ok()) {
    wrong("no instance: " + made.error().text());
    return true;
  }
  instances_.emplace(op.id, OneInstance{*std::move(made), model_.instance(of->model)});
  return true;
}

bool LiveSession::locate(const Op& op) {
  OneInstance* const of = find(instances_, op.a);
  if (of == nullptr || buffers_.contains(op.id) || warming_) return false;
  const Result<View<U8>> got = of->instance.view<U8>(name_of_region(op));
  OneBuffer buffer;
  same(got, model_.locate(*of->model, name_of_region(op), buffer.span));
  if (!got.ok() || !right()) return true;
  buffer.whole = got->binding();
  know(buffers_.emplace(op.id, std::move(buffer)).first->second);
  return true;
}

bool LiveSession::bind(const Op& op) {
  OneInstance* const of = find(instances_, op.a);
  const std::optional<OneView> to = view(op.views[0]);
  if (of == nullptr || !to || warming_) return false;
  let_pass(model_.users(all_of(*of->model), true));
  same(of->instance.bind(name_of_region(op), to->view.binding(),
                         op.m != 0 ? ElementType::f32 : ElementType::u8),
       model_.bind(*of->model, name_of_region(op), to->span, op.m != 0));
  return true;
}

Spans LiveSession::all_of(const Instance& instance) {
  Spans all;
  for (std::size_t at = 0; at < instance.memory.size(); ++at) {
    if (instance.memory[at] < 0) continue;
    all.push_back({instance.memory[at], instance.offset[at],
                   instance.offset[at] + instance.graph->regions[at].size});
  }
  return all;
}

bool LiveSession::replay(const Op& op) {
  OneStream* const on = stream(op.s);
  OneInstance* const of = find(instances_, op.a);
  if (on == nullptr || of == nullptr) return false;
  if (warming_ && !of->model->listed) return false;  // it would make memory
  const bool look = op.n == 0;
  if (foreign(on->model, all_of(*of->model), all_of(*of->model))) return false;
  if (of->model->listed) {
    if (!look && model_.unknown(of->model->reads)) return false;
    if (model_.capturing(on->model) == nullptr && !order(op, of->model->reads, of->model->writes)) {
      return false;
    }
  } else {
    // Gives memory first, so that what it uses is known.
    if (!look) return false;
    Op ordered = op;
    ordered.ordered = true;
    if (model_.capturing(on->model) == nullptr &&
        !order(ordered, all_of(*of->model), all_of(*of->model))) {
      return false;
    }
  }
  ReplayOptions options;
  options.check_inputs = look;
  same_work(call_work([&] { return of->instance.replay(*on->stream, options); }),
            model_.replay(on->model, of->model, look));
  return true;
}

bool LiveSession::reset(const Op& op) {
  OneStream* const on = stream(op.s);
  OneInstance* const of = find(instances_, op.a);
  if (on == nullptr || of == nullptr) return false;
  Spans states;
  for (std::size_t at = 0; at < of->model->memory.size(); ++at) {
    if (of->model->graph->regions[at].role != Role::state) continue;
    states.push_back({of->model->memory[at], of->model->offset[at],
                      of->model->offset[at] + of->model->graph->regions[at].size});
  }
  if (foreign(on->model, {}, states)) return false;
  if (model_.capturing(on->model) == nullptr) {
    if (!order(op, {}, states)) return false;
    let_pass(model_.users(states, true));
  }
  same(of->instance.reset(*on->stream), model_.reset(on->model, *of->model));
  return true;
}

}  // namespace refrain::model

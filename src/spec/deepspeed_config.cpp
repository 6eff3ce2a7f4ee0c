// A DeepSpeed config held against the run file. DeepSpeed passes over unknown keys at its top
// level in silence, and the Trainer refuses values that differ from its own; here both are told.
// "auto" means what it means there: the run file's value, or the planner's choice.

#include <algorithm>
#include <array>

#include "spec/deepspeed_part.h"

namespace underkeel::spec {
namespace {

/// Parts of DeepSpeed that are other engines or methods; refused when they are switched on.
constexpr std::array<std::string_view, 17> other_features = {"elasticity",
                                                             "amp",
                                                             "torch_autocast",
                                                             "tensor_parallel",
                                                             "hybrid_engine",
                                                             "weight_quantization",
                                                             "quantize_training",
                                                             "compression_training",
                                                             "progressive_layer_drop",
                                                             "eigenvalue",
                                                             "curriculum_learning",
                                                             "data_efficiency",
                                                             "pipeline",
                                                             "sparse_attention",
                                                             "expert_parallel",
                                                             "autotuning",
                                                             "zenflow"};

class DeepspeedReader : DeepspeedPart {
 public:
  DeepspeedReader(const DeepspeedSource& source, const std::optional<WorldSize>& world,
                  Problems& problems, RunConfig& run, std::vector<std::string>& silent)
      : DeepspeedPart(source, problems, run, silent), world_(world) {}

  void read() {
    run_.has_deepspeed = true;
    Fields top = fields_of(source_.root, "");
    read_batch(top);
    read_precision(top);
    read_gradients(top);
    read_optimizer(top);
    read_scheduler(top, source_, problems_, run_, silent_);
    read_zero(top, source_, problems_, run_, silent_);
    refuse_features(top);
    sort_table(top, deepspeed_keys(), "");
    refuse_unknown(top, "");
    finish(top);
    if (!silent_.empty())
      run_.notes.push_back(
          fmt::format("{}: accepted without effect: {}", source_.name, fmt::join(silent_, ", ")));
    if (world_)
      if (const auto problem = batch_problem(run_, *world_)) problems_.add(*problem);
  }

 private:
  struct Match {
    std::string_view run_key;
    double run_value = 0;
    /// What DeepSpeed takes when the key is left out; nullopt: the run file's value.
    std::optional<double> when_absent;
    bool is_off_below_0 = false;  // the run file's value is 0 then
  };

  /// One line when DeepSpeed's value is not the run file's. "auto" is the run file's.
  void must_match(Fields& fields, std::string_view key, const Match& match) {
    const Value* value = fields.take(key);
    if (is_auto(value)) return;
    std::optional<double> number;
    if (value == nullptr || value->kind == ValueKind::null)
      number = match.when_absent;
    else
      number = fields.number(key, {.least = -1e300});
    if (!number || *number == match.run_value) return;
    if (match.is_off_below_0 && std::max(0.0, *number) == match.run_value) return;
    const bool given = value != nullptr && value->kind != ValueKind::null;
    fields.problem(
        key,
        fmt::format("{} {} {}, while {} is {} ({})", *number, given ? "in" : "by default in",
                    source_.name, match.run_key, match.run_value, source_of(run_, match.run_key)),
        given ? "write \"auto\", or the same value in both" : "write \"auto\"");
  }

  void read_batch(Fields& top) {
    must_match(top, "train_micro_batch_size_per_gpu",
               {.run_key = "per_device_train_batch_size",
                .run_value = static_cast<double>(run_.sequences_per_micro_batch)});
    const Value* total = top.take("train_batch_size");
    if (!is_auto(total))
      if (const auto count = top.integer("train_batch_size", {1, std::int64_t{1} << 48})) {
        run_.global_batch_sequences = count;
        remember(total, "train_batch_size", fmt::format("{}", *count));
      }
    const Value* steps = top.take("gradient_accumulation_steps");
    if (is_auto(steps)) return;
    const auto count = top.integer("gradient_accumulation_steps", {1, 1 << 24});
    if (!count || *count == run_.accumulation_steps) return;
    std::string what =
        fmt::format("{} in {}, while gradient_accumulation_steps is {} ({})", *count, source_.name,
                    run_.accumulation_steps, source_of(run_, "gradient_accumulation_steps"));
    if (world_) {
      const std::int64_t micro = run_.sequences_per_micro_batch;
      what += fmt::format(
          "; on {} ranks ({}) the one gives {} x {} x {} = {}, the other {} x {} x "
          "{} = {}",
          world_->ranks, world_->source, micro, *count, world_->ranks,
          micro * *count * world_->ranks, micro, run_.accumulation_steps, world_->ranks,
          micro * run_.accumulation_steps * world_->ranks);
    }
    top.problem("gradient_accumulation_steps", what, "write \"auto\", or the same value in both");
  }

  /// `enabled` of fp16 or bf16 held against the run file's flag.
  void read_mode(Fields& top, std::string_view key, std::string_view run_key, bool run_value) {
    const Value* mapping = section(top, key);
    if (mapping == nullptr) return;
    const Value stripped = without_auto(*mapping);
    Fields fields = fields_of(stripped, std::string(key) + ".");
    const auto enabled = fields.boolean("enabled");
    const bool says_auto = is_auto(mapping->find("enabled"));
    // A section without `enabled` is off in DeepSpeed.
    if (!says_auto && enabled.value_or(false) != run_value)
      fields.problem("enabled",
                     fmt::format("{} {} {}, while {} is {} ({})", enabled.value_or(false),
                                 enabled ? "in" : "by default in", source_.name, run_key, run_value,
                                 source_of(run_, run_key)),
                     "write \"auto\", or the same value in both");
    if (run_key == "fp16") {
      read_loss_scale(fields, *mapping);
    } else {
      for (const std::string_view wrong : loss_scale_keys)
        if (fields.take(wrong) != nullptr)
          fields.problem(wrong, "bf16 has no loss scale: this key belongs to fp16",
                         "remove it (DeepSpeed refuses it as well)");
      for (const char* known : {"immediate_grad_update", "check_grad_overflow"})
        if (fields.take(known) != nullptr) silent_.push_back(fmt::format("{}.{}", key, known));
      for (const char* other : {"bf16_master_weights_and_grads", "bf16_optimizer_states"})
        if (fields.boolean(other).value_or(false) && run_.precision != Precision::pure_bf16)
          fields.problem(other, "the run has f32 masters and moments",
                         "write pure_bf16: true in the run file to train without them");
    }
    refuse_unknown(fields, key);
    finish(fields);
  }

  void read_loss_scale(Fields& fields, const Value& mapping) {
    LossScaleConfig& scale = run_.loss_scale;
    const auto keep = [&](std::string_view key, auto& into, const auto& given) {
      if (!given) return;
      into = static_cast<std::decay_t<decltype(into)>>(*given);
      remember(mapping.find(key), fmt::format("fp16.{}", key), fmt::format("{}", into));
    };
    // Above the most, the scale itself would be no finite f32.
    constexpr double most_scale = 0x1p126;
    constexpr std::int64_t most_count = std::int64_t{1} << 40;
    keep("loss_scale", scale.fixed, fields.number("loss_scale", {.most = most_scale}));
    keep("initial_scale_power", scale.initial_power,
         fields.integer("initial_scale_power", {0, 126}));
    keep("loss_scale_window", scale.window, fields.integer("loss_scale_window", {1, most_count}));
    keep("hysteresis", scale.hysteresis, fields.integer("hysteresis", {1, most_count}));
    keep("consecutive_hysteresis", scale.refills_hysteresis,
         fields.boolean("consecutive_hysteresis"));
    keep("min_loss_scale", scale.least,
         fields.number("min_loss_scale", {.most = most_scale, .least_is_allowed = false}));
    if (fields.take("auto_cast") != nullptr) silent_.push_back("fp16.auto_cast");
    if (fields.boolean("fp16_master_weights_and_grads").value_or(false))
      fields.problem("fp16_master_weights_and_grads",
                     "training in fp16 without f32 master weights is not supported", "write false",
                     ErrorCode::unsupported);
  }

  void read_precision(Fields& top) {
    if (top.has("bf16") && top.has("bfloat16"))
      top.problem("bfloat16", "`bf16` and `bfloat16` are two names of one section",
                  "keep one of the two");
    read_mode(top, "fp16", "fp16", run_.precision == Precision::f16);
    read_mode(top, top.has("bfloat16") ? "bfloat16" : "bf16", "bf16", mode_type() == DType::bf16);
    top.take("bf16");
    top.take("bfloat16");
  }

  DType mode_type() const {
    switch (run_.precision) {
      case Precision::f32:
        return DType::f32;
      case Precision::bf16:
      case Precision::pure_bf16:
        return DType::bf16;
      case Precision::f16:
        return DType::f16;
    }
    return DType::f32;
  }

  std::optional<DType> type_at(Fields& fields, std::string_view key) {
    const auto name = fields.text(key);
    if (!name) return std::nullopt;
    const auto type = parse_dtype(*name, key);
    if (type && (*type == DType::f32 || *type == DType::f16 || *type == DType::bf16)) return *type;
    fields.problem(key, fmt::format("unknown element type `{}`", *name),
                   "write fp32, bf16 or fp16");
    return std::nullopt;
  }

  void read_gradients(Fields& top) {
    run_.gradient_accumulation_type = mode_type();
    if (const Value* mapping = section(top, "data_types")) {
      const Value stripped = without_auto(*mapping);
      Fields fields = fields_of(stripped, "data_types.");
      if (const auto type = type_at(fields, "grad_accum_dtype")) {
        if (*type != DType::f32 && *type != mode_type())
          fields.problem("grad_accum_dtype",
                         fmt::format("{} gradients cannot accumulate in {}", name_of(mode_type()),
                                     name_of(*type)),
                         "write fp32, or leave the key out");
        run_.gradient_accumulation_type = *type;
      }
      if (const auto type = type_at(fields, "param_dtype"); type && *type != mode_type())
        fields.problem("param_dtype",
                       fmt::format("{} is not the run's {}", name_of(*type), name_of(mode_type())));
      if (const Value* kept = fields.take("keep_in_fp32_modules")) {
        if (!is_auto(kept) && !kept->items.empty())
          fields.problem("keep_in_fp32_modules", "modules cannot be kept in f32 by name",
                         "write auto, or leave the key out");
        silent_.push_back("data_types.keep_in_fp32_modules");
      }
      if (fields.take("buffer_dtype") != nullptr) silent_.push_back("data_types.buffer_dtype");
      refuse_unknown(fields, "data_types");
      finish(fields);
    }
    const Value* const types = source_.root.find("data_types");
    const Value* const asked = types != nullptr && types->kind == ValueKind::mapping
                                   ? types->find("grad_accum_dtype")
                                   : nullptr;
    remember(asked, "data_types.grad_accum_dtype",
             std::string(name_of(*run_.gradient_accumulation_type)));
    if (asked == nullptr) run_.provenance.back().source = "derived";

    if (!is_auto(top.take("communication_data_type")))
      if (const auto type = type_at(top, "communication_data_type")) {
        if (*type != DType::f32 && *type != mode_type())
          top.problem("communication_data_type", fmt::format("{} is neither fp32 nor the run's {}",
                                                             name_of(*type), name_of(mode_type())));
        run_.notes.push_back(
            "communication_data_type: sums over ranks are always taken in f32 and rounded once");
      }

    must_match(top, "gradient_clipping",
               {.run_key = "max_grad_norm",
                .run_value = run_.optimizer.max_grad_norm,
                .is_off_below_0 = true});
    if (!top.has("gradient_clipping"))
      run_.notes.push_back(fmt::format(
          "{} has no gradient_clipping: max_grad_norm {} holds here; DeepSpeed takes 1.0 since "
          "0.19.3 and did not clip before",
          source_.name, run_.optimizer.max_grad_norm));
  }

  void read_optimizer(Fields& top) {
    const Value* mapping = section(top, "optimizer");
    if (mapping == nullptr) return;
    Fields fields = fields_of(*mapping, "optimizer.");
    const auto type = fields.text("type");
    std::string name = type.value_or("");
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    });
    if (!type)
      fields.problem("type", "the key is missing", "write AdamW");
    else if (name != "adam" && name != "adamw")
      fields.problem("type", fmt::format("optimizer `{}` is not supported", *type),
                     "supported are AdamW, and Adam with decoupled weight decay",
                     ErrorCode::unsupported);
    if (fields.take("legacy_fusion") != nullptr) silent_.push_back("optimizer.legacy_fusion");
    Value empty;
    empty.kind = ValueKind::mapping;
    const Value* given = section(fields, "params");
    const Value& content = given == nullptr ? empty : *given;
    Fields params = fields_of(content, "optimizer.params.");
    const OptimizerConfig& optimizer = run_.optimizer;
    // DeepSpeed's own defaults hold for what the params leave out.
    must_match(params, "lr", {"learning_rate", optimizer.learning_rate, 1e-3});
    must_match(params, "eps", {"adam_epsilon", optimizer.epsilon, 1e-8});
    must_match(params, "weight_decay", {"weight_decay", optimizer.weight_decay, 0.0});
    read_betas(params);
    if (name == "adam" && params.boolean("adam_w_mode") == false)
      params.problem("adam_w_mode", "weight decay as an L2 penalty is not supported", "write true",
                     ErrorCode::unsupported);
    params.take("adam_w_mode");
    if (params.boolean("bias_correction") == false)
      params.problem("bias_correction", "Adam without bias correction is not supported", {},
                     ErrorCode::unsupported);
    if (params.boolean("amsgrad") == true)
      params.problem("amsgrad", "AMSGrad is not supported", {}, ErrorCode::unsupported);
    if (params.boolean("fp32_optimizer_states") == false)
      params.problem("fp32_optimizer_states", "moments are always f32", {}, ErrorCode::unsupported);
    if (params.take("max_grad_norm") != nullptr)
      params.problem("max_grad_norm", "DeepSpeed refuses this key", "use gradient_clipping");
    for (const char* known : {"torch_adam", "fused"})
      if (params.take(known) != nullptr)
        silent_.push_back(fmt::format("optimizer.params.{}", known));
    refuse_unknown(params, "optimizer.params");
    refuse_unknown(fields, "optimizer");
    finish(params);
    finish(fields);
  }

  void read_betas(Fields& params) {
    const Value* betas = params.take("betas");
    if (is_auto(betas)) return;
    std::array<double, 2> numbers = {0.9, 0.999};
    if (betas != nullptr && betas->kind != ValueKind::null) {
      const bool is_pair = betas->kind == ValueKind::list && betas->items.size() == 2 &&
                           to_double(betas->items[0]) && to_double(betas->items[1]);
      if (!is_pair) {
        params.problem("betas", fmt::format("two numbers are wanted, {} was found", shown(*betas)));
        return;
      }
      numbers = {*to_double(betas->items[0]), *to_double(betas->items[1])};
    }
    const OptimizerConfig& optimizer = run_.optimizer;
    if (numbers[0] != optimizer.beta1 || numbers[1] != optimizer.beta2)
      params.problem("betas",
                     fmt::format("[{}, {}] in {}, while adam_beta1 and adam_beta2 are {} ({}) and "
                                 "{} ({})",
                                 numbers[0], numbers[1], source_.name, optimizer.beta1,
                                 source_of(run_, "adam_beta1"), optimizer.beta2,
                                 source_of(run_, "adam_beta2")),
                     "write \"auto\", or the same values in both");
  }

  void refuse_features(Fields& top) {
    for (const std::string_view key : other_features) {
      const Value* value = top.take(key);
      if (value == nullptr || is_neutral(*value, "null|false")) continue;
      const Value* enabled = value->find("enabled");
      if (enabled != nullptr && is_neutral(*enabled, "null|false")) continue;
      // `enabled` left out means off for the parts that have it.
      const bool has_switch = key != "compression_training" && key != "pipeline" &&
                              key != "sparse_attention" && key != "tensor_parallel";
      if (value->kind == ValueKind::mapping && enabled == nullptr && has_switch) continue;
      top.problem(key, fmt::format("`{}` is not supported", key), "remove it",
                  ErrorCode::unsupported);
    }
  }

  const std::optional<WorldSize>& world_;
};

}  // namespace

void read_deepspeed(const DeepspeedSource& source, const std::optional<WorldSize>& world,
                    Problems& problems, RunConfig& run) {
  std::vector<std::string> silent;
  DeepspeedReader(source, world, problems, run, silent).read();
}

}  // namespace underkeel::spec

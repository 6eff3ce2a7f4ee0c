// Lowers the model's forward pass to operations on the flat micro-batch.
// Needs: units laid out. Gives: operations in order, embedding to final norm, on one lane, and the
// head with its loss in chunks of rows, so that whole logits never exist.
// q, k, v are one product into one buffer, gate and up another; their weights lie side by side.

#include <cmath>

#include <fmt/format.h>

#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Access;
using plan::BufferKind;
using plan::Compute;
using plan::Kernel;
using plan::Operand;

/// Emits one forward pass. Buffers are named after what they hold; `prefix` tells segments apart.
class Lowering {
 public:
  Lowering(Builder& builder, std::int64_t max_rows, std::string prefix, bool is_cached = false)
      : b_(builder),
        m_(builder.request.model),
        rows_(max_rows),
        prefix_(std::move(prefix)),
        is_cached_(is_cached) {}

  Forward run(bool with_targets) {
    feed_batch(with_targets);
    rotary_tables();
    BufferId x = embedding();
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) x = decoder_layer(layer, x);
    out_.hidden = activation("final_norm", m_.width);
    norm("model.norm.weight", x, out_.hidden, "final norm", -1);
    out_.max_rows = rows_;
    return std::move(out_);
  }

 private:
  BufferId activation(const std::string& name, std::int64_t columns) {
    return b_.add_rows_buffer(prefix_ + name, BufferKind::activations, b_.type(), rows_, columns);
  }
  BufferId activation_f32(const std::string& name, std::int64_t columns) {
    return b_.add_rows_buffer(prefix_ + name, BufferKind::activations, DType::f32, rows_, columns);
  }
  Operand all(BufferId buffer, Access access, std::int64_t columns, std::int64_t first_column = 0,
              std::int64_t row_stride = 0) const {
    return batch_rows(buffer, access, b_.type(), rows_, columns, first_column, row_stride);
  }
  Operand all_f32(BufferId buffer, Access access, std::int64_t columns) const {
    return batch_rows(buffer, access, DType::f32, rows_, columns);
  }
  Operand integers(BufferId buffer, std::int64_t extra = 0) const {
    Operand operand = batch_rows(buffer, Access::read, DType::i32, rows_, 1);
    operand.rows.extra = extra;
    return operand;
  }
  void emit(Compute body, std::string label, std::int64_t layer) {
    out_.ops.push_back(
        compute(std::move(body), std::move(label), static_cast<std::int32_t>(layer)));
  }

  BufferId feed(plan::Input input, DType type, std::int64_t count) {
    const BufferId buffer =
        b_.add_buffer({.name = fmt::format("{}batch.{}", prefix_, name_of(input)),
                       .kind = BufferKind::staging,
                       .type = type,
                       .size_bytes = bytes_of(type, count)});
    Op op;
    op.body = plan::Feed{.input = input, .into = buffer};
    op.label = fmt::format("feed {}", name_of(input));
    out_.ops.push_back(std::move(op));
    return buffer;
  }

  void feed_batch(bool with_targets) {
    out_.tokens = feed(plan::Input::tokens, DType::i32, rows_);
    positions_ = feed(plan::Input::positions, DType::i32, rows_);
    if (is_cached_) return;
    out_.sequence_starts = feed(plan::Input::sequence_starts, DType::i32, rows_ + 1);
    if (!with_targets) return;
    out_.targets = feed(plan::Input::targets, DType::i32, rows_);
    out_.gradient_scale = feed(plan::Input::gradient_scale, DType::f32, 1);
  }

  void rotary_tables() {
    cosine_ = activation_f32("rope.cosine", m_.head_width / 2);
    sine_ = activation_f32("rope.sine", m_.head_width / 2);
    emit({.kernel = Kernel::rope_table,
          .operands = {integers(positions_), all_f32(cosine_, Access::write, m_.head_width / 2),
                       all_f32(sine_, Access::write, m_.head_width / 2)}},
         "rope table", -1);
  }

  BufferId embedding() {
    const BufferId x = activation("embedding.out", m_.width);
    emit({.kernel = Kernel::embedding_forward,
          .operands = {integers(out_.tokens), b_.weight("model.embed_tokens.weight"),
                       all(x, Access::write, m_.width)}},
         "embedding forward", -1);
    return x;
  }

  void norm(const std::string& weight, BufferId x, BufferId y, const std::string& label,
            std::int64_t layer) {
    const BufferId rstd = activation_f32(label_to_name(label) + ".rstd", 1);
    emit({.kernel = Kernel::rms_norm_forward,
          .operands = {all(x, Access::read, m_.width), b_.weight(weight),
                       all(y, Access::write, m_.width), all_f32(rstd, Access::write, 1)},
          .value = static_cast<float>(m_.norm_epsilon)},
         label, layer);
  }
  static std::string label_to_name(std::string label) {
    for (char& c : label)
      if (c == ' ') c = '.';
    return label;
  }

  // c (+)= a W^T [+ bias], with W the `rows` rows that begin at parameter `weight`.
  void linear(Operand a, const std::string& weight, std::int64_t weight_rows, Operand c,
              const std::string& bias, bool accumulate, const std::string& label,
              std::int64_t layer) {
    Operand w = b_.weight(weight);
    w.rows.count = weight_rows;
    Compute body{.kernel = Kernel::matmul,
                 .operands = {a, w, c},
                 .transpose_b = true,
                 .accumulate = accumulate};
    if (!bias.empty()) {
      Operand vector = b_.weight(bias);
      vector.columns = vector.row_stride = weight_rows;
      body.operands.push_back(vector);
    }
    emit(std::move(body), label, layer);
  }

  // x + rest: the residual stream is copied once and the last product adds into the copy.
  BufferId residual(BufferId x, const std::string& name, std::int64_t layer) {
    const BufferId sum = activation(name, m_.width);
    emit({.kernel = Kernel::copy,
          .operands = {all(x, Access::read, m_.width), all(sum, Access::write, m_.width)}},
         fmt::format("layers.{} residual", layer), layer);
    return sum;
  }

  void qk_norm(const std::string& weight, BufferId from, std::int64_t first_column, BufferId to,
               std::int64_t heads, const std::string& label, std::int64_t layer) {
    const std::int64_t qkv_columns = (m_.query_heads + 2 * m_.key_heads) * m_.head_width;
    const std::int64_t columns = heads * m_.head_width;
    const BufferId rstd = activation_f32(label_to_name(label) + ".rstd", heads);
    emit({.kernel = Kernel::rms_norm_forward,
          .operands = {all(from, Access::read, columns, first_column, qkv_columns),
                       b_.weight(weight), all(to, Access::write, columns),
                       all_f32(rstd, Access::write, heads)},
          .value = static_cast<float>(m_.norm_epsilon),
          .groups = static_cast<std::int32_t>(heads)},
         label, layer);
  }

  void rotate(Operand x, const std::string& label, std::int64_t layer) {
    x.access = Access::read_write;
    emit({.kernel = Kernel::rope_apply,
          .operands = {x, all_f32(cosine_, Access::read, m_.head_width / 2),
                       all_f32(sine_, Access::read, m_.head_width / 2)},
          .head_width = static_cast<std::int32_t>(m_.head_width)},
         label, layer);
  }

  BufferId attention(std::int64_t layer, BufferId normed) {
    const std::string name = fmt::format("layers.{}", layer);
    const std::string attn = fmt::format("model.layers.{}.self_attn", layer);
    const std::int64_t q_columns = m_.query_heads * m_.head_width;
    const std::int64_t k_columns = m_.key_heads * m_.head_width;
    const std::int64_t qkv_columns = q_columns + 2 * k_columns;
    const BufferId qkv = activation(name + ".qkv", qkv_columns);
    linear(all(normed, Access::read, m_.width), attn + ".q_proj.weight", qkv_columns,
           all(qkv, Access::write, qkv_columns), m_.qkv_bias ? attn + ".q_proj.bias" : "", false,
           name + " qkv", layer);
    Operand q = all(qkv, Access::read, q_columns, 0, qkv_columns);
    Operand k = all(qkv, Access::read, k_columns, q_columns, qkv_columns);
    const Operand v = all(qkv, Access::read, k_columns, q_columns + k_columns, qkv_columns);
    if (m_.qk_norm) {
      const BufferId q_normed = activation(name + ".q_normed", q_columns);
      const BufferId k_normed = activation(name + ".k_normed", k_columns);
      qk_norm(attn + ".q_norm.weight", qkv, 0, q_normed, m_.query_heads, name + " q norm", layer);
      qk_norm(attn + ".k_norm.weight", qkv, q_columns, k_normed, m_.key_heads, name + " k norm",
              layer);
      q = all(q_normed, Access::read, q_columns);
      k = all(k_normed, Access::read, k_columns);
    }
    rotate(q, name + " rope q", layer);
    rotate(k, name + " rope k", layer);
    const BufferId out = activation(name + ".attention", q_columns);
    if (is_cached_) {
      const LayerCache& cache = b_.cache[static_cast<std::size_t>(layer)];
      const auto kept = [&](BufferId buffer) {
        return fixed(buffer, Access::read_write, b_.type(), b_.request.cache_rows, k_columns);
      };
      emit({.kernel = Kernel::attention_cached,
            .operands = {q, k, v, integers(positions_), kept(cache.keys), kept(cache.values),
                         all(out, Access::write, q_columns)},
            .value = attention_scale(m_),
            .query_heads = static_cast<std::int32_t>(m_.query_heads),
            .key_heads = static_cast<std::int32_t>(m_.key_heads),
            .head_width = static_cast<std::int32_t>(m_.head_width),
            .window = m_.windows[static_cast<std::size_t>(layer)]},
           name + " attention", layer);
      return out;
    }
    const BufferId lse = activation_f32(name + ".lse", m_.query_heads);
    emit({.kernel = Kernel::attention_forward,
          .operands = {q, k, v, integers(out_.sequence_starts, 1),
                       all(out, Access::write, q_columns),
                       all_f32(lse, Access::write, m_.query_heads)},
          .value = attention_scale(m_),
          .query_heads = static_cast<std::int32_t>(m_.query_heads),
          .key_heads = static_cast<std::int32_t>(m_.key_heads),
          .head_width = static_cast<std::int32_t>(m_.head_width),
          .window = m_.windows[static_cast<std::size_t>(layer)]},
         name + " attention", layer);
    return out;
  }

  static float attention_scale(const spec::ModelSpec& model);

  BufferId decoder_layer(std::int64_t layer, BufferId x) {
    const std::string name = fmt::format("layers.{}", layer);
    const std::string model = fmt::format("model.layers.{}", layer);
    const std::int64_t q_columns = m_.query_heads * m_.head_width;

    const BufferId normed = activation(name + ".input_norm", m_.width);
    norm(model + ".input_layernorm.weight", x, normed, name + " input norm", layer);
    const BufferId attended = attention(layer, normed);
    const BufferId middle = residual(x, name + ".middle", layer);
    linear(all(attended, Access::read, q_columns), model + ".self_attn.o_proj.weight", m_.width,
           all(middle, Access::read_write, m_.width),
           m_.output_bias ? model + ".self_attn.o_proj.bias" : "", true, name + " attention out",
           layer);

    const BufferId normed_again = activation(name + ".mlp_norm", m_.width);
    norm(model + ".post_attention_layernorm.weight", middle, normed_again, name + " mlp norm",
         layer);
    const BufferId gate_up = activation(name + ".gate_up", 2 * m_.feed_forward);
    linear(all(normed_again, Access::read, m_.width), model + ".mlp.gate_proj.weight",
           2 * m_.feed_forward, all(gate_up, Access::write, 2 * m_.feed_forward),
           m_.mlp_bias ? model + ".mlp.gate_proj.bias" : "", false, name + " gate up", layer);
    const BufferId swiglu = activation(name + ".swiglu", m_.feed_forward);
    const std::int64_t f = m_.feed_forward;
    emit({.kernel = Kernel::swiglu_forward,
          .operands = {all(gate_up, Access::read, f, 0, 2 * f),
                       all(gate_up, Access::read, f, f, 2 * f), all(swiglu, Access::write, f)}},
         name + " swiglu", layer);
    const BufferId out = residual(middle, name + ".out", layer);
    linear(all(swiglu, Access::read, f), model + ".mlp.down_proj.weight", m_.width,
           all(out, Access::read_write, m_.width), m_.mlp_bias ? model + ".mlp.down_proj.bias" : "",
           true, name + " down", layer);
    return out;
  }

  Builder& b_;
  const spec::ModelSpec& m_;
  std::int64_t rows_;
  std::string prefix_;
  bool is_cached_;
  Forward out_{};
  BufferId positions_ = plan::no_buffer;
  BufferId cosine_ = plan::no_buffer;
  BufferId sine_ = plan::no_buffer;
};

float Lowering::attention_scale(const spec::ModelSpec& model) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_width)));
}

}  // namespace

Forward lower_forward(Builder& builder, std::int64_t max_rows, bool with_targets,
                      const std::string& prefix) {
  return Lowering(builder, max_rows, prefix).run(with_targets);
}

Forward lower_cached_forward(Builder& builder, std::int64_t max_rows, const std::string& prefix) {
  return Lowering(builder, max_rows, prefix, true).run(false);
}

}  // namespace underkeel::planner

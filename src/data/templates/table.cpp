// The templates that LLaMA-Factory's users name, one entry each. Texts are data: every byte counts.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "data/template.h"

namespace underkeel::data {
namespace {

constexpr Slot begin_token{.kind = Slot::Kind::begin_token, .text = {}};
constexpr Slot end_token{.kind = Slot::Kind::end_token, .text = {}};

constexpr Slot text(std::string_view words) {
  return {.kind = Slot::Kind::text, .text = words};
}

using Slots = std::vector<Slot>;

const Slots content = {text("{{content}}")};
const Slots content_and_end = {text("{{content}}"), end_token};
const Slots content_and_blank_line = {text("{{content}}\n\n")};

const Slots chatml_system = {text("<|im_start|>system\n{{content}}<|im_end|>\n")};
const Slots chatml_user = {
    text("<|im_start|>user\n{{content}}<|im_end|>\n<|im_start|>assistant\n")};
const Slots chatml_assistant = {text("{{content}}<|im_end|>\n")};

const Slots gemma_user = {
    text("<start_of_turn>user\n{{content}}<end_of_turn>\n<start_of_turn>model\n")};
const Slots gemma_assistant = {text("{{content}}<end_of_turn>\n")};

const Slots phi_system = {text("<|system|>\n{{content}}<|end|>\n")};
const Slots phi_user = {text("<|user|>\n{{content}}<|end|>\n<|assistant|>\n")};
const Slots phi_assistant = {text("{{content}}<|end|>\n")};

const Slots llama2_system = {text("<<SYS>>\n{{content}}\n<</SYS>>\n\n")};
const Slots llama2_user = {begin_token, text("[INST] {{content}} [/INST]")};

const Slots deepseek3_user = {text("<\uFF5CUser\uFF5C>{{content}}<\uFF5CAssistant\uFF5C>")};

const std::vector<Template> templates = {
    {.name = "alpaca",
     .system = content,
     .user = {text("### Instruction:\n{{content}}\n\n### Response:\n")},
     .assistant = {text("{{content}}"), end_token, text("\n\n")},
     .default_system = "Below is an instruction that describes a task. Write a response that "
                       "appropriately completes the request.\n\n",
     .replaces_jinja = true},
    {.name = "chatml",
     .system = chatml_system,
     .user = chatml_user,
     .assistant = chatml_assistant,
     .stop_words = {"<|im_end|>", "<|im_start|>"},
     .replace_eos = true,
     .replaces_jinja = true},
    {.name = "deepseek",
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = {text("User: {{content}}\n\nAssistant:")},
     .assistant = content_and_end},
    {.name = "deepseek3",
     .prefix = {begin_token},
     .system = content,
     .user = deepseek3_user,
     .assistant = content_and_end},
    {.name = "deepseekcoder",
     .prefix = {begin_token},
     .system = content,
     .user = {text("### Instruction:\n{{content}}\n### Response:")},
     .assistant = {text("\n{{content}}\n<|EOT|>\n")},
     .default_system =
         "You are an AI programming assistant, utilizing the DeepSeek Coder model, developed by "
         "DeepSeek Company, and you only answer questions related to computer science. For "
         "politically sensitive questions, security and privacy issues, and other non-computer "
         "science questions, you will refuse to answer.\n"},
    {.name = "deepseekr1",
     .kind = TemplateKind::reasoning,
     .prefix = {begin_token},
     .system = content,
     .user = deepseek3_user,
     .assistant = content_and_end},
    {.name = "default",
     .system = {text("System: {{content}}"), end_token, text("\n")},
     .user = {text("Human: {{content}}"), end_token, text("\nAssistant:")},
     .assistant = {text("{{content}}"), end_token, text("\n")},
     .replaces_jinja = true},
    {.name = "empty", .system = content, .user = content, .assistant = content},
    {.name = "fewshot",
     .system = content,
     .user = content,
     .assistant = content_and_blank_line,
     .efficient_eos = true,
     .replaces_jinja = true},
    {.name = "gemma",
     .kind = TemplateKind::system_in_user,
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = gemma_user,
     .assistant = gemma_assistant,
     .stop_words = {"<end_of_turn>"},
     .replace_eos = true},
    {.name = "gemma2",
     .kind = TemplateKind::system_in_user,
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = gemma_user,
     .assistant = gemma_assistant,
     .stop_words = {"<eos>", "<end_of_turn>"},
     .efficient_eos = true},
    {.name = "gemma3",
     .kind = TemplateKind::system_in_user,
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = gemma_user,
     .assistant = gemma_assistant,
     .stop_words = {"<end_of_turn>"},
     .replace_eos = true},
    {.name = "llama2",
     .kind = TemplateKind::system_in_user,
     .system = llama2_system,
     .user = llama2_user,
     .assistant = content_and_end},
    {.name = "llama2_zh",
     .kind = TemplateKind::system_in_user,
     .system = llama2_system,
     .user = llama2_user,
     .assistant = content_and_end,
     .default_system = "You are a helpful assistant. "
                       "\u4F60\u662F\u4E00\u4E2A\u4E50\u4E8E\u52A9\u4EBA\u7684\u52A9\u624B\u3002"},
    {.name = "llama3",
     .prefix = {begin_token},
     .system = {text("<|start_header_id|>system<|end_header_id|>\n\n{{content}}<|eot_id|>")},
     .user = {text("<|start_header_id|>user<|end_header_id|>\n\n{{content}}<|eot_id|>"
                   "<|start_header_id|>assistant<|end_header_id|>\n\n")},
     .assistant = {text("{{content}}<|eot_id|>")},
     .stop_words = {"<|eot_id|>", "<|eom_id|>"},
     .replace_eos = true},
    {.name = "llama4",
     .prefix = {begin_token},
     .system = {text("<|header_start|>system<|header_end|>\n\n{{content}}<|eot|>")},
     .user = {text("<|header_start|>user<|header_end|>\n\n{{content}}<|eot|>"
                   "<|header_start|>assistant<|header_end|>\n\n")},
     .assistant = {text("{{content}}<|eot|>")},
     .stop_words = {"<|eot|>", "<|eom|>"},
     .replace_eos = true},
    {.name = "ministral",
     .kind = TemplateKind::system_in_user,
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = {text("[INST]{{content}}[/INST]")},
     .assistant = content_and_end},
    {.name = "mistral",
     .kind = TemplateKind::system_in_user,
     .prefix = {begin_token},
     .system = content_and_blank_line,
     .user = {text("[INST] {{content}}[/INST]")},
     .assistant = {text(" {{content}}"), end_token}},
    {.name = "mistral_small",
     .prefix = {begin_token},
     .system = {text("[SYSTEM_PROMPT]{{content}}[/SYSTEM_PROMPT]")},
     .user = {text("[INST]{{content}}[/INST]")},
     .assistant = content_and_end},
    {.name = "phi",
     .system = phi_system,
     .user = phi_user,
     .assistant = phi_assistant,
     .stop_words = {"<|end|>"},
     .replace_eos = true},
    {.name = "phi4",
     .system = {text("<|im_start|>system<|im_sep|>{{content}}<|im_end|>")},
     .user = {text("<|im_start|>user<|im_sep|>{{content}}<|im_end|>"
                   "<|im_start|>assistant<|im_sep|>")},
     .assistant = {text("{{content}}<|im_end|>")},
     .stop_words = {"<|im_end|>"},
     .replace_eos = true},
    {.name = "phi4_mini",
     .system = {text("<|system|>{{content}}<|end|>")},
     .user = {text("<|user|>{{content}}<|end|><|assistant|>")},
     .assistant = {text("{{content}}<|end|>")},
     .stop_words = {"<|end|>"},
     .replace_eos = true},
    // LLaMA-Factory names <|endoftext|> as a prefix in a way that adds nothing.
    {.name = "phi_small",
     .system = phi_system,
     .user = phi_user,
     .assistant = phi_assistant,
     .stop_words = {"<|end|>"},
     .replace_eos = true},
    {.name = "qwen",
     .system = chatml_system,
     .user = chatml_user,
     .assistant = chatml_assistant,
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .stop_words = {"<|im_end|>"},
     .replace_eos = true},
    {.name = "qwen3",
     .kind = TemplateKind::reasoning,
     .system = chatml_system,
     .user = chatml_user,
     .assistant = chatml_assistant,
     .stop_words = {"<|im_end|>"},
     .replace_eos = true},
    {.name = "qwen3_nothink",
     .system = chatml_system,
     .user = chatml_user,
     .assistant = chatml_assistant,
     .stop_words = {"<|im_end|>"},
     .replace_eos = true},
    {.name = "vicuna",
     .system = content,
     .user = {text("USER: {{content}} ASSISTANT:")},
     .assistant = content_and_end,
     .default_system = "A chat between a curious user and an artificial intelligence assistant. "
                       "The assistant gives helpful, detailed, and polite answers to the user's "
                       "questions.",
     .replaces_jinja = true},
    {.name = "yi",
     .system = chatml_system,
     .user = chatml_user,
     .assistant = chatml_assistant,
     .stop_words = {"<|im_end|>"}},
    {.name = "zephyr",
     .system = {text("<|system|>\n{{content}}"), end_token},
     .user = {text("<|user|>\n{{content}}"), end_token, text("<|assistant|>\n")},
     .assistant = content_and_end,
     .default_system = "You are Zephyr, a helpful assistant."},
};

}  // namespace

std::span<const Template> all_templates() {
  return templates;
}

Result<const Template*> find_template(std::string_view name) {
  std::vector<std::string> names;
  for (const Template& style : templates) {
    if (style.name == name) return &style;
    names.emplace_back(style.name);
  }
  const std::string nearest = nearest_word(name, names);
  return fail(ErrorCode::not_found, fmt::format("there is no template `{}`", name), "template",
              nearest.empty()
                  ? fmt::format("the {} that there are stand in docs/guide/data.md", names.size())
                  : fmt::format("write `{}`", nearest));
}

std::string_view turn_end_word(const Template& style) {
  for (auto slot = style.assistant.rbegin(); slot != style.assistant.rend(); ++slot)
    for (const std::string_view word : style.stop_words)
      if (slot->kind == Slot::Kind::text && slot->text.find(word) != std::string_view::npos)
        return word;
  return {};
}

bool ends_with_end_token(const Template& style) {
  return style.efficient_eos ||
         std::any_of(style.assistant.begin(), style.assistant.end(),
                     [](const Slot& slot) { return slot.kind == Slot::Kind::end_token; });
}

}  // namespace underkeel::data

#pragma once
// What doctor has found: which rule spoke, how bad it is, how sure, for which engine, and where.
// The words are kept apart (wording.h): a finding carries the values that they have slots for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::doctor {

enum class Severity { error, warning, info };
/// exact: read from the files or from the engine's own plan. bound: holds whatever the engine does. estimate:
/// from a model of the engine. folklore: about something that people say. See docs/decisions/0019.
enum class Certainty { exact, bound, estimate, folklore };
enum class Engine { deepspeed, underkeel, both };

std::string_view name_of(Severity severity);
std::string_view name_of(Certainty certainty);
std::string_view name_of(Engine engine);

/// A value for the slot `{name}` of a message or fix. `@id` as the whole text, or `@[id]` in it, names a phrase,
/// which has a wording of its own in each language.
struct Slot {
  std::string name;
  std::string text;
};

struct Finding {
  std::string id;  // of the rule: "key-misplaced"
  Severity severity = Severity::info;
  Certainty certainty = Certainty::exact;
  Engine engine = Engine::both;
  std::string file;  // as it was given; may be empty
  std::string key;   // key, tensor, line; may be empty
  int line = 0;      // in `file`, from 1; 0: none
  std::vector<Slot> slots = {};
};

/// "48.2 GB" (1e9), "262 MB", "12 KB", "7 B": how memory is told everywhere in doctor.
std::string amount(double size_bytes);
/// The same of a whole number of bytes.
std::string size_text(std::int64_t size_bytes);
/// "85.9 GB (80.0 GiB)": a size that the user gave in binary units.
std::string capacity(std::int64_t size_bytes);

}  // namespace underkeel::doctor

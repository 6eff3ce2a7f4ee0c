#pragma once
// What a record of instruction data says, whatever format it came in.

#include <string>
#include <vector>

namespace underkeel::data {

enum class Role { user, assistant };

struct Message {
  Role role = Role::user;
  std::string text;
};

/// User and assistant in turn, ending with an assistant.
struct Conversation {
  std::string system;           // empty: the template's own
  bool has_tools_list = false;  // an empty list of tools, which makes an empty system text appear
  std::vector<Message> messages;
};

}  // namespace underkeel::data

#include "comm/agree.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace underkeel::comm {

namespace {

std::string error_text(const Error& error) {
  return nlohmann::json{{"code", static_cast<int>(error.code)},
                        {"what", error.what},
                        {"where", error.where},
                        {"fix", error.fix}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error parse_error_text(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())  // it has come to another call
    return {ErrorCode::peer_lost, text, "", "look for the first error of the other ranks"};
  return {static_cast<ErrorCode>(json["code"].get<int>()), json["what"], json["where"],
          json["fix"]};
}

}  // namespace

Result<void> agree(Communicator& control, Result<void> own) {
  UK_TRY(texts, control.all_gather_text(own ? "" : error_text(own.error())));
  if (!own) return own;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    Error error = parse_error_text(texts[rank]);
    error.what = fmt::format("rank {}: {}", rank, error.what);
    return tl::unexpected(std::move(error));
  }
  return {};
}

Result<void> on_rank_0(Communicator& control, const std::function<Result<void>()>& body) {
  return agree(control, control.rank() == 0 ? body() : Result<void>{});
}

}  // namespace underkeel::comm

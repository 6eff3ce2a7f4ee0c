#include "doctor/finding.h"

#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::doctor {

std::string_view name_of(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning", "info"};
  return names[static_cast<std::size_t>(severity)];
}

std::string_view name_of(Certainty certainty) {
  constexpr std::string_view names[] = {"exact", "bound", "estimate", "folklore"};
  return names[static_cast<std::size_t>(certainty)];
}

std::string_view name_of(Engine engine) {
  constexpr std::string_view names[] = {"deepspeed", "underkeel", "both"};
  return names[static_cast<std::size_t>(engine)];
}

std::string amount(double size_bytes) {
  const double size = std::abs(size_bytes);
  // Borders lie where rounding would carry: 999.96 MB is 1.0 GB.
  if (size >= 0.9995e18) return fmt::format("{:.1f} EB", size_bytes / 1e18);
  if (size >= 0.9995e15) return fmt::format("{:.1f} PB", size_bytes / 1e15);
  if (size >= 0.9995e9) return fmt::format("{:.1f} GB", size_bytes / 1e9);
  if (size >= 0.9995e8) return fmt::format("{:.0f} MB", size_bytes / 1e6);
  if (size >= 0.9995e6) return fmt::format("{:.1f} MB", size_bytes / 1e6);
  if (size >= 0.9995e3) return fmt::format("{:.1f} KB", size_bytes / 1e3);
  return fmt::format("{:.0f} B", size_bytes);
}

std::string size_text(std::int64_t size_bytes) {
  return amount(static_cast<double>(size_bytes));
}

std::string capacity(std::int64_t size_bytes) {
  const std::string decimal = amount(static_cast<double>(size_bytes));
  const std::string binary = format_bytes(size_bytes);
  return decimal == binary ? decimal : fmt::format("{} ({})", decimal, binary);
}

}  // namespace underkeel::doctor

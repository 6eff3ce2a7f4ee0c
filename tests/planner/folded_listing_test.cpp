// The folded listing says everything that the complete one does: here it is unfolded by what its lines say, and has to
// give the same operations.

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/listing.h"
#include "support/planned.h"

namespace underkeel::planner {
namespace {

struct GroupLine {
  int first = 0;
  int last = 0;
  std::string text;  // lane, label, what
};
using Segments = std::map<std::string, std::vector<GroupLine>>;

std::string single_spaced(std::string text) {
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  return text;
}

std::string replace_all(std::string text, const std::regex& pattern, const auto& change) {
  std::string result;
  std::smatch match;
  while (std::regex_search(text, match, pattern)) {
    result += match.prefix();
    result += change(match);
    text = match.suffix();
  }
  return result + text;
}

class Unfold {
 public:
  explicit Unfold(const plan::Plan& plan) : plan_(plan) {
    std::istringstream lines(plan::folded_listing(plan));
    std::string line;
    std::string prefix;
    while (std::getline(lines, line)) {
      std::smatch match;
      if (std::regex_search(line, match, std::regex("^segment ([a-z.]+)"))) {
        segment_ = match[1];
        prefix.clear();
      } else if (std::regex_search(line, match, std::regex("^  with `([a-z.]+)` before"))) {
        prefix_of_[segment_] = match[1];
      } else if (std::regex_match(
                     line, match,
                     std::regex("^(\\d{4,})-(\\d{4,})[^:|]*: (each like|like) (.*)$"))) {
        repeat(std::stoi(match[1]), std::stoi(match[2]), match[4]);
      } else if (std::regex_match(line, match, std::regex("^(\\d{4,})(?:-(\\d{4,}))? +(.*)$"))) {
        const int first = std::stoi(match[1]);
        segments_[segment_].push_back(
            {first, match[2].matched ? std::stoi(match[2]) : first, match[3]});
      }
    }
  }

  /// The lines of the complete listing, with single spaces.
  std::vector<std::string> operations(const plan::Segment& segment) {
    std::vector<std::string> all;
    for (const GroupLine& group : segments_[std::string(name_of(segment.kind))])
      append_operations(group, all);
    return all;
  }
  std::string prefix(const plan::Segment& segment) {
    return prefix_of_[std::string(name_of(segment.kind))];
  }

 private:
  void repeat(int first, int last, const std::string& how) {
    int distance = 1;
    std::string source = segment_;
    std::smatch match;
    if (std::regex_search(how, match, std::regex("^the one (\\d+) before it")))
      distance = std::stoi(match[1]);
    else if (std::regex_search(how, match, std::regex("^(\\d+)-\\d+ of ([a-z.]+)"))) {
      distance = first - std::stoi(match[1]);
      source = match[2];
    } else {
      ASSERT_TRUE(how.starts_with("the one before it")) << how;
    }
    while (first <= last) {
      const auto& from = segments_[source];
      const auto at = std::find_if(from.begin(), from.end(), [&](const GroupLine& line) {
        return line.first == first - distance;
      });
      ASSERT_NE(at, from.end()) << segment_ << " " << first << " " << how;
      GroupLine made{at->first + distance, at->last + distance, moved(at->text, how, distance)};
      first = made.last + 1;
      segments_[segment_].push_back(std::move(made));
    }
  }

  std::string moved(std::string text, const std::string& how, int distance) const {
    const auto by = [&](const std::string& what) {
      std::smatch match;
      if (!std::regex_search(how, match,
                             std::regex(", (an?|[0-9,]+) " + what + "s? (further|back)")))
        return 0;
      std::string size = match[1];
      std::erase(size, ',');
      const int count = size[0] == 'a' ? 1 : std::stoi(size);
      return match[2] == "back" ? -count : count;
    };
    const auto stays = [&](const std::string& word) {
      const auto at = how.find(';');
      return at != std::string::npos &&
             std::regex_search(how.substr(at), std::regex("[ ]" + word + " "));
    };
    text = replace_all(text, std::regex("(after |, )(\\d{4,}) "), [&](const std::smatch& m) {
      return fmt::format("{}{:04} ", m[1].str(), std::stoi(m[2]) + distance);
    });
    const int layers = by("layer");
    text = replace_all(
        text, std::regex("([\\w.]*layers\\.)(\\d+)([\\w.]*)"), [&](const std::smatch& m) {
          return stays(m[0]) ? m[0].str()
                             : m[1].str() + std::to_string(std::stoi(m[2]) + layers) + m[3].str();
        });
    if (const int units = by("unit"); units != 0) text = of_unit(text, units);
    text = pairs(text, "\\(", ":", ", ", by("row"));
    text = pairs(text, "\\[", ":", "\\]", by("element"));
    text = pairs(text, " ", "-", " |$", by("element"));
    const int slots = by("slot");
    text = replace_all(text, std::regex("\\[(\\d+)\\]"), [&](const std::smatch& m) {
      return "[" + std::to_string(std::stoi(m[1]) + slots) + "]";
    });
    const int chunks = by("chunk");
    return replace_all(text, std::regex("chunk (\\d+)"), [&](const std::smatch& m) {
      return "chunk " + std::to_string(std::stoi(m[1]) + chunks);
    });
  }

  /// Both numbers of a range moved on.
  static std::string pairs(const std::string& text, const std::string& before,
                           const std::string& between, const std::string& behind, int by) {
    if (by == 0) return text;
    return replace_all(text,
                       std::regex("(" + before + ")(\\d+)" + between + "(\\d+)(?=" + behind + ")"),
                       [&](const std::smatch& m) {
                         return fmt::format("{}{}{}{}", m[1].str(), std::stoll(m[2]) + by, between,
                                            std::stoll(m[3]) + by);
                       });
  }

  /// Each unit's name becomes that of another one, and its shard's elements the other's.
  std::string of_unit(const std::string& text, int by) const {
    static const std::regex name_or_shard("([A-Za-z_][\\w.]*)|([:(-])(\\d+)(?=[\\]) ]|$)");
    const std::vector<plan::Unit>& units = plan_.schedule.units;
    std::size_t last = 0;
    return replace_all(text, name_or_shard, [&](const std::smatch& m) {
      const std::string word = m[1];
      for (std::size_t i = 0; i < units.size(); ++i)
        if (word == units[i].name || word.starts_with(units[i].name + ".")) {
          last = i;
          return units.at(i + static_cast<std::size_t>(by)).name +
                 word.substr(units[i].name.size());
        }
      const plan::Unit& to = units.at(last + static_cast<std::size_t>(by));
      if (m[3] == std::to_string(units[last].shard_elements))
        return m[2].str() + std::to_string(to.shard_elements);
      return m[0].str();
    });
  }

  void append_operations(const GroupLine& group, std::vector<std::string>& all) const {
    std::vector<std::string> parts;
    std::string rest = group.text;
    for (std::size_t at; (at = rest.find("  | ")) != std::string::npos; rest = rest.substr(at + 4))
      parts.push_back(rest.substr(0, at));
    parts.push_back(rest);
    const std::string lane = parts[0].substr(0, parts[0].find(' '));
    std::vector<std::string> begins, ends;
    std::string operation = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].starts_with("+ ") || parts[i].starts_with("- ")) {
        auto& own = parts[i][0] == '+' ? begins : ends;
        own.push_back(lane + " " + part_operation(parts[i]));
      } else {
        operation += " | " + parts[i];
      }
    }
    int position = group.first;
    const auto add = [&](const std::string& what) {
      all.push_back(fmt::format("{:04} {}", position++, single_spaced(what)));
    };
    for (const std::string& one : begins) add(one);
    if (position + static_cast<int>(ends.size()) <= group.last) add(operation);
    for (const std::string& one : ends) add(one);
    EXPECT_EQ(position, group.last + 1) << group.text;
  }

  /// "+ x 2.0 KiB (after 0001 a; entry `b`)" is "+ x activations 2.0 KiB | after 0001 a | entry `b`".
  static std::string part_operation(std::string part) {
    std::string conditions;
    if (const auto at = part.find(" ("); at != std::string::npos) {
      conditions = " | " + std::regex_replace(part.substr(at + 2, part.size() - at - 3),
                                              std::regex("; "), " | ");
      part.resize(at);
    }
    std::smatch match;
    if (part[0] == '+' &&
        !std::regex_search(
            part,
            std::regex(
                " (weights|gradients|optimizer|gathered|staging|workspace) [0-9.]+ [KMG]?i?B$")) &&
        std::regex_match(part, match, std::regex("(.*) ([0-9.]+ [KMG]?i?B)")))
      part = match[1].str() + " activations " + match[2].str();
    return part + conditions;
  }

  const plan::Plan& plan_;
  std::string segment_;
  Segments segments_;
  std::map<std::string, std::string> prefix_of_;
};

std::vector<std::string> complete(const plan::Plan& plan, const plan::Segment& segment,
                                  const std::string& prefix) {
  std::istringstream lines(plan::listing(plan.schedule, segment));
  std::vector<std::string> all;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    line = single_spaced(line);
    for (std::size_t at; !prefix.empty() && (at = line.find(prefix)) != std::string::npos;)
      line.erase(at, prefix.size());
    all.push_back(line);
  }
  return all;
}

void expect_unfolds(const Request& request) {
  const plan::Plan plan = make_plan(request);

  Unfold folded(plan);

  for (const plan::Segment& segment : plan.schedule.segments)
    EXPECT_EQ(folded.operations(segment), complete(plan, segment, folded.prefix(segment)))
        << name_of(segment.kind);
}

Request layers_request(std::int64_t layers, int stage) {
  Request request = test::two_layer_request(stage);
  request.model.layers = layers;
  request.model.windows.assign(static_cast<std::size_t>(layers), 0);
  return request;
}

TEST(FoldedListing, UnfoldsToTheCompleteOneAtEveryStage) {
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    Request request = layers_request(4, stage);
    request.recompute = stage % 2 == 0 ? spec::Recompute::cheap : spec::Recompute::block;
    expect_unfolds(request);
  }
}

TEST(FoldedListing, UnfoldsWithChunksMastersAndOneRank) {
  Request request = layers_request(3, 2);
  request.world_size = 1;
  request.weight_type = DType::bf16;
  request.max_rows = 4096;
  request.model.vocabulary = 32000;
  expect_unfolds(request);
  request.model.tied_head = true;
  request.world_size = 2;
  request.stage = 3;
  request.accumulation_steps = 1;
  expect_unfolds(request);
}

TEST(FoldedListing, UnfoldsOnAGpuWithManyPieces) {
  Request request = layers_request(4, 3);
  request.on_gpu = true;
  request.weight_type = DType::bf16;
  request.model.width = 512;
  request.model.feed_forward = 2048;
  request.model.head_width = 128;
  request.max_rows = 1024;
  expect_unfolds(request);
}

TEST(FoldedListing, IsHardlyLongerForMoreLayers) {
  const auto line_count = [](std::int64_t layers) {
    const std::string text = plan::folded_listing(make_plan(layers_request(layers, 3)));
    return static_cast<double>(std::count(text.begin(), text.end(), '\n'));
  };

  // Not as long as with few: where gathered units lie, and so what they wait for, need not repeat from layer to layer.
  EXPECT_LT(line_count(40), 1.25 * line_count(8));
}

TEST(FoldedListing, SaysWhatMovesAndWhatStays) {
  Request request = layers_request(6, 3);
  request.recompute = spec::Recompute::block;

  const std::string text = plan::folded_listing(make_plan(request));

  EXPECT_THAT(
      text,
      ::testing::ContainsRegex(
          "of layers\\.[0-9]\\.\\.[0-9]: each like the one [0-9]+ before it, a layer further\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("a layer back; d\\.layers\\.5\\.out stays\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("before it, a unit further\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("  layers.0..5 "));
  EXPECT_THAT(text, ::testing::HasSubstr("  layers.1..5       the same, "));
}

}  // namespace
}  // namespace underkeel::planner

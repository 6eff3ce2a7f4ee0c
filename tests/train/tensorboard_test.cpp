#include "train/tensorboard.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using test::value_of;

std::uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

// RFC 3720, appendix B.4, and the check value of the polynomial.
TEST(Crc32c, IsThatOfThePublishedVectors) {
  EXPECT_EQ(crc_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc_of(std::string(32, '\xFF')), 0x62A8AB43u);
}

/// A reader of its own for records and the messages in them.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}
  bool at_end() const { return bytes_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view bytes() { return take(varint()); }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw std::runtime_error("short message");
    const std::string_view head = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return head;
  }

 private:
  std::string_view bytes_;
};

struct Event {
  double wall_time_s = 0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

Event event_of(std::string_view bytes) {
  Event event;
  for (Message message(bytes); !message.at_end();) {
    switch (const auto key = message.varint()) {
      case 1 << 3 | 1:
        event.wall_time_s = message.fixed<double>();
        break;
      case 2 << 3:
        event.step = message.varint();
        break;
      case 3 << 3 | 2:
        event.version = message.bytes();
        break;
      case 5 << 3 | 2:
        for (Message summary(message.bytes()); !summary.at_end();) {
          EXPECT_EQ(summary.varint(), 1u << 3 | 2u);
          Message value(summary.bytes());
          EXPECT_EQ(value.varint(), 1u << 3 | 2u);
          const std::string tag(value.bytes());
          EXPECT_EQ(value.varint(), 2u << 3 | 5u);
          event.values[tag] = value.fixed<float>();
        }
        break;
      default:
        ADD_FAILURE() << "key " << key;
        return event;
    }
  }
  return event;
}

std::vector<Event> events_of(const std::string& file) {
  const auto unmasked = [](std::uint32_t masked) {
    const std::uint32_t turned = masked - 0xA282EAD8u;
    return (turned << 15) | (turned >> 17);
  };
  std::vector<Event> events;
  for (Message records(file); !records.at_end();) {
    const std::string_view size = records.take(8);
    EXPECT_EQ(unmasked(records.fixed<std::uint32_t>()), crc_of(size));
    const std::string_view data = records.take(Message(size).fixed<std::uint64_t>());
    EXPECT_EQ(unmasked(records.fixed<std::uint32_t>()), crc_of(data));
    events.push_back(event_of(data));
  }
  return events;
}

TEST(Tensorboard, HoldsEveryValueUnderTheTrainersTags) {
  test::TemporaryFolder folder;
  io::FileSystem files;
  {
    auto file = value_of(TensorboardFile::create(files, (folder / "runs/a").string(), 1000));
    value_of(file.append(
        {.kind = LogEntry::Kind::training, .step = 300, .epoch = 0.5, .values = {2.0, 1e-3, 4.5}},
        1001));
    value_of(file.append(
        {.kind = LogEntry::Kind::evaluation, .step = 300, .epoch = 0.5, .values = {3.25, 1, 2, 3}},
        1002.5));
  }

  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "runs/a"))
    names.push_back(entry.path().filename().string());
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names[0].starts_with("events.out.tfevents.1000.")) << names[0];
  const auto events = events_of(test::read_text(folder / "runs/a" / names[0]));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 300u);
  EXPECT_EQ(events[1].wall_time_s, 1001.0);
  EXPECT_EQ(events[1].values, (std::map<std::string, float>{{"train/loss", 4.5f},
                                                            {"train/grad_norm", 2.0f},
                                                            {"train/learning_rate", 1e-3f},
                                                            {"train/epoch", 0.5f}}));
  EXPECT_EQ(events[2].wall_time_s, 1002.5);
  EXPECT_EQ(events[2].values.at("eval/loss"), 3.25f);
  EXPECT_EQ(events[2].values.at("eval/samples_per_second"), 2.0f);
}

}  // namespace
}  // namespace underkeel::train

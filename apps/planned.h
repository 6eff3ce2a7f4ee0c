#pragma once
// RUN.yaml and its flags made into a plan, with all that is known about it: what `plan` and `report` share.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint_space.h"
#include "plan/plan.h"
#include "planner/fit.h"
#include "render/render.h"
#include "run_arguments.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::apps {

struct PlanWords {
  std::shared_ptr<RunArguments> run;
  std::string hardware;        // a file; empty: this machine
  bool data = false;           // plan for what the data are
  bool asks_disk_here = true;  // of this machine, where none is described
};

/// What reading the data told.
struct DataFacts {
  std::string report;
  std::int64_t sample_count = 0;  // of the training set
  std::int64_t evaluation_sample_count = 0;
};

/// A run on a machine, before it is planned.
struct Asked {
  spec::RunConfig config;
  spec::ModelSpec model;
  spec::HardwareSpec machine;
  std::optional<DataFacts> data;  // when they were read

  /// Of this value, which must outlive it.
  planner::FitQuestion question() const;
};

/// What the run wants of the disk of its output folder, and the free bytes of that disk where they are known.
struct DiskOutlook {
  std::optional<std::int64_t> free_bytes;
  std::string source;  // of that figure
  io::SpaceNeed need;

  bool is_short() const;
  render::Saves saves() const;
};

struct Planned {
  spec::RunConfig config;
  spec::ModelSpec model;
  spec::HardwareSpec machine;
  plan::Plan plan;
  planner::Room room;
  std::vector<planner::Shortage> shortages;
  planner::Advice advice;
  render::Outlook outlook;
  std::optional<DataFacts> data;  // when they were read
  DiskOutlook disk;
};

/// Reads the run file, with the changes of the command line, the model's description, the machine and, where asked, the
/// data. `budgets` hold besides those of the run, the smaller of two; readings of the same file with more words keep them.
Result<Asked> read_question(const PlanWords& words, const std::vector<SpaceBudget>& budgets = {});

/// "out_free_gib of hardware.yaml": where the free bytes of the disk are from.
std::string disk_source(const PlanWords& words);

/// Reads the same, and plans. A plan that does not fit, memory or disk, is a value; Planned::outlook says so.
Result<Planned> make_planned(const PlanWords& words);

/// "device", "host" (of a node): as JSON and pages name what is short.
std::string short_name(std::optional<plan::MemorySpace> space);

/// Errors: does_not_fit, as the user sees it: all that is short of memory and disk, and what would fit.
Result<void> check_fits(const Planned& made);

/// --hardware and --data.
void add_plan_flags(CLI::App& command, PlanWords& words);

}  // namespace underkeel::apps

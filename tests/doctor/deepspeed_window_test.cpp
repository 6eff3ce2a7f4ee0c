// The window of gathered parameters against what DeepSpeed's own coordinator did with the sizes of Llama-2-7B, and the
// groups in which gradients are reduced.

#include "doctor/deepspeed_window.h"

#include <gtest/gtest.h>

#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

Window window_with(const ModelSizes& sizes, double prefetch, double max_live, double reuse) {
  DeepspeedSettings settings;
  settings.stage = 3;
  settings.prefetch_bucket = prefetch;
  settings.max_live = max_live;
  settings.max_reuse_distance = reuse;
  return window_of({.sizes = sizes, .settings = settings, .ranks = 2});
}

TEST(DeepspeedWindow, IsAsLargeAsTheCoordinatorMadeIt) {
  const ModelSizes sizes = sizes_of(llama_2_7b());

  EXPECT_NEAR(window_with(sizes, 5e7, 1e9, 1e9).most, 1.126e9, 0.01e9);
  EXPECT_NEAR(window_with(sizes, 0.9 * 4096 * 4096, 1e9, 1e9).most, 1.126e9, 0.05e9);
  EXPECT_NEAR(window_with(sizes, 5e7, 3e8, 1e9).most, 0.50e9, 0.025e9);
}

TEST(DeepspeedWindow, IsOneModuleWithoutFetchingAheadAndReuse) {
  const ModelSizes sizes = sizes_of(llama_2_7b());

  EXPECT_EQ(window_with(sizes, 0, 1e9, 0).most, 131072000);
}

TEST(DeepspeedWindow, ReducesEachGradientOnce) {
  for (const bool tied : {false, true}) {
    const ModelSizes sizes = sizes_of(model_of({.vocabulary = 1024,
                                                .width = 256,
                                                .layers = 8,
                                                .feed_forward = 704,
                                                .query_heads = 4,
                                                .key_heads = 4,
                                                .tied = tied}));
    DeepspeedSettings settings;
    settings.stage = 2;
    settings.reduce_bucket = 600'000;
    const DeepspeedRun run{.sizes = sizes, .settings = settings, .ranks = 2};

    for (const auto& reductions : {window_of(run).reductions, reductions_in_order(run)}) {
      double elements = 0;
      for (const Reduction& reduction : reductions) {
        EXPECT_LE(reduction.elements, settings.reduce_bucket);
        elements += reduction.elements;
      }
      EXPECT_EQ(elements, sizes.trainable);
    }
  }
}

TEST(DeepspeedWindow, ReducesAloneWhatNoBucketHolds) {
  const ModelSizes sizes = sizes_of(llama_2_7b());
  DeepspeedSettings settings;
  settings.stage = 2;
  settings.reduce_bucket = 1e7;

  for (const Reduction& reduction : window_of({.sizes = sizes, .settings = settings}).reductions)
    EXPECT_TRUE(reduction.elements <= 1e7 || reduction.count == 1) << reduction.elements;
}

}  // namespace
}  // namespace underkeel::doctor

// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_flags.h"

#include <limits>
#include <string>

#include "core/base/flag_checks.h"

namespace outrider {
namespace {

constexpr char kOfCoordinator[] = ";\ndefault: the coordinator's";

void AddMinProbability(CLI::App& app, std::optional<double>& value,
                       const std::string& otherwise) {
  app.add_option("--min-draft-probability", value,
                 "draft fewer than K tokens where the drafter is unsure:\n"
                 "stop once the probability of its first choices,\n"
                 "multiplied, is below this; 0: never" +
                     otherwise)
      ->type_name("P")
      ->check(NumberIn(kMinDraftProbabilities));
}

template <typename Number>
CLI::Option* AddSupportMass(CLI::App& app, Number& value,
                            const std::string& otherwise) {
  return app
      .add_option("--draft-support-mass", value,
                  "draft rows are cut to the most probable tokens that have\n"
                  "this mass: more costs bytes, less acceptance; 1: to\n"
                  "--draft-support-size alone" +
                      otherwise)
      ->type_name("M")
      ->check(NumberIn(kSupportMasses));
}

template <typename Number>
CLI::Option* AddSupportSize(CLI::App& app, Number& value,
                            const std::string& otherwise) {
  return app
      .add_option("--draft-support-size", value,
                  "and to no more tokens than this" + otherwise)
      ->type_name("N");
}

}  // namespace

void AddDraftOptionFlags(CLI::App& app, DraftOptions& options) {
  AddMinDraftProbabilityFlag(app, options.min_draft_probability);
  AddSupportMass(app, options.support_mass, "")->capture_default_str();
  AddSupportSize(app, options.support_size, "; 0: whole rows")
      ->check(WholeNumberIn(0, kMaxSupportSize))
      ->capture_default_str();
}

void AddDraftOptionFlags(CLI::App& app, DraftOverrides& options) {
  AddMinProbability(app, options.min_draft_probability, kOfCoordinator);
  AddSupportMass(app, options.support_mass, kOfCoordinator);
  // A vocabulary is the limit, which only the coordinator knows.
  AddSupportSize(app, options.support_size, kOfCoordinator)
      ->check(WholeNumberIn(1, std::numeric_limits<int>::max()));
}

void AddMinDraftProbabilityFlag(CLI::App& app,
                                std::optional<double>& probability) {
  AddMinProbability(app, probability,
                    ";\ndefault: chosen with K by -k auto, else never");
}

}  // namespace outrider

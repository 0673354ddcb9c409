// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_RESULTS_FILE_H_
#define OUTRIDER_BENCH_REPORT_RESULTS_FILE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/baselines.h"
#include "bench/load/measurement.h"

namespace outrider::bench {

// What a run was made with: name and value, in the order of reports. The first
// `num_binding` of them decide a result; a resumed run has to repeat them.
struct Configuration {
  std::vector<std::pair<std::string, std::string>> binding = {};
  std::vector<std::pair<std::string, std::string>> notes = {};  // of results
  bool is_simulated = false;
  bool shares_processors = false;  // models that compute on one machine
  bool is_lossy = false;  // accepted with a lenience: not the target's law

  // Hex; of what is binding.
  std::string Fingerprint() const;
};

// One line of results.jsonl, without its newline.
std::string ToJsonLine(const Measurement& measurement,
                       const std::string& fingerprint);
// INVALID_ARGUMENT: not a line of ours, or of another configuration.
absl::StatusOr<Measurement> FromJsonLine(const std::string& line,
                                         const std::string& fingerprint);

// A folder of results: results.jsonl grows by one line a point, at once, so
// that nothing is lost whatever happens.
class ResultsFile {
 public:
  // Makes the folder where it is not there. ALREADY_EXISTS: it has results and
  // `resume` is not set; INVALID_ARGUMENT: they are of another configuration;
  // PERMISSION_DENIED: it cannot be written.
  static absl::StatusOr<std::unique_ptr<ResultsFile>> Open(
      const std::string& folder, const Configuration& configuration,
      bool resume);

  const std::vector<Measurement>& measurements() const { return measurements_; }
  bool Has(const Point& point) const;
  Baselines BaselinesOf(const Point& point) const;
  absl::Status Append(const Measurement& measurement);
  // Writes a file of the folder whole.
  absl::Status Write(const std::string& name, const std::string& text) const;

 private:
  ResultsFile(std::string folder, std::string fingerprint);
  absl::Status ReadOld();
  const Measurement* Find(const Point& point) const;  // null: not there
  // A point measured again takes the place of the old one.
  void Insert(const Measurement& measurement);

  const std::string folder_;
  const std::string fingerprint_;
  std::vector<Measurement> measurements_;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_RESULTS_FILE_H_

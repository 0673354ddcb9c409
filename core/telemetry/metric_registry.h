// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TELEMETRY_METRIC_REGISTRY_H_
#define OUTRIDER_CORE_TELEMETRY_METRIC_REGISTRY_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>

namespace outrider {

// The metrics of one process, under the prefix `outrider_`, each with the
// labels given here. Exception: names that begin with `process_`, which all
// programs' metrics have in common. What is added lives as long as the
// registry, and counting is an atomic addition. Metrics are added before the
// registry is served; thread-safe afterwards.
class MetricRegistry {
 public:
  using Labels = prometheus::Labels;

  explicit MetricRegistry(Labels labels);
  ~MetricRegistry();

  // A name comes without prefix, with its unit, and, for a counter, with
  // "_total". The same name may be added again with other labels.
  prometheus::Counter& AddCounter(const std::string& name,
                                  const std::string& help, Labels labels = {});
  prometheus::Gauge& AddGauge(const std::string& name, const std::string& help,
                              Labels labels = {});
  // Its buckets are DurationBuckets().
  prometheus::Histogram& AddDuration(const std::string& name,
                                     const std::string& help,
                                     Labels labels = {});

  // A value that is asked for at each scrape; `read` must be thread-safe and
  // outlive the registry's use.
  enum class Kind { kCounter, kGauge };
  struct Source {
    std::string name = {};
    std::string help = {};
    Kind kind = Kind::kGauge;
    Labels labels = {};
    std::function<double()> read = {};
  };
  void AddSource(Source source);

  // A histogram that someone else keeps; it must outlive the registry's use.
  void AddDurationSource(const std::string& name, const std::string& help,
                         Labels labels, const prometheus::Histogram& histogram);

  // They go from 100 us to 60 s.
  static const prometheus::Histogram::BucketBoundaries& DurationBuckets();

  // All of them in the Prometheus text format, version 0.0.4.
  std::string Serialize() const;

 private:
  class Sources;

  const Labels labels_;
  prometheus::Registry registry_;
  const std::unique_ptr<Sources> sources_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TELEMETRY_METRIC_REGISTRY_H_

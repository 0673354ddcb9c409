// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/metric_registry.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace outrider {
namespace {

std::string FullName(const std::string& name) {
  return absl::StartsWith(name, "process_") ? name : "outrider_" + name;
}

}  // namespace

const prometheus::Histogram::BucketBoundaries&
MetricRegistry::DurationBuckets() {
  static const prometheus::Histogram::BucketBoundaries kSeconds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
      0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
  return kSeconds;
}

class MetricRegistry::Sources {
 public:
  using Collector = std::function<prometheus::ClientMetric()>;

  void Add(const std::string& name, const std::string& help,
           prometheus::MetricType type, Labels labels, Collector collect) {
    const std::string full_name = FullName(name);
    auto family = std::find_if(
        families_.begin(), families_.end(),
        [&](const Family& other) { return other.name == full_name; });
    if (family == families_.end()) {
      family = families_.insert(families_.end(), {full_name, help, type, {}});
    }
    family->members.push_back({std::move(labels), std::move(collect)});
  }

  std::vector<prometheus::MetricFamily> Collect() const {
    std::vector<prometheus::MetricFamily> collected;
    for (const Family& family : families_) {
      prometheus::MetricFamily& all = collected.emplace_back();
      all.name = family.name;
      all.help = family.help;
      all.type = family.type;
      for (const Member& member : family.members) {
        prometheus::ClientMetric& metric =
            all.metric.emplace_back(member.collect());
        for (const auto& [name, value] : member.labels) {
          prometheus::ClientMetric::Label& label = metric.label.emplace_back();
          label.name = name;
          label.value = value;
        }
      }
    }
    return collected;
  }

 private:
  struct Member {
    Labels labels;
    Collector collect;
  };
  struct Family {
    std::string name;
    std::string help;
    prometheus::MetricType type;
    std::vector<Member> members;
  };

  std::vector<Family> families_;
};

MetricRegistry::MetricRegistry(Labels labels)
    : labels_(std::move(labels)),
      registry_(prometheus::Registry::InsertBehavior::Merge),
      sources_(std::make_unique<Sources>()) {}

MetricRegistry::~MetricRegistry() = default;

prometheus::Counter& MetricRegistry::AddCounter(const std::string& name,
                                                const std::string& help,
                                                Labels labels) {
  return prometheus::BuildCounter()
      .Name(FullName(name))
      .Help(help)
      .Labels(labels_)
      .Register(registry_)
      .Add(labels);
}

prometheus::Gauge& MetricRegistry::AddGauge(const std::string& name,
                                            const std::string& help,
                                            Labels labels) {
  return prometheus::BuildGauge()
      .Name(FullName(name))
      .Help(help)
      .Labels(labels_)
      .Register(registry_)
      .Add(labels);
}

prometheus::Histogram& MetricRegistry::AddDuration(const std::string& name,
                                                   const std::string& help,
                                                   Labels labels) {
  return prometheus::BuildHistogram()
      .Name(FullName(name))
      .Help(help)
      .Labels(labels_)
      .Register(registry_)
      .Add(labels, DurationBuckets());
}

void MetricRegistry::AddSource(Source source) {
  const bool is_counter = source.kind == Kind::kCounter;
  source.labels.insert(labels_.begin(), labels_.end());
  sources_->Add(
      source.name, source.help,
      is_counter ? prometheus::MetricType::Counter
                 : prometheus::MetricType::Gauge,
      std::move(source.labels), [is_counter, read = std::move(source.read)] {
        prometheus::ClientMetric metric;
        (is_counter ? metric.counter.value : metric.gauge.value) = read();
        return metric;
      });
}

void MetricRegistry::AddDurationSource(const std::string& name,
                                       const std::string& help, Labels labels,
                                       const prometheus::Histogram& histogram) {
  labels.insert(labels_.begin(), labels_.end());
  sources_->Add(name, help, prometheus::MetricType::Histogram,
                std::move(labels),
                [&histogram] { return histogram.Collect(); });
}

std::string MetricRegistry::Serialize() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (prometheus::MetricFamily& family : sources_->Collect()) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace outrider

// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/metric_registry.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace outrider {
namespace {

std::string FullName(const std::string& name) { return "outrider_" + name; }

}  // namespace

class MetricRegistry::Sources {
 public:
  void Add(Source source, Labels labels) {
    const std::string name = FullName(source.name);
    auto family =
        std::find_if(families_.begin(), families_.end(),
                     [&](const Family& other) { return other.name == name; });
    if (family == families_.end()) {
      family = families_.insert(
          families_.end(),
          {.name = name, .help = source.help, .kind = source.kind});
    }
    labels.merge(source.labels);
    family->members.push_back({std::move(labels), std::move(source.read)});
  }

  std::vector<prometheus::MetricFamily> Collect() const {
    std::vector<prometheus::MetricFamily> collected;
    for (const Family& family : families_) {
      const bool is_counter = family.kind == Kind::kCounter;
      prometheus::MetricFamily& all = collected.emplace_back();
      all.name = family.name;
      all.help = family.help;
      all.type = is_counter ? prometheus::MetricType::Counter
                            : prometheus::MetricType::Gauge;
      for (const Member& member : family.members) {
        prometheus::ClientMetric& metric = all.metric.emplace_back();
        for (const auto& [name, value] : member.labels) {
          prometheus::ClientMetric::Label& label = metric.label.emplace_back();
          label.name = name;
          label.value = value;
        }
        (is_counter ? metric.counter.value : metric.gauge.value) =
            member.read();
      }
    }
    return collected;
  }

 private:
  struct Member {
    Labels labels;
    std::function<double()> read;
  };
  struct Family {
    std::string name = {};
    std::string help = {};
    Kind kind = Kind::kGauge;
    std::vector<Member> members = {};
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
  static const prometheus::Histogram::BucketBoundaries kSeconds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
      0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
  return prometheus::BuildHistogram()
      .Name(FullName(name))
      .Help(help)
      .Labels(labels_)
      .Register(registry_)
      .Add(labels, kSeconds);
}

void MetricRegistry::AddSource(Source source) {
  sources_->Add(std::move(source), labels_);
}

std::string MetricRegistry::Serialize() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (prometheus::MetricFamily& family : sources_->Collect()) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace outrider

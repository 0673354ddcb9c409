// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <utility>

#include "core/rpc/status_convert.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace outrider {
namespace {

// So many go on at a time, as each may have a message in memory that is not
// here whole, and is read for as long as its client likes.
constexpr int kMostDialogues = 8;

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ExtensionRequest;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

void SetNotFound(const char* what, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(
      grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message(what);
}

// The file and, after it, those that it imports.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
             ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
}

void SetFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr) return SetNotFound("no such file or name", response);
  std::set<const FileDescriptor*> added;
  AddFile(*file, added, response);
}

const FileDescriptor* FileOfExtension(const ExtensionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type =
      pool.FindMessageTypeByName(request.containing_type());
  if (type == nullptr) return nullptr;
  const FieldDescriptor* extension =
      pool.FindExtensionByNumber(type, request.extension_number());
  return extension == nullptr ? nullptr : extension->file();
}

void SetExtensionNumbers(const std::string& type_name,
                         ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type = pool.FindMessageTypeByName(type_name);
  if (type == nullptr) return SetNotFound("no such message", response);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type_name);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  for (const FieldDescriptor* extension : extensions) {
    answer.add_extension_number(extension->number());
  }
}

ServerReflectionResponse AnswerTo(const ServerReflectionRequest& request,
                                  const std::set<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
              response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      SetFile(FileOfExtension(request.file_containing_extension()), response);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(
          grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message(
          "the request asks nothing");
      break;
  }
  return response;
}

}  // namespace

// A call: a question, its answer, and the next question once that is written.
class ReflectionService::Dialogue final : public ServerCall::Companion {
 public:
  Dialogue(ReflectionService& service, ServerCall& call)
      : service_(service), call_(call) {
    ++service_.num_dialogues_;
  }
  ~Dialogue() override { --service_.num_dialogues_; }

  void Answer(const ServerReflectionRequest& request) {
    call_.Write(AnswerTo(request, service_.services_));
  }
  void OnWritten(bool ok) override { ok ? call_.Read() : End(); }
  void OnRead(bool ok) override {
    ServerReflectionRequest request;
    if (!ok) return End();
    const absl::Status parsed = call_.Parse(request);
    parsed.ok() ? Answer(request) : call_.Finish(ToGrpcStatus(parsed));
  }

 private:
  void End() { call_.Finish(grpc::Status::OK); }

  ReflectionService& service_;
  ServerCall& call_;
};

std::vector<RpcMethod> ReflectionService::Methods() {
  return {Small(MethodOf<ServerReflectionRequest>(
      "grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo",
      [this](ServerCall& call, const ServerReflectionRequest& request) {
        auto dialogue = std::make_unique<Dialogue>(*this, call);
        Dialogue* const begun = dialogue.get();
        call.Accompany(std::move(dialogue));
        if (num_dialogues_ > kMostDialogues) {
          call.Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "too many calls of this method at the same time"});
        } else {
          begun->Answer(request);
        }
      }))};
}

void ReflectionService::Add(const RpcMethod& method) {
  services_.insert(method.path.substr(1, method.path.rfind('/') - 1));
}

}  // namespace outrider

// "own", a device for PyTorch in one file.
//
// It keeps its tensors in memory of its own (host memory under another label,
// so that every laptop has it) and lets the CPU compute. PyTorch reserves the
// dispatch key PrivateUse1 for devices from outside; the pieces that such a
// device registers follow: memory, guard, hooks, making and copying tensors,
// one kernel, the fallback, and PyTorch's own functions for views.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr auto OWN = c10::DeviceType::PrivateUse1;

// TORCH_OWN_WITHOUT=<piece> leaves that piece out, to see what it is for.
bool wanted(const std::string& piece) {
  const char* without = std::getenv("TORCH_OWN_WITHOUT");
  return !without || piece != without;
}

// --- memory ----------------------------------------------------------------

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    void* data = n ? c10::alloc_cpu(n) : nullptr;
    return {data, data, &c10::free_cpu, c10::Device(OWN, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &c10::free_cpu; }
  void copy_data(void* to, const void* from, size_t n) const override {
    default_copy_data(to, from, n);
  }
};

Memory memory;
REGISTER_ALLOCATOR(OWN, &memory);

// --- guard: the current device and its stream; there is one of each --------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return OWN; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return {OWN, 0}; }
  c10::Device exchangeDevice(c10::Device) const override {
    return getDevice();
  }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(OWN, 0));
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return stream;
  }
  // Newer than 2.5, hence no `override`; all work is done already.
  void synchronizeDevice(c10::DeviceIndex) const {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// --- hooks: what autograd and torch.accelerator ask a device ---------------

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
};

// --- making and copying tensors --------------------------------------------

using Sizes = at::IntArrayRef;
template <class T> using Maybe = std::optional<T>;

constexpr c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

at::Tensor empty(Sizes size, Maybe<at::ScalarType> dtype, Maybe<at::Layout>,
                 Maybe<at::Device>, Maybe<bool>,
                 Maybe<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, KEYS,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(Sizes size, Sizes stride,
                         Maybe<at::ScalarType> dtype, Maybe<at::Layout>,
                         Maybe<at::Device>, Maybe<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, KEYS,
                                           c10::dtype_or_default(dtype));
}

// A CPU tensor on the same memory: possible because it is host memory.
at::Tensor on_cpu(const at::Tensor& x) {
  return x.is_cpu() ? x
                    : at::from_blob(x.data_ptr(), x.sizes(), x.strides(),
                                    x.options().device(at::kCPU));
}

std::mutex counting;  // operators may run in several threads
std::map<std::string, int64_t> counts;

void count(const std::string& what, int64_t n) {
  std::lock_guard<std::mutex> lock(counting);
  counts[what] += n;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_cpu(to).copy_(on_cpu(from));
  count("bytes copied", static_cast<int64_t>(from.nbytes()));
  return to;
}

// The fallback writes back with this what an operator did to its argument.
at::Tensor copy_from_and_resize(const at::Tensor& from,
                                const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    to.resize_(from.sizes());
  }
  return copy_from(from, to, false);
}

// --- a kernel --------------------------------------------------------------

at::Tensor relu(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x), view = on_cpu(out);
  at::clamp_min_out(view, on_cpu(x), 0);
  return out;
}

// --- the fallback: copy to the CPU, compute there, copy back ---------------

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(c10::toString(op.operator_name()), 1);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// --- registration: happens when the library is loaded ----------------------

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  auto add = [&m](const char* name, auto* kernel) {
    if (wanted(name)) {
      m.impl(name, kernel);
    }
  };
  add("empty.memory_format", &empty);
  add("empty_strided", &empty_strided);
  add("_copy_from", &copy_from);
  add("_copy_from_and_resize", &copy_from_and_resize);
  add("relu", &relu);
  // These only touch sizes and strides: PyTorch's own do for any device.
  add("view", &at::native::view);
  add("as_strided", &at::native::as_strided_tensorimpl);
  add("_reshape_alias", &at::native::_reshape_alias);
  add("unfold", &at::native::unfold);
  add("resize_", &at::native::resize_);
  add("set_.source_Storage", &at::native::set_);
  add("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  if (wanted("hooks")) {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
  }
}

// torch.ops.own.counts(): how often each operator fell back, bytes copied.
TORCH_LIBRARY(own, m) {
  m.def("counts", [] {
    std::lock_guard<std::mutex> lock(counting);
    c10::Dict<std::string, int64_t> copy;
    for (const auto& [name, n] : counts) {
      copy.insert(name, n);
    }
    counts.clear();
    return copy;
  });
}

}  // namespace

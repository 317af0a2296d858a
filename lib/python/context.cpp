// context.cpp - the type _core.Context, and the context of calls that name none.
#include <cstdlib>
#include <cstring>

#include "call.hpp"

namespace lockstep::python {
namespace {

context_object* as_context(PyObject* object) { return reinterpret_cast<context_object*>(object); }

state* state_of_type(PyTypeObject* type) { return static_cast<state*>(PyType_GetModuleState(type)); }

// A subclass made in Python has no module state of its own; its base has.
state* state_of_object(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  state* s = nullptr;
  while (type && !(s = state_of_type(type))) {
    PyErr_Clear();
    type = static_cast<PyTypeObject*>(PyType_GetSlot(type, Py_tp_base));
  }
  return s;
}

void destroy(context_object* c) {
  lockstep_context* const handle = take<lockstep_context*>(c->handle, nullptr);
  if (!handle) return;
  const without_gil released;
  lockstep_context_destroy(handle);
}

bool names_cpu(const char* backend) { return backend && std::strncmp(backend, "cpu", 3) == 0; }

int context_init(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"backend", "variants", "isa", "threads", "fallback", nullptr};
  context_object* c = as_context(self);
  state& s = *state_of_object(self);
  lockstep_context_options o = lockstep_context_defaults();
  int fallback = 1;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|zzzip:Context", const_cast<char**>(names), &o.backend,
                                   &o.variants, &o.cpu_isa, &o.threads, &fallback))
    return -1;
  if (!fallback) o.flags = LOCKSTEP_NO_FALLBACK;
  if (c->handle || c->closed) return raise(s, LOCKSTEP_INVALID_ARGUMENT, "a context is made once"), -1;
  lockstep_status status;
  lockstep_context* made = nullptr;
  {
    const without_gil released;
    status = lockstep_context_create(&o, &made);
  }
  c->handle = made;
  if (status != LOCKSTEP_OK) return raise_status(s, status), -1;
  c->on_cpu = names_cpu(o.backend ? o.backend : std::getenv("LOCKSTEP_BACKEND"));
  return 0;
}

void context_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  destroy(as_context(self));
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// A context in use for as long as it lives.
class user {
 public:
  explicit user(PyObject* self) : context_(as_context(self)) {
    if (!use_context(*state_of_object(self), context_)) context_ = nullptr;
  }
  ~user() {
    if (context_) release_user(context_);
  }
  user(const user&) = delete;
  user& operator=(const user&) = delete;
  explicit operator bool() const { return context_ != nullptr; }
  lockstep_context* get() const { return context_->handle; }

 private:
  context_object* context_;
};

template <class Call>
PyObject* answer(PyObject* self, Call&& call) {
  const user u(self);
  if (!u) return nullptr;
  lockstep_status status;
  {
    const without_gil released;
    status = call(u.get());
  }
  return status == LOCKSTEP_OK ? Py_NewRef(Py_None) : raise_status(*state_of_object(self), status);
}

PyObject* context_close(PyObject* self, PyObject*) {
  context_object* c = as_context(self);
  forget_kept(*state_of_object(self));  // whose plan uses its context
  c->closed = true;
  if (c->users == 0) destroy(c);
  return Py_NewRef(Py_None);
}

PyObject* context_synchronize(PyObject* self, PyObject*) {
  return answer(self, [](lockstep_context* c) { return lockstep_synchronize(c); });
}

PyObject* context_set_backend(PyObject* self, PyObject* argument) {
  const char* name = nullptr;
  if (!read_text(*state_of_object(self), argument, "backend", &name)) return nullptr;
  PyObject* const done = answer(self, [&](lockstep_context* c) { return lockstep_context_set_backend(c, name); });
  if (done) forget_kept(*state_of_object(self));
  if (done) as_context(self)->on_cpu = names_cpu(name), as_context(self)->warm = false;
  return done;
}

PyObject* context_release_stream(PyObject* self, PyObject* arguments) {
  const char* backend = nullptr;
  PyObject* object = nullptr;
  void* stream = nullptr;
  state& s = *state_of_object(self);
  if (!PyArg_ParseTuple(arguments, "sO:release_stream", &backend, &object) || !import_stream(s, object, &stream))
    return nullptr;
  return answer(self, [&](lockstep_context* c) { return lockstep_release_stream(c, backend, stream); });
}

PyObject* context_model(PyObject* self, PyObject*) {
  const user u(self);
  if (!u) return nullptr;
  lockstep_model_info info{};
  info.size = sizeof info;
  const lockstep_status status = lockstep_model_get(u.get(), &info);
  if (status != LOCKSTEP_OK) return raise_status(*state_of_object(self), status);
  return Py_BuildValue("(sss)", info.source, info.path, info.reason);
}

PyObject* context_tuning(PyObject* self, PyObject*) {
  const user u(self);
  if (!u) return nullptr;
  lockstep_tuning_info info{};
  info.size = sizeof info;
  const lockstep_status status = lockstep_tuning_get(u.get(), &info);
  if (status != LOCKSTEP_OK) return raise_status(*state_of_object(self), status);
  return Py_BuildValue("(sss)", info.path, info.reason, info.choices);
}

// Something that keeps the context in use for as long as it lives.
PyObject* context_use(PyObject* self, PyObject*) {
  if (!use_context(*state_of_object(self), as_context(self))) return nullptr;
  PyObject* const held = PyCapsule_New(self, nullptr, [](PyObject* capsule) {
    release_user(as_context(static_cast<PyObject*>(PyCapsule_GetPointer(capsule, nullptr))));
  });
  if (!held) release_user(as_context(self));
  return held;
}

PyObject* context_handle(PyObject* self, void*) { return PyLong_FromVoidPtr(as_context(self)->handle); }

PyMethodDef methods[] = {{"close", context_close, METH_NOARGS,
                          "close($self, /)\n--\n\nDestroy the context once no call runs on it any more."},
                         {"synchronize", context_synchronize, METH_NOARGS,
                          "synchronize($self, /)\n--\n\nWait for this context's queued calls, and raise the first "
                          "failure."},
                         {"set_backend", context_set_backend, METH_O,
                          "set_backend($self, name, /)\n--\n\nBind the context to another backend: \"auto\", \"cpu\", "
                          "\"cuda\" or \"cuda:1\"."},
                         {"release_stream", context_release_stream, METH_VARARGS,
                          "release_stream($self, backend, stream, /)\n--\n\nGive back what the context keeps for a "
                          "caller's stream, before the stream "
                          "is destroyed."},
                         {"_use", context_use, METH_NOARGS, nullptr},
                         {"_model", context_model, METH_NOARGS, nullptr},
                         {"_tuning", context_tuning, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"handle", context_handle, nullptr, "The lockstep_context* as an int, 0 once closed.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_init, reinterpret_cast<void*>(context_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* self) -> PyObject* { return repr_by_helper(self); })},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr}};
PyType_Spec spec = {"lockstep._core.Context", sizeof(context_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};

}  // namespace

bool use_context(state& s, context_object* c) {
  Py_INCREF(reinterpret_cast<PyObject*>(c));
  ++c->users;  // before the look: who closes it meanwhile leaves it to its last user
  if (!c->closed && c->handle) return true;
  release_user(c);
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "context is closed; make another"), false;
}

void release_user(context_object* c) {
  if (--c->users == 0 && c->closed) destroy(c);
  Py_DECREF(reinterpret_cast<PyObject*>(c));
}

context_object* default_context(state& s) {
  if (!s.default_context) {
    PyObject* const made = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(s.context_type));
    if (!made) return nullptr;
    if (!set_once(s.default_context, made)) Py_DECREF(made);  // another thread was first
  }
  return as_context(s.default_context);
}

bool add_context(state& s) {
  s.context_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(s.module, &spec, nullptr));
  return s.context_type && PyModule_AddType(s.module, s.context_type) == 0;
}

}  // namespace lockstep::python

// verify.cpp - the extension module lockstep._verify: the digest of a backend's results, for verify().
#include <exception>

#include "gil.hpp"
#include "runner.hpp"

namespace {

PyObject* digest(PyObject*, PyObject* arguments) {
  const char *backend = nullptr, *isa = nullptr;
  int threads = 0;
  if (!PyArg_ParseTuple(arguments, "ssi", &backend, &isa, &threads)) return nullptr;
  std::string line, error;
  {
    const lockstep::python::without_gil released;
    try {
      line = lockstep::cases::digest(backend, isa, threads);
    } catch (const std::exception& e) {
      error = e.what();
    }
  }
  if (PyErr_Occurred()) return nullptr;  // by the handler of a signal
  if (error.empty()) return PyUnicode_FromString(line.c_str());
  PyErr_SetString(PyExc_RuntimeError, error.c_str());
  return nullptr;
}

PyMethodDef methods[] = {{"digest", digest, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMODINIT_FUNC PyInit__verify() {
  static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
      {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
      {0, nullptr},
      {0, nullptr}};
  constexpr int free_slot = sizeof slots / sizeof *slots - 2;
  constexpr int multiple_interpreters = 3;  // a slot from 3.12 on; this one keeps no state
  if (Py_Version >= 0x030C0000) slots[free_slot] = {multiple_interpreters, reinterpret_cast<void*>(2)};
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "lockstep._verify", nullptr, 0, methods, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

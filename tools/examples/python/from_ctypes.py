"""The C library of this package from other languages and tools: where it is, and a call by ctypes."""
import ctypes

import lockstep as ls

library = ctypes.CDLL(ls.get_library())
library.lockstep_version.restype = ctypes.c_char_p
assert library.lockstep_version().decode() == ls.__version__

library.lockstep_dtype_bytes.restype = ctypes.c_size_t
assert library.lockstep_dtype_bytes(3) == 4  # LOCKSTEP_F32
print(f"{ls.get_library()}; headers: {ls.get_include() or 'of the system'}")

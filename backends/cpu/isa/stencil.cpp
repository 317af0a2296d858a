// stencil.cpp
#include "../isa.hpp"

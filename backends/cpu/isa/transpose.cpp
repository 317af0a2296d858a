// transpose.cpp
#include "../isa.hpp"

// reduce.cpp
#include "../isa.hpp"

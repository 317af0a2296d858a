// reduce.cpp

// permute.cpp

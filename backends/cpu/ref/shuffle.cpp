// shuffle.cpp

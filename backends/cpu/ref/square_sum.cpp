// square_sum.cpp

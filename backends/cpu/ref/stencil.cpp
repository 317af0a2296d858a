// stencil.cpp

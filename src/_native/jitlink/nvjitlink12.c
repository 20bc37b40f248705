#define MAJOR 12
#include "standin.h"

#define MAJOR 13
#include "standin.h"

#!/bin/sh
exec pylink "$@"

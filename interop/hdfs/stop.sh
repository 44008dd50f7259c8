#!/usr/bin/env bash
# Nothing is left to stop: the cluster ends with the test.

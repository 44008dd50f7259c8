#!/usr/bin/env bash
# Nothing is left to stop: the server ends with the test.

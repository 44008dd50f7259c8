#!/usr/bin/env bash
# needs: java javac mvn python3
# The judge is that of carbon-spark. Prints its folder.
exec "$(dirname "$0")/../carbon-spark/get.sh"
